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

import math
import threading
from functools import cache
from typing import Any

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
WARPS = 64  # a block: its products are 256 KiB of float32, still in the second-level cache
FLOAT32_REACH = 51  # of an operand's exponent, for products and scales that float32 holds
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


def _exact(a: Array, b: Array, c_bits: Array, depth: int, source: Format, target: Format) -> Array:
    """The steps of one block of warps: operands as float32 values, C and the result as bits."""
    # warps last, so that every inner loop runs over them
    x, y, sums = (np.ascontiguousarray(v.T) for v in (a, b, c_bits))
    ex, ey = _exponents(x, source), _exponents(y, source)
    finite = bool(np.isfinite(x).all() and np.isfinite(y).all())
    if not (finite and _narrow_enough(ex, ey)):
        x, y = x.astype(np.float64), y.astype(np.float64)
    step = 4 if source is TF32 else 8
    for k in range(0, depth, step):
        take_a, take_b = _pairs(k, step, depth)
        exponents = _taken(ex, take_a, 0)
        exponents += _taken(ey, take_b, 1)
        products = _taken(x, take_a, 2)
        products *= _taken(y, take_b, 3)
        sums = _step(products, exponents.max(axis=0), sums, target, finite)
    return sums.T


_room = threading.local()


def _space(slot: int, shape: tuple[int, ...], dtype: Any) -> Array:
    """Working memory that stays: fresh pages from the system would cost more than the arithmetic."""
    spaces: dict[int, Array] = _room.__dict__.setdefault("spaces", {})
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if slot not in spaces or spaces[slot].size < size:
        spaces[slot] = np.empty(size, np.uint8)
    room: Array = spaces[slot][:size].view(dtype).reshape(shape)
    return room


def _taken(rows: Array, index: Array, slot: int) -> Array:
    """rows[index], in the slot's memory, where the caller may change it."""
    out = _space(slot, (*index.shape, rows.shape[1]), rows.dtype)
    # clip, because numpy would buffer the output of its checking mode
    rows.take(index, axis=0, out=out, mode="clip")
    return out


@cache
def _pairs(start: int, step: int, depth: int) -> tuple[Array, Array]:
    """For the products [step, 16 * 8] of one step: which element of A and which of B."""
    k, m, n = np.meshgrid(np.arange(start, start + step), np.arange(16), np.arange(8), indexing="ij")
    shape = (step, 128)
    return (m * depth + k).reshape(shape), (k * 8 + n).reshape(shape)


def _narrow_enough(ex: Array, ey: Array) -> bool:
    """Whether every product is exact in float32 and so is its aligned value."""
    low = min(int(np.where(e == NO_TERM, np.int16(0), e).min()) for e in (ex, ey))
    return low >= -FLOAT32_REACH and max(int(ex.max()), int(ey.max())) <= FLOAT32_REACH


def _step(products: Array, top: Array, c_bits: Array, target: Format, finite: bool) -> Array:
    """[step, 128, warps] products, the largest of their exponents, C as bits; the rounded sum as bits."""
    c = _values(c_bits, target)
    top = np.maximum(np.maximum(top, _exponents(c, target)), np.int16(FLOORS[target]))
    c = c.astype(np.float64)
    special = None
    if not (finite and np.isfinite(c).all()):
        lone = np.where(np.isfinite(products), 0.0, products).sum(axis=0)
        special = lone + np.where(np.isfinite(c), 0.0, c)
        products, c = (np.where(np.isfinite(v), v, v.dtype.type(0)) for v in (products, c))
    scale = _power(FRACTION - top)
    total = np.trunc(c * scale).astype(np.int32)
    # in float32 the scale must be finite: a smaller one leaves products all zero in place and loses none
    factor = scale if products.dtype == np.float64 else np.minimum(scale, 2.0**127).astype(np.float32)
    products *= factor
    # the cast truncates toward zero; nine terms below 2**26 stay below 2**30
    aligned = _space(4, products.shape, np.int32)
    np.copyto(aligned, products, casting="unsafe")
    total += aligned.sum(axis=0, dtype=np.int32)
    return _round(total * _power(top - FRACTION), special, target)


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
    """Of float32 values: the format's own exponent, a subnormal's being the smallest; of zeros none."""
    raw = ((values.view(np.uint32) >> np.uint32(23)) & np.uint32(0xFF)).astype(np.int16)
    smallest = np.int16((-14 if fmt is F16 else -126) + 127)
    exponents = np.maximum(raw, smallest) - np.int16(127)
    exponents[values == 0] = NO_TERM
    return exponents


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
