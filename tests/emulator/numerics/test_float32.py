import warnings

import numpy as np
import pytest

from coppelius.emulator.numerics import float32
from coppelius.emulator.numerics.rounding import F32, Rounding

pytestmark = pytest.mark.filterwarnings("error")  # no warning may leak

ONE = np.uint32(0x3F800000)


@pytest.mark.parametrize("mode", list(Rounding))
def test_fma(mode, twin):
    assert twin.check_fma(lambda a, b, c: float32.fma(a, b, c, mode), F32, mode, 1) == []


@pytest.mark.parametrize("mode", list(Rounding))
def test_add_is_a_fma_with_one(mode, twin):
    found = []
    for a, b, _ in twin.patterns(F32, 120, 2):
        a, b = a.astype(np.uint32), b.astype(np.uint32)
        want = [twin.fma(x, ONE, y, F32, mode) for x, y in zip(a, b, strict=True)]
        want = [F32.canonical_nan if w is None else w for w in want]
        found += twin.differences(float32.add(a, b, mode), want, a, b)
    assert found == []


@pytest.mark.parametrize("scale", [0, -3, 2])
@pytest.mark.parametrize("mode", list(Rounding))
def test_mul_scales_before_its_one_rounding(mode, scale, twin):
    found = []
    for a, b, _ in twin.patterns(F32, 80, 3):
        a, b = a.astype(np.uint32), b.astype(np.uint32)
        want = []
        for x, y in zip(a.tolist(), b.tolist(), strict=True):
            (sx, vx), (sy, vy) = twin.decode(x, F32), twin.decode(y, F32)
            if twin.NAN in (vx, vy) or {vx, vy} == {twin.INF, 0}:
                want.append(F32.canonical_nan)
            elif twin.INF in (vx, vy):
                want.append((int(sx ^ sy) << 31) | F32.infinity)
            else:
                value = (-1) ** (sx ^ sy) * vx * vy * twin.Fraction(2) ** scale
                want.append(twin.encode(value, F32, mode, sx ^ sy))
        found += twin.differences(float32.mul(a, b, mode, scale=scale), want, a, b)
    assert found == []


@pytest.mark.parametrize("sat", [False, True])
def test_ftz_flushes_inputs_and_results(sat, twin):
    found = []
    for triple in twin.patterns(F32, 120, 4):
        a, b, c = (x.astype(np.uint32) for x in triple)
        want = []
        for x, y, z in zip(a, b, c, strict=True):
            w = twin.fma(*(twin.flush(int(v), F32) for v in (x, y, z)), F32, Rounding.RN)
            w = F32.canonical_nan if w is None else twin.flush(w, F32)
            want.append(w if not sat else 0 if w > F32.infinity else min(w, F32.one))
        found += twin.differences(float32.fma(a, b, c, ftz=True, sat=sat), want, a, b, c)
    assert found == []


def test_fmz_makes_zero_times_anything_plus_zero():
    a = np.array([0, 0x80000000, 0x7F800000, 0x7FC00000, 0x80000001, 0x40000000], np.uint32)
    b = np.array([0x7F800000, 0xBF800000, 0x80000000, 0, 0x7F800000, 0x40000000], np.uint32)
    assert float32.mul(a, b, fmz=True).tolist() == [0, 0, 0, 0, 0, 0x40800000]
    c = np.uint32(0xC0000000)
    assert float32.fma(a, b, c, fmz=True).tolist() == [0xC0000000] * 5 + [0x40000000]


def test_short_division_is_exact_where_it_is_allowed():
    """The sequence that ptxas puts after FCHK, from a reciprocal that is off by one unit."""
    rng = np.random.default_rng(8)
    a, b = (rng.integers(0, 1 << 32, 20000, dtype=np.uint32) for _ in range(2))
    for special in (0, 0x80000000, 1, 0x7F800000, 0x7FC00000, 0x7F7FFFFF, 0x00800000):
        assert float32.division_needs_care(np.uint32(0x3F800000), np.uint32(special)).all()
        assert float32.division_needs_care(np.uint32(special), np.uint32(0x3F800000)).all()
    plain = ~float32.division_needs_care(a, b)
    assert 0.3 < plain.mean() < 0.9
    a, b = a[plain], b[plain]
    minus = b ^ np.uint32(0x80000000)
    reciprocal = (1 / b.view(np.float32)).view(np.uint32) + np.uint32(1)
    error = float32.fma(minus, reciprocal, ONE)
    reciprocal = float32.fma(reciprocal, error, reciprocal)
    quotient = float32.mul(a, reciprocal)
    quotient = float32.fma(float32.fma(minus, quotient, a), reciprocal, quotient)
    quotient = float32.fma(float32.fma(minus, quotient, a), reciprocal, quotient)
    assert (quotient == (a.view(np.float32) / b.view(np.float32)).view(np.uint32)).all()


def test_operands_broadcast_and_no_warning_leaks():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        a = np.array([[0x7F7FFFFF], [0x7F800001]], np.uint32)
        b = np.array([0x7F7FFFFF, 0xFF7FFFFF, 1], np.uint32)
        for mode in Rounding:
            assert float32.fma(a, b, np.uint32(0xFF800000), mode).shape == (2, 3)
            assert float32.mul(a, b, mode, scale=3).shape == (2, 3)
            assert float32.add(a, b, mode, ftz=True, sat=True).shape == (2, 3)
