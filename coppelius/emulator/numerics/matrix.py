"""HMMA on Ampere sums products in steps: 8 of them (f16, bf16) or 4 (tf32) together with C, k upwards.

In a step the products are exact and not normalised. All nine (five) terms are aligned to the largest exponent
among them, truncated toward zero to 24 fractional bits and added exactly; the sum is rounded once,
toward zero to f32 or to nearest f16, and is the C of the next step. Subnormals count; zeros do not take part in the
alignment; no alignment is finer than exponent -132 (f32) or -20 (f16). Past the largest finite value the result
is infinite. Infinities and NaN are settled before the sum; NaN is 0x7fffffff or 0x7fff (# published: the
MMA-Sim and MATLAB tensor-core models; an SM86 card was found to behave as they do).

`exact=False` is a float32 matrix product plus C instead: any order, each sum rounded to nearest.
IMMA is exact. DMMA is a chain of fused multiply-adds, k upwards (# published: MMA-Sim).
Registers are [warps, 32, n] uint32 arrays; negated operands are the caller's sign flips.
"""

from functools import cache

import numpy as np

from coppelius.emulator.numerics import float64
from coppelius.emulator.numerics.fragment import accumulator, operand_a, operand_b
from coppelius.emulator.numerics.half import widen
from coppelius.emulator.numerics.rounding import (
    F16,
    F32,
    Array,
    Format,
    Rounding,
    canonical,
    narrow,
    nearest_f16,
)

TF32 = Format("tf32", 32, 10, 0x7FFFFFFF)  # kept in 32 bits, the low 13 dropped (# published: MMA-Sim)
FRACTION = 24  # bits kept by the alignment (# published)
FLOORS = {F32: -132, F16: -20}  # published: MATLAB tensor-core models
WARPS = 8  # a block: its products are 64 KiB of float64
NO_TERM = -5000  # an exponent below all others


def hmma(
    a: Array,
    b: Array,
    c: Array,
    depth: int,
    source: Format = F16,
    target: Format = F32,
    *,
    exact: bool = True,
) -> Array:
    """D = A * B + C: 16 x 8 x `depth` (16 or 8; tf32 8 or 4) by operand format; C and D f32 or f16."""
    bits = 32 if source is TF32 else 16
    values_a = _values(operand_a(16, depth, bits).gather(a), source)
    values_b = _values(operand_b(depth, bits).gather(b), source)
    layout = accumulator(16, target.width)
    elements = layout.gather(c)
    if not exact:
        return layout.scatter(_fast(values_a, values_b, elements, depth, target))
    result = np.empty_like(elements)
    with np.errstate(all="ignore"):
        for start in range(0, len(elements), WARPS):
            block = slice(start, start + WARPS)
            result[block] = _exact(values_a[block], values_b[block], elements[block], depth, source, target)
    return layout.scatter(result)


def _exact(a: Array, b: Array, sums: Array, depth: int, source: Format, target: Format) -> Array:
    """The steps of one block of warps: operands in float32 values, C in bits."""
    x, y = a.astype(np.float64), b.astype(np.float64)
    ex, ey = _exponents(x, source), _exponents(y, source)
    step = 4 if source is TF32 else 8
    for k in range(0, depth, step):
        take_a, take_b = _pairs(k, step, depth)
        products = x.take(take_a, axis=1) * y.take(take_b, axis=1)
        exponents = ex.take(take_a, axis=1) + ey.take(take_b, axis=1)
        sums = _step(products, exponents, sums, target)
    return sums


@cache
def _pairs(start: int, step: int, depth: int) -> tuple[Array, Array]:
    """For the products [step, 16 * 8] of one step: which element of A and which of B."""
    k, m, n = np.meshgrid(np.arange(start, start + step), np.arange(16), np.arange(8), indexing="ij")
    shape = (step, 128)
    return (m * depth + k).reshape(shape), (k * 8 + n).reshape(shape)


def _step(products: Array, exponents: Array, c_bits: Array, target: Format) -> Array:
    """[warps, step, 128] products and their exponents, [warps, 128] C; the rounded sum."""
    c = _values(c_bits, target).astype(np.float64)
    special = None
    if not (np.isfinite(products).all() and np.isfinite(c).all()):
        lone = np.where(np.isfinite(products), 0.0, products).sum(axis=1)
        special = lone + np.where(np.isfinite(c), 0.0, c)
        products, c = (np.where(np.isfinite(v), v, 0.0) for v in (products, c))
    top = np.maximum(exponents.max(axis=1), _exponents(c, target))
    top = np.maximum(top, FLOORS[target])
    scale = _power(FRACTION - top)
    terms = np.trunc(products * scale[:, None, :])
    total = terms.sum(axis=1) + np.trunc(c * scale)
    # + 0.0: an exact zero is positive
    value = (total + 0.0) * _power(top - FRACTION)
    return _round(value, special, target)


def _round(value: Array, special: Array | None, target: Format) -> Array:
    if target is F32:
        bits = narrow(value, F32, Rounding.RZ)
        bits = bits + (np.abs(value) >= 2.0**128).astype(np.uint32)  # past the largest finite: infinity
    else:
        bits = narrow(value, F16, Rounding.RN)
    if special is None:
        return bits
    chosen = canonical(narrow(special, target, Rounding.RN), target)
    return np.where(np.isfinite(special), bits, chosen)


def _values(bits: Array, fmt: Format) -> Array:
    """float32 values of f16, bf16, tf32 or f32 bits."""
    if fmt.width == 16:
        return widen(bits, fmt)
    return (bits & np.uint32(0xFFFFE000) if fmt is TF32 else bits).view(np.float32)


def _exponents(values: Array, fmt: Format) -> Array:
    """Of float64 values: the format's own exponent, a subnormal's being the smallest; of zeros none."""
    raw = ((values.view(np.int64) >> 52) & 0x7FF).astype(np.int16)
    smallest = np.int16((-14 if fmt is F16 else -126) + 1023)
    exponents = np.maximum(raw, smallest) - np.int16(1023)
    return np.where(raw == 0, np.int16(NO_TERM), exponents)


def _power(exponent: Array) -> Array:
    """2.0 ** exponent, exactly."""
    return ((exponent.astype(np.int64) + 1023) << 52).view(np.float64)


def _fast(a: Array, b: Array, c_bits: Array, depth: int, target: Format) -> Array:
    with np.errstate(all="ignore"):
        product = a.reshape(-1, 16, depth) @ b.reshape(-1, depth, 8)
        total = product.reshape(-1, 128) + _values(c_bits, target)
    return nearest_f16(total) if target is F16 else canonical(total.view(np.uint32), F32)


def imma(
    a: Array,
    b: Array,
    c: Array,
    depth: int,
    *,
    signed_a: bool = True,
    signed_b: bool = True,
    sat: bool = False,
    rows: int = 16,
) -> Array:
    """D = A * B + C on bytes into 32 bits, wrapping or clamped: 16 x 8 x 16 or 32, and 8 x 8 x 16."""
    x = operand_a(rows, depth, 8).gather(a).view(np.int8 if signed_a else np.uint8)
    y = operand_b(depth, 8).gather(b).view(np.int8 if signed_b else np.uint8)
    layout = accumulator(rows, 32)
    # 32 products of bytes stay below 2**21: exact in float32
    left, right = x.astype(np.float32).reshape(-1, rows, depth), y.astype(np.float32).reshape(-1, depth, 8)
    product = (left @ right).reshape(-1, rows * 8).astype(np.int64)
    total = product + layout.gather(c).view(np.int32)
    if sat:
        total = np.clip(total, -(1 << 31), (1 << 31) - 1)
    return layout.scatter(total.astype(np.int32).view(np.uint32))


def dmma(a: Array, b: Array, c: Array, rounding: Rounding = Rounding.RN) -> Array:
    """D = A * B + C on f64, 8 x 8 x 4."""
    x, y = operand_a(8, 4, 64).gather(a), operand_b(4, 64).gather(b)
    layout = accumulator(8, 64)
    total = layout.gather(c)
    row, column = (v.reshape(-1) for v in np.meshgrid(np.arange(8), np.arange(8), indexing="ij"))
    for k in range(4):
        total = float64.fma(x.take(row * 4 + k, axis=1), y.take(k * 8 + column, axis=1), total, rounding)
    return layout.scatter(total)
