import numpy as np
import pytest

from coppelius.emulator.numerics import compare, float32, half, integer
from coppelius.emulator.numerics.blocks import BLOCK, in_blocks
from coppelius.emulator.numerics.rounding import F32, Rounding

pytestmark = pytest.mark.filterwarnings("error")  # no warning may leak


def test_pieces_are_joined_in_order_and_shape():
    seen = []

    @in_blocks(2)
    def function(a, b, extra, *, scale=1):
        seen.append(np.broadcast_shapes(np.shape(a), np.shape(b)))
        return a * scale + b + extra, a > b

    a = np.arange(3 * BLOCK, dtype=np.int64).reshape(3, -1)
    b = np.arange(BLOCK, dtype=np.int64)
    total, greater = function(a, b, 5, scale=2)
    assert (total == a * 2 + b + 5).all()
    assert (greater == (a > b)).all()
    assert total.shape == a.shape
    assert seen == [(BLOCK,)] * 3


def test_long_arrays_give_what_short_ones_give():
    rng = np.random.default_rng(0)
    n = BLOCK + 77
    a, b, c = (rng.integers(0, 1 << 32, n, dtype=np.uint32) for _ in range(3))
    k = np.uint32(0x3F800000)
    for mode in Rounding:
        whole = float32.fma(a, k, c, mode)
        assert (whole[BLOCK:] == float32.fma(a[BLOCK:], k, c[BLOCK:], mode)).all()
        assert (whole[:BLOCK] == float32.fma(a[:BLOCK], k, c[:BLOCK], mode)).all()
    total, carry = integer.imad_wide(a, b, c.astype(np.uint64), signed=False)
    assert (total[:9] == integer.imad_wide(a[:9], b[:9], c[:9], signed=False)[0]).all()
    assert carry.shape == (n,)
    smaller = np.arange(n) % 3 == 0
    picked = compare.minimum(a, b, F32, maximum=smaller)
    assert (picked == np.where(smaller, compare.minimum(a, b, F32, maximum=True), compare.minimum(a, b, F32))).all()
    assert integer.minimum(a[:1], b[:1], signed=False, maximum=smaller).shape == (n,)
    halves = half.add(a.view(np.uint16), b.view(np.uint16))
    assert halves.shape == (2 * n,)
    # no operand is long, the result is
    assert float32.add(a[:200, None], b[None, :200]).shape == (200, 200)
