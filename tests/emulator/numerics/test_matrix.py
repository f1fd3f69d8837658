"""HMMA against a twin that knows only integers: significands shifted right, summed, shifted again."""

import numpy as np
import pytest

from coppelius.emulator.numerics import matrix
from coppelius.emulator.numerics.fragment import accumulator, operand_a, operand_b
from coppelius.emulator.numerics.matrix import TF32
from coppelius.emulator.numerics.rounding import BF16, F16, F32, F64, Rounding, nearest_bf16, nearest_f16

pytestmark = pytest.mark.filterwarnings("error")  # no warning may leak

SHAPES = [(16, F16, F32), (8, F16, F32), (16, F16, F16), (8, F16, F16), (16, BF16, F32), (8, BF16, F32)]
SHAPES += [(8, TF32, F32), (4, TF32, F32)]
NAMES = [f"{depth} {s.name} {t.name}" for depth, s, t in SHAPES]


def parts(bits, fmt):
    """(sign, integer significand, exponent of its leading place), or a name for what is not finite."""
    if fmt is TF32:
        bits &= 0xFFFFE000
    width, fraction = fmt.width, 13 + 10 if fmt is TF32 else fmt.fraction_bits
    bias = 127 if fmt is TF32 else fmt.bias
    sign, field = bits >> (width - 1), (bits >> fraction) & ((1 << (width - 1 - fraction)) - 1)
    low = bits & ((1 << fraction) - 1)
    if field == (1 << (width - 1 - fraction)) - 1:
        return "nan" if low else ("-inf" if sign else "inf")
    return sign, low | (bool(field) << fraction), max(field, 1) - bias, fraction


def scalar_step(a, b, c, source, target):
    """One output element: a and b are lists of bits."""
    terms, special = [], set()
    for x, y in zip(a, b, strict=True):
        p, q = parts(x, source), parts(y, source)
        if isinstance(p, str) or isinstance(q, str):
            zero = any(not isinstance(v, str) and v[1] == 0 for v in (p, q))
            if "nan" in (p, q) or zero:
                special.add("nan")
            else:
                special.add("-inf" if (x ^ y) >> (source.width - 1) else "inf")
        elif p[1] and q[1]:
            terms.append((p[0] ^ q[0], p[1] * q[1], p[2] + q[2], p[3] + q[3]))
    r = parts(c, target)
    if isinstance(r, str):
        special.add(r)
    elif r[1]:
        terms.append(r)
    if special:
        if len(special) > 1 or "nan" in special:
            return target.canonical_nan
        return target.infinity | (target.sign_mask if "-inf" in special else 0)
    top = max([t[2] for t in terms] + [-132 if target is F32 else -20])
    total = 0
    for sign, significand, exponent, fraction in terms:
        # a unit of the sum is 2**(top - 24)
        shift = exponent - fraction - (top - 24)
        moved = significand << shift if shift >= 0 else significand >> -shift
        total += -moved if sign else moved
    return encode(total, top - 24, target)


def encode(total, exponent, target):
    sign, magnitude = (target.sign_mask if total < 0 else 0), abs(total)
    unit = max(magnitude.bit_length() + exponent - 1 - target.fraction_bits, 1 - target.bias - target.fraction_bits)
    shift = unit - exponent
    kept = magnitude >> shift if shift >= 0 else magnitude << -shift
    if target is F16 and shift > 0:
        rest, half = magnitude - (kept << shift), 1 << (shift - 1)
        kept += rest > half or (rest == half and kept & 1)
    field = unit + target.bias + target.fraction_bits - 1
    return sign | min((field << target.fraction_bits) + kept, target.infinity)


def operands(rng, warps, depth, source, target, kind):
    """Registers of every kind of number that a step treats in its own way."""
    width = 32 if source is TF32 else 16

    def draw(shape, fmt, bits):
        raw = rng.integers(0, 1 << bits, shape, dtype=np.uint64).astype(f"u{bits // 8}")
        f, ones = (23 if fmt is TF32 else fmt.fraction_bits), np.uint64(0)
        bias = 127 if fmt is TF32 else fmt.bias
        if kind == "random":
            return raw
        spread = {"near": 3, "wide": 14, "tiny": 4, "huge": 3, "special": 3}[kind]
        centre = {"tiny": 1, "huge": 2 * bias - 3}.get(kind, bias)
        field = np.clip(centre + rng.integers(-spread, spread + 1, shape), 0, 2 * bias).astype(np.uint64)
        sign = (raw.astype(np.uint64) >> np.uint64(bits - 1)) << np.uint64(bits - 1)
        made = sign | (field << np.uint64(f)) | (raw.astype(np.uint64) & np.uint64((1 << f) - 1)) | ones
        made = np.where(rng.random(shape) < 0.05, sign, made)
        if kind == "special":
            top = np.uint64((2 * bias + 1) << f)
            made = np.where(rng.random(shape) < 0.01, sign | top, made)
            made = np.where(rng.random(shape) < 0.002, top | np.uint64(1 << (f - 1)), made)
        return made.astype(f"u{bits // 8}")

    la, lb, lc = operand_a(16, depth, width), operand_b(depth, width), accumulator(16, target.width)
    a = draw((warps, 16 * depth), source, width)
    b = draw((warps, depth * 8), source, width)
    c = draw((warps, 128), target, target.width)
    return (a, b, c), (la.scatter(a), lb.scatter(b), lc.scatter(c)), lc


@pytest.mark.parametrize(("depth", "source", "target"), SHAPES, ids=NAMES)
@pytest.mark.parametrize("kind", ["random", "near", "wide", "tiny", "huge", "special"])
def test_hmma_is_the_integer_twin(depth, source, target, kind, twin):
    rng = np.random.default_rng([depth, SHAPES.index((depth, source, target)), len(kind)])
    (a, b, c), registers, layout = operands(rng, 2, depth, source, target, kind)
    got = layout.gather(matrix.hmma(*registers, depth, source, target))
    step, want = (4 if source is TF32 else 8), []
    for w in range(len(a)):
        x, y = a[w].reshape(16, depth).tolist(), b[w].reshape(depth, 8).T.tolist()
        for m, n in np.ndindex(16, 8):
            total = int(c[w, m * 8 + n])
            for k in range(0, depth, step):
                total = scalar_step(x[m][k : k + step], y[n][k : k + step], total, source, target)
            want.append(total)
    assert twin.differences(got.reshape(-1), want, c.reshape(-1)) == []


def test_a_16816_is_two_1688_the_low_half_first():
    rng = np.random.default_rng(9)
    (a, b, _), (ra, rb, rc), _ = operands(rng, 20, 16, F16, F32, "near")
    whole = matrix.hmma(ra, rb, rc, 16)
    halves = rc
    for k in (0, 8):
        part_a = operand_a(16, 8, 16).scatter(a.reshape(-1, 16, 16)[:, :, k : k + 8].reshape(20, -1))
        part_b = operand_b(8, 16).scatter(b.reshape(-1, 16, 8)[:, k : k + 8].reshape(20, -1))
        halves = matrix.hmma(part_a, part_b, halves, 8)
    assert (whole == halves).all()


def test_accumulation_truncates_and_overflow_is_infinite():
    a, b = np.zeros((1, 16, 16), np.uint16), np.zeros((1, 16, 8), np.uint16)
    a[0, 0, 0], b[0, 0, 0] = 0x3C00, 0x3C00  # 1 * 1
    c = np.full((1, 128), 0x33FFFFFF, np.uint32)  # just under 2**-23: rounding to nearest would add it
    registers = [operand_a(16, 16, 16).scatter(a.reshape(1, -1)), operand_b(16, 16).scatter(b.reshape(1, -1))]
    layout = accumulator(16, 32)
    assert layout.gather(matrix.hmma(*registers, layout.scatter(c), 16))[0, 0] == 0x3F800000
    assert layout.gather(matrix.hmma(*registers, layout.scatter(c), 16, exact=False))[0, 0] == 0x3F800001
    a[0, 0, 0] = b[0, 0, 0] = 0x7F00  # bf16 2**127
    registers = [operand_a(16, 16, 16).scatter(a.reshape(1, -1)), operand_b(16, 16).scatter(b.reshape(1, -1))]
    assert layout.gather(matrix.hmma(*registers, layout.scatter(c), 16, BF16))[0, 0] == 0x7F800000


def one_element(products, source, target):
    """D[0, 0] of a step whose row and column hold these powers: (a, b) values, C zero."""
    a, b = np.zeros((16, 8), np.float32), np.zeros((8, 8), np.float32)
    for k, (x, y) in enumerate(products):
        a[0, k], b[k, 0] = x, y
    packed = [nearest_f16(v) if source is F16 else nearest_bf16(v) for v in (a, b)]
    layout = accumulator(16, target.width)
    layouts = operand_a(16, 8, 16), operand_b(8, 16)
    registers = [x.scatter(v.reshape(1, -1)) for x, v in zip(layouts, packed, strict=True)]
    c = layout.scatter(np.zeros((1, 128), target.dtype))
    return int(layout.gather(matrix.hmma(*registers, c, 8, source, target))[0, 0])


def p(exponent):
    """Two factors of a power of two."""
    return 2.0 ** (exponent // 2), 2.0 ** (exponent - exponent // 2)


def test_alignment_has_a_floor():
    # f32, unit 2**-156: eight terms below 2**-149 add up, a smaller one than the unit is lost
    assert one_element([p(-152)] * 8, BF16, F32) == 1
    assert one_element([p(-149), (-(2.0**-78), 2.0**-79)], BF16, F32) == 1
    assert one_element([p(-149), (-(2.0**-78), 2.0**-78)], BF16, F32) == 0
    # f16, unit 2**-44: half of the smallest subnormal, and a little more
    assert one_element([p(-25), p(-40)], F16, F16) == 1
    assert one_element([p(-25), p(-46)], F16, F16) == 0


def test_a_zero_does_not_take_part_in_the_alignment():
    x = 1 + 2.0**-10
    small = (x * 2.0**-5, x * 2.0**-5)
    alone = one_element([small], F16, F32)
    assert alone == int(np.float32(x * x * 2.0**-10).view(np.uint32))
    assert one_element([small, (0.0, 2.0**15)], F16, F32) == alone
    assert one_element([small, (2.0**-9, 2.0**11)], F16, F32) != alone


@pytest.mark.parametrize(("depth", "source", "target"), SHAPES, ids=NAMES)
def test_fast_mode_is_close_to_the_exact_one(depth, source, target):
    rng = np.random.default_rng(2)
    _, registers, layout = operands(rng, 5, depth, source, target, "near")
    kind = np.float32 if target is F32 else np.float16
    got, want = (
        layout.gather(matrix.hmma(*registers, depth, source, target, exact=e)).view(kind).astype(float)
        for e in (False, True)
    )
    assert np.isfinite(want).all()
    assert np.abs(got - want).max() <= np.abs(want).max() * (2.0**-19 if target is F32 else 2.0**-8)


@pytest.mark.parametrize(("rows", "depth"), [(16, 16), (16, 32), (8, 16)])
@pytest.mark.parametrize("signs", [(True, True), (False, True), (False, False)])
@pytest.mark.parametrize("sat", [False, True])
def test_imma_against_integers(rows, depth, signs, sat):
    rng = np.random.default_rng(4)
    la, lb, lc = operand_a(rows, depth, 8), operand_b(depth, 8), accumulator(rows, 32)
    a, b = rng.integers(0, 256, (3, rows * depth)), rng.integers(0, 256, (3, depth * 8))
    c = rng.choice(np.array([0, 5, 0x7FFFFFF0, 0x80000010], np.uint32), (3, rows * 8))
    a[0], b[0] = 0x80, 0x80
    got = matrix.imma(
        la.scatter(a.astype(np.uint8)),
        lb.scatter(b.astype(np.uint8)),
        lc.scatter(c),
        depth,
        signed_a=signs[0],
        signed_b=signs[1],
        sat=sat,
        rows=rows,
    )
    x, y = (v - 256 * ((v > 127) & s) for v, s in zip((a, b), signs, strict=True))
    total = x.reshape(3, rows, depth) @ y.reshape(3, depth, 8)
    total = total.reshape(3, -1) + c.view(np.int32).astype(int)
    want = np.clip(total, -(2**31), 2**31 - 1) if sat else total
    assert (lc.gather(got) == (want & 0xFFFFFFFF)).all()


def test_dmma_is_a_chain_of_fused_steps(twin):
    rng = np.random.default_rng(6)
    a, b, c = (rng.normal(size=(2, n)).view(np.uint64) for n in (32, 32, 64))
    got = matrix.dmma(operand_a(8, 4, 64).scatter(a), operand_b(4, 64).scatter(b), accumulator(8, 64).scatter(c))
    x, y, want = a.reshape(2, 8, 4), b.reshape(2, 4, 8), []
    for w, m, n in np.ndindex(2, 8, 8):
        total = int(c[w, m * 8 + n])
        for k in range(4):
            total = twin.fma(x[w, m, k], y[w, k, n], total, F64, Rounding.RN)
        want.append(total)
    assert twin.differences(accumulator(8, 64).gather(got).reshape(-1), want) == []
