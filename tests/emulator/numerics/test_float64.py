import numpy as np
import pytest

from coppelius.emulator.numerics import float64
from coppelius.emulator.numerics.rounding import F64, Rounding

pytestmark = pytest.mark.filterwarnings("error")  # no warning may leak

QUIET = 1 << 51


def expected(result, *operands):
    """A NaN operand comes back quietened, the first one; an invalid operation gives the default NaN."""
    if result is not None:
        return result
    nans = [int(x) for x in operands if int(x) & (F64.sign_mask - 1) > F64.infinity]
    return nans[0] | QUIET if nans else F64.canonical_nan


@pytest.mark.parametrize("mode", list(Rounding))
def test_fma(mode, twin):
    found = []
    for a, b, c in twin.patterns(F64, 120, 21):
        want = [expected(twin.fma(x, y, z, F64, mode), x, y, z) for x, y, z in zip(a, b, c, strict=True)]
        found += twin.differences(float64.fma(a, b, c, mode), want, a, b, c)
    assert found == []


@pytest.mark.parametrize("mode", list(Rounding))
def test_add_and_mul(mode, twin):
    found = []
    for a, b, _ in twin.patterns(F64, 100, 22):
        want = [expected(twin.fma(x, F64.one, y, F64, mode), x, y) for x, y in zip(a, b, strict=True)]
        found += twin.differences(float64.add(a, b, mode), want, a, b)
        zeros = (a ^ b) & np.uint64(F64.sign_mask)
        want = [expected(twin.fma(x, y, z, F64, mode), x, y) for x, y, z in zip(a, b, zeros, strict=True)]
        found += twin.differences(float64.mul(a, b, mode), want, a, b)
    assert found == []


def test_quick_and_exact_fma_agree(twin):
    """Operands near one another, so that products cancel the addend down to their last bits."""
    rng = np.random.default_rng(3)
    a, b = (rng.normal(size=4000) * 2.0 ** rng.integers(-40, 40, 4000) for _ in range(2))
    c = -a * b * rng.choice([1.0, 1 + 2.0**-52, 1 - 2.0**-53, 1 + 2.0**-30, 2.0**53, 2.0**-53, 2.0**-106, 0.0], 4000)
    operands = [x.view(np.uint64) for x in (a, b, c)]
    for triple in [operands, *twin.patterns(F64, 1000, 23)]:
        x, y, z = triple
        quick, slow = float64.fma(x, y, z), float64._any_fma(x, y, z, Rounding.RN)
        assert twin.differences(quick, slow.tolist(), x, y, z) == []


def test_wide_shift_keeps_what_it_loses_as_a_last_bit():
    rng = np.random.default_rng(0)
    high, low = (rng.integers(0, 1 << 64, 140, dtype=np.uint64) for _ in range(2))
    high[::3], low[1::3] = 0, 0
    count = np.arange(140)
    got = float64._shift_right(high, low, count)
    for h, x, n, *out in zip(high.tolist(), low.tolist(), count.tolist(), *(v.tolist() for v in got), strict=True):
        pair = h << 64 | x
        if n < 127:
            assert out[0] << 64 | out[1] == pair >> n | (pair & ((1 << n) - 1) != 0), n
        else:  # every bit has gone into the last one
            assert out[0] << 64 | out[1] == (pair != 0), n


def test_multiply_wide_against_python_integers():
    rng = np.random.default_rng(0)
    a, b = (rng.integers(0, 1 << 64, 200, dtype=np.uint64) for _ in range(2))
    a[:4] = b[:4] = [0, 1, 2**64 - 1, 1 << 63]
    high, low = float64.multiply_wide(a, b)
    assert [(int(h) << 64) | int(x) for h, x in zip(high, low, strict=True)] == [
        int(x) * int(y) for x, y in zip(a, b, strict=True)
    ]
