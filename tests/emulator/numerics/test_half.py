import numpy as np
import pytest

from coppelius.emulator.numerics import half
from coppelius.emulator.numerics.rounding import BF16, F16, F32, Rounding

pytestmark = pytest.mark.filterwarnings("error")  # no warning may leak

HALVES = pytest.mark.parametrize("fmt", [F16, BF16], ids=lambda f: f.name)


@HALVES
def test_fma(fmt, twin):
    found = []
    for seed in range(4):
        found += twin.check_fma(lambda a, b, c: half.fma(a, b, c, fmt), fmt, Rounding.RN, seed)
    assert found == []


@HALVES
def test_add_and_mul(fmt, twin):
    found = []
    for a, b, _ in twin.patterns(fmt, 150, 5):
        a, b = a.astype(np.uint16), b.astype(np.uint16)
        for function, factors in (
            (half.add, [(x, fmt.one, y) for x, y in zip(a, b, strict=True)]),
            (half.mul, [(x, y, int(x ^ y) & fmt.sign_mask) for x, y in zip(a, b, strict=True)]),
        ):
            want = [twin.fma(*f, fmt, Rounding.RN) for f in factors]
            want = [fmt.canonical_nan if w is None else w for w in want]
            found += twin.differences(function(a, b, fmt), want, a, b)
    assert found == []


def test_results_in_f32_round_once(twin):
    found = []
    for a, b, c in twin.patterns(F16, 150, 6):
        a, b, c = (x.astype(np.uint16) for x in (a, b, c))
        for got, factors in (
            (half.fma_f32(a, b, c), list(zip(a, b, c, strict=True))),
            (half.add_f32(a, b), [(x, F16.one, y) for x, y in zip(a, b, strict=True)]),
            (half.mul_f32(a, b), [(x, y, int(x ^ y) & 0x8000) for x, y in zip(a, b, strict=True)]),
        ):
            want = [twin.fma(*f, F16, Rounding.RN, F32) for f in factors]
            found += twin.differences(got, [F32.canonical_nan if w is None else w for w in want], a, b, c)
    assert found == []


def test_modifiers():
    tiny, one, minus, nan = 0x0001, 0x3C00, 0xBC00, 0x7E01
    a = np.array([tiny, 0x8001, one, minus, nan, 0x0400], np.uint16)
    zero = np.uint16(0)
    assert half.add(a, zero, ftz=True).tolist() == [0, 0, one, minus, 0x7FFF, 0x0400]
    assert half.add(a, np.uint16(0x8000), ftz=True).tolist()[1] == 0x8000
    assert half.add(a, zero, sat=True, ftz=True).tolist() == [0, 0, one, 0, 0, 0x0400]
    assert half.add(a, zero, sat=True).tolist() == [tiny, 0, one, 0, 0, 0x0400]
    assert half.fma(a, np.uint16(one), np.uint16(0x8000), relu=True).tolist() == [tiny, 0, one, 0, 0x7FFF, 0x0400]
    infinity = np.uint16(0x7C00)
    assert half.mul(np.uint16(0x8000), infinity, fmz=True).tolist() == [0]
    assert half.fma(np.uint16(0x8000), infinity, np.uint16(minus), fmz=True).tolist() == [minus]


def test_swizzles_and_packed_views():
    r = np.array([0x12345678], np.uint32)
    assert [int(half.swizzle(r, s)[0]) for s in half.SWIZZLES] == [0x12345678, 0x12345678, 0x56785678, 0x12341234]
    pair = half.add(np.array([0x40003C00], np.uint32).view(np.uint16), np.uint16(0x3C00)).view(np.uint32)
    assert pair.tolist() == [0x42004000]
