import numpy as np
import pytest

from coppelius.emulator.numerics import compare
from coppelius.emulator.numerics.rounding import BF16, F16, F32, F64

pytestmark = pytest.mark.filterwarnings("error")  # no warning may leak
FORMATS = pytest.mark.parametrize("fmt", [F16, BF16, F32, F64], ids=lambda f: f.name)

# written out, not derived: the outcomes (less, equal, greater, unordered) that satisfy each code
OUTCOMES = {
    "F": "", "LT": "<", "EQ": "=", "LE": "<=", "GT": ">", "NE": "<>", "GE": ">=", "NUM": "<=>",
    "NAN": "?", "LTU": "<?", "EQU": "=?", "LEU": "<=?", "GTU": ">?", "NEU": "<>?", "GEU": ">=?", "T": "<=>?",
}  # fmt: skip


def value(bits, fmt, twin):
    negative, magnitude = twin.decode(bits, fmt)
    if magnitude == twin.NAN:
        return None
    magnitude = twin.Fraction(2) ** 5000 if magnitude == twin.INF else magnitude
    return -magnitude if negative else magnitude


@FORMATS
def test_every_code_against_the_twin(fmt, twin):
    for a, b, _ in twin.patterns(fmt, 60, 31):
        a, b = a.astype(fmt.dtype), b.astype(fmt.dtype)
        b[::4] = a[::4]
        outcomes = []
        for x, y in zip(a, b, strict=True):
            p, q = value(x, fmt, twin), value(y, fmt, twin)
            outcomes.append("?" if None in (p, q) else "<" if p < q else ">" if p > q else "=")
        for code, name in enumerate(compare.CODES):
            want = [o in OUTCOMES[name] for o in outcomes]
            assert twin.differences(compare.compare(a, b, fmt, code), want, a, b) == [], name


@FORMATS
@pytest.mark.parametrize("maximum", [False, True])
@pytest.mark.parametrize("nan", [False, True])
def test_minimum_against_the_twin(fmt, maximum, nan, twin):
    for a, b, _ in twin.patterns(fmt, 100, 32):
        a, b = a.astype(fmt.dtype), b.astype(fmt.dtype)
        b[::5] = a[::5] ^ fmt.dtype.type(fmt.sign_mask)
        want = []
        for x, y in zip(a.tolist(), b.tolist(), strict=True):
            p, q = value(x, fmt, twin), value(y, fmt, twin)
            if None in (p, q):
                want.append(fmt.canonical_nan if nan or p == q else (y if p is None else x))
            else:
                key = [(v, not w >> (fmt.width - 1)) for v, w in ((p, x), (q, y))]
                want.append((max if maximum else min)(zip(key, (x, y), strict=True))[1])
        assert twin.differences(compare.minimum(a, b, fmt, maximum=maximum, nan=nan), want, a, b) == []


def test_minimum_options():
    a, b = np.array([0x40400000, 1], np.uint32), np.array([0xC0000000, 0x80000002], np.uint32)
    assert compare.minimum(a, b, F32, maximum=np.array([True, False])).tolist() == [0x40400000, 0x80000002]
    assert compare.minimum(a, b, F32, ftz=True).tolist() == [0xC0000000, 0x80000000]
    # min.xorsign.abs: the instruction takes |a| and |b|, the signs are the caller's; here they are the operands'
    assert compare.minimum(a, b, F32, maximum=True, xorsign=True).tolist() == [0xC0400000, 0x80000001]
    assert compare.compare(a, b, F32, compare.CODES.index("EQ"), ftz=True).tolist() == [False, True]


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
def test_integer_codes(dtype, signed):
    edge = [0, 1, 2, 2**31 - 1, 2**31, 2**32 - 1]
    if dtype is np.uint64:
        edge += [2**32, 2**63 - 1, 2**63, 2**64 - 1]
    a, b = (x.reshape(-1) for x in np.meshgrid(np.array(edge, dtype), np.array(edge, dtype)))
    width = np.dtype(dtype).itemsize * 8
    half = 1 << (width - 1)
    for code, name in enumerate(compare.INTEGER_CODES):
        got = compare.compare_integers(a, b, code, signed=signed).tolist()
        pairs = [[(int(v) ^ half) - half if signed else int(v) for v in p] for p in zip(a, b, strict=True)]
        outcomes = ["<" if p < q else ">" if p > q else "=" for p, q in pairs]
        assert got == [o in OUTCOMES[name] for o in outcomes], name
