import itertools

import numpy as np
import pytest

from coppelius.emulator.numerics import bitwise

pytestmark = pytest.mark.filterwarnings("error")  # no warning may leak
M32 = 2**32 - 1
COUNTS = [0, 1, 7, 8, 31, 32, 33, 63, 64, 65, 100, 0x80000000, 0xFFFFFFFF]


def words(seed, count):
    rng = np.random.default_rng(seed)
    edges = np.array([0, 1, 0x80000000, 0xFFFFFFFF, 0x7FFFFFFF, 0x00FF00FF], np.uint32)
    return [
        np.concatenate([rng.choice(edges, 60), rng.integers(0, 1 << 32, 60, dtype=np.uint32)]) for _ in range(count)
    ]


def test_lop3_every_table():
    a, b, c = (np.array([v], np.uint32) for v in (0xF0F0F0F0, 0xCCCCCCCC, 0xAAAAAAAA))
    got = [int(bitwise.lop3(a, b, c, table)[0]) for table in range(256)]
    assert got == [table * 0x01010101 for table in range(256)]


def test_lop3_broadcasts():
    a = np.arange(5, dtype=np.uint32)
    for table in (0x00, 0xFF, 0xF0, 0xAA, 0xC0):
        assert bitwise.lop3(np.uint32(3), np.uint32(5), a, table).shape == (5,)
        assert bitwise.lop3(a, np.uint32(5), np.uint32(1), table).shape == (5,)


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("sign", [False, True])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("wrap", [False, True])
def test_shf(right, sign, wide, wrap):
    low, high = words(1, 2)
    for take_high, count in itertools.product((False, True), COUNTS):
        got = bitwise.shf(
            low, np.uint32(count), high, right=right, signed=sign, wide=wide, wrap=wrap, take_high=take_high
        )
        width = 64 if wide else 32
        n = count % width if wrap else min(count, width)
        want = []
        for x, y in zip(low.tolist(), high.tolist(), strict=True):
            pair = y << 32 | x
            if sign and right:
                pair -= pair >> 63 << 64
            shifted = pair >> n if right else pair << n
            want.append(shifted >> (32 * take_high) & M32)
        assert got.tolist() == want, (take_high, count)


def test_prmt_picks_bytes_and_signs():
    a, c = words(2, 2)
    selector = words(3, 1)[0]
    want = []
    for x, s, y in zip(a.tolist(), selector.tolist(), c.tolist(), strict=True):
        data = (y << 32 | x).to_bytes(8, "little")
        picks = [s >> (4 * i) & 15 for i in range(4)]
        out = [(0xFF if data[p & 7] & 0x80 else 0) if p & 8 else data[p & 7] for p in picks]
        want.append(int.from_bytes(bytes(out), "little"))
    assert bitwise.prmt(a, selector, c).tolist() == want
    alike = [int(bitwise.prmt(a[i : i + 1], selector[i], c[i : i + 1])[0]) for i in range(len(want))]
    assert alike == want


def test_prmt_modes():
    a, c = np.uint32(0x03020100), np.uint32(0x07060504)

    def row(mode):
        return [f"{int(bitwise.prmt(a, np.uint32(s), c, mode)[0]):08x}" for s in range(4)]

    assert row("F4E") == ["03020100", "04030201", "05040302", "06050403"]
    assert row("B4E") == ["05060700", "06070001", "07000102", "00010203"]
    assert row("RC8") == ["00000000", "01010101", "02020202", "03030303"]
    assert row("ECL") == ["03020100", "03020101", "03020202", "03030303"]
    assert row("ECR") == ["00000000", "01010100", "02020100", "03020100"]
    assert row("RC16") == ["01000100", "03020302", "01000100", "03020302"]


def test_counts_and_reversal():
    a = np.concatenate([words(4, 1)[0], (np.uint64(1) << np.arange(32, dtype=np.uint64)).astype(np.uint32)])
    values = a.tolist()
    assert bitwise.popc(a).tolist() == [v.bit_count() for v in values]
    assert bitwise.brev(a).tolist() == [int(f"{v:032b}"[::-1], 2) for v in values]
    assert bitwise.flo(a).tolist() == [v.bit_length() - 1 if v else M32 for v in values]
    assert bitwise.flo(a, shift_amount=True).tolist() == [32 - v.bit_length() if v else M32 for v in values]
    folded = [v ^ M32 if v >> 31 else v for v in values]
    assert bitwise.flo(a, signed=True).tolist() == [v.bit_length() - 1 if v else M32 for v in folded]


@pytest.mark.parametrize("wrap", [False, True])
def test_fields(wrap):
    a = words(5, 1)[0]
    for count in COUNTS:
        n = count % 32 if wrap else min(count, 32)
        fields = [v & ((1 << n) - 1) for v in a.tolist()]
        assert bitwise.sgxt(a, np.uint32(count), signed=False, wrap=wrap).tolist() == fields
        spread = [(f - (f >> (n - 1) << n)) & M32 if n else 0 for f in fields]
        assert bitwise.sgxt(a, np.uint32(count), signed=True, wrap=wrap).tolist() == spread
        for start in COUNTS:
            first = start % 32 if wrap else min(start, 32)
            got = bitwise.bmsk(np.uint32(start), np.uint32(count), wrap=wrap)
            assert got.tolist() == [((1 << n) - 1) << first & M32], (start, count)
