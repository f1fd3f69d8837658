import math

import numpy as np
import pytest

from coppelius.emulator.numerics import convert
from coppelius.emulator.numerics.rounding import BF16, F16, F32, F64, Rounding

pytestmark = pytest.mark.filterwarnings("error")  # no warning may leak
MODES = pytest.mark.parametrize("mode", list(Rounding))
PAIRS = [(F16, F32), (F32, F16), (F32, F64), (F64, F32), (F16, F64), (F64, F16), (BF16, F32), (F32, BF16)]


def rounded(value, mode):
    """A Fraction to an integer in one of the four directions; ties to even."""
    return {Rounding.RN: round, Rounding.RM: math.floor, Rounding.RP: math.ceil, Rounding.RZ: math.trunc}[mode](value)


def converted(bits, source, target, mode, twin):
    negative, magnitude = twin.decode(bits, source)
    if magnitude == twin.NAN:
        return target.canonical_nan
    if magnitude == twin.INF:
        return target.infinity | (target.sign_mask if negative else 0)
    return twin.encode(-magnitude if negative else magnitude, target, mode, negative)


@MODES
@pytest.mark.parametrize(("source", "target"), PAIRS, ids=lambda f: f.name)
def test_f2f_against_the_twin(source, target, mode, twin):
    for a, b, _ in twin.patterns(source, 100, 41):
        for bits in (a.astype(source.dtype), b.astype(source.dtype)):
            want = [converted(x, source, target, mode, twin) for x in bits]
            assert twin.differences(convert.f2f(bits, source, target, mode), want, bits) == []


def test_f2f_flushes_the_f32_side_only():
    tiny = np.array([0x80000001, 0x007FFFFF], np.uint32)
    assert convert.f2f(tiny, F32, F64, ftz=True).tolist() == [0x8000000000000000, 0]
    small = np.array([np.float64(2.0**-140)]).view(np.uint64)
    assert convert.f2f(small, F64, F32, ftz=True).tolist() == [0]
    assert convert.f2f(np.array([1], np.uint16), F16, F32, ftz=True).tolist() == [0x33800000]


@pytest.mark.parametrize("mode", [Rounding.RN, Rounding.RZ])
@pytest.mark.parametrize("target", [F16, BF16], ids=lambda f: f.name)
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("satfinite", [False, True])
def test_f2fp_packs_the_first_operand_high(target, mode, relu, satfinite, twin):
    for a, b, _ in twin.patterns(F32, 100, 42):
        a, b = a.astype(np.uint32), b.astype(np.uint32)
        halves = []
        for bits in (a, b):
            want = np.array([converted(x, F32, target, mode, twin) for x in bits], np.uint32)
            if satfinite:
                want -= (want & 0x7FFF) == target.infinity
            if relu:
                want[(want >> 15 == 1)] = 0
            halves.append(want)
        got = convert.f2fp(a, b, target, mode, relu=relu, satfinite=satfinite)
        assert twin.differences(got, (halves[0] << 16 | halves[1]).tolist(), a, b) == []


@MODES
@pytest.mark.parametrize("source", [F16, F32, F64], ids=lambda f: f.name)
@pytest.mark.parametrize("width", [8, 16, 32, 64])
@pytest.mark.parametrize("signed", [False, True])
def test_f2i_against_the_twin(source, width, signed, mode, twin):
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
    container = (1 << max(width, 32)) - 1
    edges = [v + d for v in (low, high, 2.0**63, -(2.0**31)) for d in (-1, -0.5, 0, 0.5, 1)] + [0.5, 1.5, -0.5, 2.5]
    with np.errstate(all="ignore"):
        kind = {16: np.float16, 32: np.float32, 64: np.float64}[source.width]
        extra = np.array(edges).astype(kind).view(source.dtype)
    for triple in twin.patterns(source, 60, 43):
        bits = np.concatenate([triple[0].astype(source.dtype), extra])
        for ntz in (False, True):
            want = []
            for x in bits:
                negative, magnitude = twin.decode(x, source)
                if magnitude == twin.NAN:
                    want.append(0 if ntz else 1 << (width - 1))
                elif magnitude == twin.INF:
                    want.append((low if negative else high) & container)
                else:
                    whole = rounded(-magnitude if negative else magnitude, mode)
                    want.append(min(max(whole, low), high) & container)
            got = convert.f2i(bits, source, width, signed=signed, rounding=mode, ntz=ntz)
            assert twin.differences(got, want, bits) == []


@MODES
@pytest.mark.parametrize("target", [F16, F32, F64], ids=lambda f: f.name)
@pytest.mark.parametrize("width", [8, 16, 32, 64])
@pytest.mark.parametrize("signed", [False, True])
def test_i2f_against_the_twin(target, width, signed, mode, twin):
    rng = np.random.default_rng(44)
    values = [(1 << k) + d for k in range(width + 1) for d in (-1, 0, 1)]
    values += [v << 30 for v in range(1 << 24, (1 << 24) + 4)] + [2**40 + 2**16, 2**54 + 2, 65520, 65519]
    values = [v & (2**64 - 1) for v in values] + rng.integers(0, 1 << 64, 60, dtype=np.uint64).tolist()
    raw = np.array(values, np.uint64)
    want = []
    for v in values:
        v &= (1 << width) - 1
        v -= (v >> (width - 1) << width) if signed else 0
        want.append(twin.encode(twin.Fraction(v), target, mode))
    assert twin.differences(convert.i2f(raw, width, target, signed=signed, rounding=mode), want, raw) == []


@MODES
@pytest.mark.parametrize("fmt", [F16, F32, F64], ids=lambda f: f.name)
def test_frnd_against_the_twin(fmt, mode, twin):
    for a, b, _ in twin.patterns(fmt, 100, 45):
        for bits in (a.astype(fmt.dtype), b.astype(fmt.dtype)):
            want = []
            for x in bits:
                negative, magnitude = twin.decode(x, fmt)
                if magnitude in (twin.NAN, twin.INF):
                    want.append(converted(x, fmt, fmt, mode, twin))
                else:
                    whole = rounded(-magnitude if negative else magnitude, mode)
                    want.append(twin.encode(twin.Fraction(whole), fmt, mode, negative))
            assert twin.differences(convert.frnd(bits, fmt, mode), want, bits) == []


@pytest.mark.parametrize("width", [8, 16, 32])
@pytest.mark.parametrize("source_signed", [False, True])
@pytest.mark.parametrize("signed", [False, True])
def test_i2i_clamps(width, source_signed, signed):
    values = [
        v & 0xFFFFFFFF for k in (0, 7, 8, 15, 16, 31, 32) for d in (-1, 0, 1) for v in ((1 << k) + d, -(1 << k) + d)
    ]
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
    numbers = [v - (v >> 31 << 32) if source_signed else v for v in values]
    want = [min(max(v, low), high) & 0xFFFFFFFF for v in numbers]
    got = convert.i2i(np.array(values, np.uint32), width, source_signed=source_signed, signed=signed)
    assert got.tolist() == want
