import numpy as np
import pytest

from coppelius.emulator.numerics.rounding import (
    BF16,
    F16,
    F32,
    F64,
    Rounding,
    highest_bit,
    narrow,
    nearest_bf16,
    nearest_f16,
    round_pack,
    saturate,
    sum_to_odd,
    unpack,
)

pytestmark = pytest.mark.filterwarnings("error")  # no warning may leak


def test_highest_bit_of_every_power_and_its_neighbours():
    values = sorted({max(0, (1 << k) + d) & (2**64 - 1) for k in range(65) for d in (-1, 0, 1)} - {0})
    got = highest_bit(np.array(values, np.uint64))
    assert got.tolist() == [v.bit_length() - 1 for v in values]


@pytest.mark.parametrize("fmt", [F16, BF16, F32, F64], ids=lambda f: f.name)
def test_unpack_and_pack_are_inverses(fmt, twin):
    for triple in twin.patterns(fmt, 200, 7):
        bits = triple[0].astype(fmt.dtype)
        bits = bits[(bits & fmt.dtype.type(fmt.infinity)) != fmt.infinity]
        assert (round_pack(*unpack(bits, fmt), fmt, Rounding.RZ) == bits).all()


@pytest.mark.parametrize("mode", list(Rounding))
@pytest.mark.parametrize("fmt", [F16, BF16, F32, F64], ids=lambda f: f.name)
def test_round_pack_against_the_twin(fmt, mode, twin):
    rng = np.random.default_rng(3)
    n = 150
    negative = rng.integers(0, 2, n).astype(bool)
    s = rng.integers(1 << 63, 1 << 64, n, dtype=np.uint64)
    drop = 63 - fmt.fraction_bits
    s[: n // 2] &= ~np.uint64((1 << drop) - 1)  # ties and exact values
    s[: n // 4] |= np.uint64(1 << (drop - 1))
    e = rng.integers(-fmt.bias - fmt.fraction_bits - 70, fmt.bias - 58, n)
    e[::3] = rng.integers(-fmt.bias - 66, -fmt.bias - 60, len(e[::3]))
    e[::5] = fmt.bias - 63
    exact = [(-1) ** int(sg) * int(m) * twin.Fraction(2) ** int(x) for sg, m, x in zip(negative, s, e, strict=True)]
    want = [twin.encode(v, fmt, mode) for v in exact]
    assert twin.differences(round_pack(negative, s, e, fmt, mode), want, s, e & (2**16 - 1)) == []


@pytest.mark.parametrize("mode", list(Rounding))
def test_narrow_from_float64(mode, twin):
    rng = np.random.default_rng(5)
    bits = rng.integers(0, 1 << 64, 100, dtype=np.uint64)
    near = np.array([2.0**-150, 2.0**-149 * 1.5, 2.0**128 - 2.0**103, 2.0**128, 1 + 2.0**-24, 1 + 3 * 2.0**-24])
    value = np.concatenate([bits.view(float)[np.isfinite(bits.view(float))], near, -near, rng.normal(size=100)])
    with np.errstate(all="ignore"):
        got = narrow(value, F32, mode)
    want = [twin.encode(twin.Fraction(v), F32, mode) for v in value.tolist()]
    assert twin.differences(got, want, value.view(np.uint64)) == []


def test_every_f16_tie_and_its_neighbours_round_to_nearest_even():
    magnitudes = np.arange(0, 0x7C00, 7, dtype=np.uint16).view(np.float16).astype(np.float32)
    steps = np.arange(1, 0x7C00, 7, dtype=np.uint16).view(np.float16).astype(np.float32)
    middle = (magnitudes + steps) / 2
    bits = np.concatenate([middle.view(np.uint32) + np.uint32(d) for d in (0, 1, 2**32 - 1)])
    got = nearest_f16(bits.view(np.float32))
    with np.errstate(all="ignore"):
        assert (got == bits.view(np.float32).astype(np.float16).view(np.uint16)).all()


def test_nearest_halves_against_the_twin(twin):
    for triple in twin.patterns(F32, 150, 11):
        bits = triple[0].astype(np.uint32)
        finite = bits[(bits & np.uint32(F32.infinity)) != F32.infinity]
        for fmt, function in ((F16, nearest_f16), (BF16, nearest_bf16)):
            values = [(-1) ** s * v for s, v in (twin.decode(x, F32) for x in finite)]
            want = [
                twin.encode(v, fmt, Rounding.RN, bool(x >> 31)) for v, x in zip(values, finite.tolist(), strict=True)
            ]
            assert twin.differences(function(finite.view(np.float32)), want, finite) == []


def test_sum_to_odd_marks_every_inexact_sum(twin):
    rng = np.random.default_rng(1)
    p, c = (np.ldexp(rng.normal(size=300), rng.integers(-60, 60, 300)) for _ in range(2))
    got = sum_to_odd(p, c)
    for x, y, s in zip(p.tolist(), c.tolist(), got.tolist(), strict=True):
        exact = twin.Fraction(x) + twin.Fraction(y)
        assert s == exact or (np.float64(s).view(np.int64) & 1 and abs(twin.Fraction(s) - exact) < np.spacing(abs(s)))


def test_saturation_gives_plus_zero_for_negatives_and_nan():
    bits = np.array([0x80000000, 0xBF800000, 0x7FFFFFFF, 0xFFC00000, 0x7F800000, 0x3F000000, 0xFF800000], np.uint32)
    assert saturate(bits, F32).tolist() == [0, 0, 0, 0, 0x3F800000, 0x3F000000, 0]
