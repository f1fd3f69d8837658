import numpy as np
import pytest

from coppelius.emulator.numerics import integer

pytestmark = pytest.mark.filterwarnings("error")  # no warning may leak
M32, M64 = 2**32 - 1, 2**64 - 1
EDGES = [0, 1, 2, 0x7F, 0x80, 0x7FFF, 0x8000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF]


def words(seed, count=3, wide=0):
    rng = np.random.default_rng(seed)
    out = [
        np.concatenate([rng.choice(np.array(EDGES, np.uint32), 300), rng.integers(0, 1 << 32, 100, dtype=np.uint32)])
        for _ in range(count)
    ]
    if wide:
        high = rng.choice(np.array(EDGES, np.uint64), 400)
        out[-1] = high << np.uint64(32) | out[-1]
    return out


def signed(x, width=32):
    return x - (x >> (width - 1) << width)


def test_imad():
    a, b, c = words(1)
    rows = list(zip(a.tolist(), b.tolist(), c.tolist(), strict=True))
    assert integer.imad(a, b, c).tolist() == [(x * y + z) & M32 for x, y, z in rows]
    assert integer.imad(a, b, c, negate_c=True).tolist() == [(x * y - z) & M32 for x, y, z in rows]
    carry = np.arange(400) % 2 == 1
    got = integer.imad_carry(a, b, c, carry, negate_c=True).tolist()
    assert got == [(x * y + (M32 - z) + k) & M32 for (x, y, z), k in zip(rows, carry.tolist(), strict=True)]


@pytest.mark.parametrize("sign", [False, True])
@pytest.mark.parametrize("with_carry", [False, True])
def test_imad_wide_and_high(sign, with_carry):
    a, b, c = words(2, wide=1)
    inward = np.arange(400) % 2 == 1 if with_carry else False
    total, carry = integer.imad_wide(a, b, c, signed=sign, carry=inward)
    high, high_carry = integer.imad_hi(a, b, c, signed=sign, carry=inward)
    products = [((signed(x) * signed(y)) if sign else x * y) & M64 for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    bits = np.broadcast_to(inward, 400).tolist()
    want = [p + z + k for p, z, k in zip(products, c.tolist(), bits, strict=True)]
    assert total.tolist() == [w & M64 for w in want]
    assert carry.tolist() == high_carry.tolist() == [w > M64 for w in want]
    assert high.tolist() == [(w & M64) >> 32 for w in want]


@pytest.mark.parametrize("negate", [(False,) * 3, (True, False, False), (False, True, False), (True, False, True)])
@pytest.mark.parametrize("extended", [False, True])
def test_iadd3_and_its_carries(negate, extended):
    a, b, c = words(3)
    carries = (np.arange(400) % 2 == 1, np.arange(400) % 3 == 1)
    got = integer.iadd3_carry(a, b, c, carries, negate=negate, extended=extended)
    want = []
    for i, row in enumerate(zip(a.tolist(), b.tolist(), c.tolist(), strict=True)):
        total = sum((M32 - x) + (not extended) if n else x for x, n in zip(row, negate, strict=True))
        want.append(total + (int(carries[0][i]) + int(carries[1][i]) if extended else 0))
    assert got[0].tolist() == [w & M32 for w in want]
    assert got[1].tolist() == [w >= 1 << 32 for w in want]
    assert got[2].tolist() == [w >= 2 << 32 for w in want]
    if not extended:
        assert integer.iadd3(a, b, c, negate=negate).tolist() == got[0].tolist()


def test_a_subtraction_of_wide_numbers_by_carries():
    """The chain that ptxas makes of sub.cc and subc: IADD3 with -b, IADD3.X with ~b."""
    a, b, _ = words(4)
    c, d, _ = words(5)
    zero = np.uint32(0)
    low, carry, _ = integer.iadd3_carry(a, b, zero, negate=(False, True, False))
    high, _, _ = integer.iadd3_carry(c, d, zero, (carry, False), negate=(False, True, False), extended=True)
    left, right = (h.astype(np.uint64) << np.uint64(32) | x for h, x in ((c, a), (d, b)))
    assert ((high.astype(np.uint64) << np.uint64(32) | low) == left - right).all()


@pytest.mark.parametrize("shift", [0, 1, 5, 31])
def test_lea_makes_wide_addresses(shift):
    a, b, c = words(6)
    base_high = words(7)[0]
    low, carry = integer.lea(a, b, shift)
    high, _ = integer.lea_hi(a, base_high, c, shift, carry=carry)
    pairs = [(h << 32 | x) << shift for h, x in zip(c.tolist(), a.tolist(), strict=True)]
    bases = [h << 32 | x for h, x in zip(base_high.tolist(), b.tolist(), strict=True)]
    want = [(p + q) & M64 for p, q in zip(pairs, bases, strict=True)]
    assert [h << 32 | x for h, x in zip(high.tolist(), low.tolist(), strict=True)] == want
    wide, _ = integer.lea_hi(a, base_high, None, shift)
    want = [((signed(x) << shift >> 32) + y) & M32 for x, y in zip(a.tolist(), base_high.tolist(), strict=True)]
    assert wide.tolist() == want
    assert integer.lea(a, b, shift, negate_a=True)[0].tolist() == [
        (y - (x << shift)) & M32 for x, y in zip(a.tolist(), b.tolist(), strict=True)
    ]


@pytest.mark.parametrize("sign", [False, True])
@pytest.mark.parametrize("maximum", [False, True])
@pytest.mark.parametrize("wide", [False, True])
def test_minimum_of_both_widths(sign, maximum, wide):
    a, b = words(8, 2)
    if wide:
        a, b = (x.astype(np.uint64) << np.uint64(32) | y for x, y in ((a, b), (b, a)))
    width = 64 if wide else 32
    pick = max if maximum else min
    want = [
        pick((x, y), key=lambda v: signed(v, width) if sign else v) for x, y in zip(a.tolist(), b.tolist(), strict=True)
    ]
    assert integer.minimum(a, b, signed=sign, maximum=maximum).tolist() == want


def test_iabs():
    a = np.array([0, 5, 0xFFFFFFFB, 0x80000000, 0x7FFFFFFF], np.uint32)
    assert integer.iabs(a).tolist() == [0, 5, 5, 0x80000000, 0x7FFFFFFF]


@pytest.mark.parametrize("sign_a", [False, True])
@pytest.mark.parametrize("sign_b", [False, True])
def test_dot_products(sign_a, sign_b):
    a, b, c = words(9)

    def part(x, width, index, sign):
        value = x >> (width * index) & ((1 << width) - 1)
        return signed(value, width) if sign else value

    rows = list(zip(a.tolist(), b.tolist(), c.tolist(), strict=True))
    got = integer.idp4a(a, b, c, signed_a=sign_a, signed_b=sign_b).tolist()
    assert got == [(z + sum(part(x, 8, k, sign_a) * part(y, 8, k, sign_b) for k in range(4))) & M32 for x, y, z in rows]
    for high in (False, True):
        got = integer.idp2a(a, b, c, signed_a=sign_a, signed_b=sign_b, high=high).tolist()
        assert got == [
            (z + sum(part(x, 16, k, sign_a) * part(y, 8, k + 2 * high, sign_b) for k in range(2))) & M32
            for x, y, z in rows
        ]
