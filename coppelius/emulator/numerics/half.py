"""HADD2, HMUL2 and HFMA2 round the exact result once to f16, HFMA2.BF16_V2 to bf16, always to nearest even.

FTZ flushes f16 subnormals, FMZ makes 0 times anything +0, SAT clamps to [0, 1], RELU to [0, inf): negative values
and -0 become +0, NaN stays. NaN results are 0x7fff (# published: PTX). `.F32` gives the two f16 operands'
exact sum or product rounded to f32 instead.

A result is computed in float32 and rounded again. That misleads only where the float32 value is a tie of the
half format or its product was not exact: there the sum is redone rounded to odd. Functions work on single
halves (uint16); a packed register is two of them, `registers.view(numpy.uint16)`, low half first.
"""

import numpy as np

from coppelius.emulator.numerics.blocks import in_blocks
from coppelius.emulator.numerics.rounding import (
    BF16,
    F16,
    F32,
    Array,
    Format,
    Rounding,
    as_bits,
    canonical,
    flush,
    narrow,
    nearest_bf16,
    nearest_f16,
    saturate,
    sum_to_odd,
)
from coppelius.emulator.numerics.rounding import (
    relu as clamp_negative,
)

_WIDE_F16 = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
SWIZZLES = ("H1_H0", "F32", "H0_H0", "H1_H1")  # the two-bit field of the fp16 sources
_SMALLEST_F16 = np.float32(2.0**-14)
_MAGNITUDE = np.uint16(0x7FFF)
# below this a product of two bf16 may lose bits in float32, above the other it may overflow there
_SAFE_LOW, _SAFE_HIGH = np.float32(2.0**-126), np.float32(2.0**127)


def widen(bits: Array, fmt: Format) -> Array:
    """f16 or bf16 bits as float32 values, exactly."""
    bits = as_bits(bits, np.uint16)
    if fmt is F16:
        return _WIDE_F16.take(bits)
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def swizzle(registers: Array, name: str) -> Array:
    """A packed f16 source as the instruction sees it; F32 is a whole register and stays."""
    registers = np.asarray(registers, np.uint32)
    if name == "H0_H0":
        return (registers & np.uint32(0xFFFF)) * np.uint32(0x10001)
    if name == "H1_H1":
        return (registers >> np.uint32(16)) * np.uint32(0x10001)
    return registers


@in_blocks(2)
def add(a: Array, b: Array, fmt: Format = F16, *, ftz: bool = False, sat: bool = False) -> Array:
    if fmt is BF16:
        return fma(a, np.full(1, BF16.one, np.uint16), b, BF16, ftz=ftz, sat=sat)
    a, b = _inputs(ftz, fmt, a, b)
    with np.errstate(all="ignore"):
        # 24 bits are 2 * 11 + 2: a sum or product rounded there first rounds the same
        return _finish(nearest_f16(widen(a, fmt) + widen(b, fmt)), fmt, ftz, sat, False)


@in_blocks(2)
def mul(a: Array, b: Array, fmt: Format = F16, *, ftz: bool = False, sat: bool = False, fmz: bool = False) -> Array:
    if fmt is BF16:
        return fma(a, b, np.full(1, BF16.sign_mask, np.uint16), BF16, ftz=ftz, sat=sat)
    a, b = _inputs(ftz or fmz, fmt, a, b)
    with np.errstate(all="ignore"):
        return _finish(nearest_f16(_product(a, b, fmt, fmz)), fmt, ftz or fmz, sat, False)


@in_blocks(3)
def fma(
    a: Array,
    b: Array,
    c: Array,
    fmt: Format = F16,
    *,
    ftz: bool = False,
    sat: bool = False,
    fmz: bool = False,
    relu: bool = False,
) -> Array:
    a, b, c = _inputs(ftz or fmz, fmt, a, b, c)
    with np.errstate(all="ignore"):
        product, addend = _product(a, b, fmt, fmz), widen(c, fmt)
        total = product + addend
        suspicious = _may_mislead(a, b, product, total, fmt)
        bits = nearest_f16(total) if fmt is F16 else nearest_bf16(total)
        if suspicious.any():
            a, b, c = (np.broadcast_to(x, total.shape)[suspicious] for x in (a, b, c))
            bits[suspicious] = _fma_to_odd(a, b, c, fmt, fmz)
    return _finish(bits, fmt, ftz or fmz, sat, relu)


@in_blocks(2)
def add_f32(a: Array, b: Array, *, ftz: bool = False, sat: bool = False) -> Array:
    """HADD2.F32: f16 operands, one rounding to f32."""
    a, b = _inputs(ftz, F16, a, b)
    with np.errstate(all="ignore"):
        return _finish((widen(a, F16) + widen(b, F16)).view(np.uint32), F32, ftz, sat, False)


@in_blocks(2)
def mul_f32(a: Array, b: Array, *, ftz: bool = False, sat: bool = False, fmz: bool = False) -> Array:
    """HMUL2.F32: the product of two f16 is exact in f32."""
    a, b = _inputs(ftz or fmz, F16, a, b)
    with np.errstate(all="ignore"):
        return _finish(_product(a, b, F16, fmz).view(np.uint32), F32, ftz, sat, False)


@in_blocks(3)
def fma_f32(
    a: Array,
    b: Array,
    c: Array,
    *,
    ftz: bool = False,
    sat: bool = False,
    fmz: bool = False,
    relu: bool = False,
) -> Array:
    """HFMA2.F32: f16 operands, one rounding to f32."""
    a, b, c = _inputs(ftz or fmz, F16, a, b, c)
    with np.errstate(all="ignore"):
        total = _product(a, b, F16, fmz) + widen(c, F16)
    return _finish(total.view(np.uint32), F32, ftz, sat, relu)


def _product(a: Array, b: Array, fmt: Format, fmz: bool) -> Array:
    product: Array = widen(a, fmt) * widen(b, fmt)
    return np.where(_either_zero(a, b), np.float32(0), product) if fmz else product


def _either_zero(a: Array, b: Array) -> Array:
    zero: Array = ((a & _MAGNITUDE) == 0) | ((b & _MAGNITUDE) == 0)
    return zero


def _may_mislead(a: Array, b: Array, product: Array, total: Array, fmt: Format) -> Array:
    """Where rounding the float32 `total` again may differ from rounding the exact sum once."""
    bits = total.view(np.uint32)
    tie: Array
    small: Array
    if fmt is F16:
        tie = (bits & np.uint32(0x1FFF)) == np.uint32(0x1000)
        small = (np.abs(total) < _SMALLEST_F16) & (total != 0)
        return tie | small
    tie = (bits & np.uint32(0xFFFF)) == np.uint32(0x8000)
    magnitude = np.abs(product)
    unsafe = ~((magnitude >= _SAFE_LOW) & (magnitude < _SAFE_HIGH))
    return tie | (unsafe & ~_either_zero(a, b)) if unsafe.any() else tie


def _fma_to_odd(a: Array, b: Array, c: Array, fmt: Format, fmz: bool) -> Array:
    if fmt is F16:
        return nearest_f16(sum_to_odd(_product(a, b, fmt, fmz), widen(c, fmt)))
    wide = [widen(x, fmt).astype(np.float64) for x in (a, b, c)]
    exact = sum_to_odd(wide[0] * wide[1], wide[2])
    truncated = narrow(exact, F32, Rounding.RZ)
    inexact = truncated.view(np.float32).astype(np.float64) != exact
    return nearest_bf16((truncated | inexact).view(np.float32))


def _finish(bits: Array, fmt: Format, ftz: bool, sat: bool, clamp: bool) -> Array:
    if sat:
        bits = saturate(bits, fmt)
    elif clamp:
        bits = clamp_negative(bits, fmt)
    elif fmt is F32:
        bits = canonical(bits, fmt)
    return flush(bits, fmt) if ftz else bits


def _inputs(ftz: bool, fmt: Format, *operands: Array) -> tuple[Array, ...]:
    arrays = tuple(as_bits(x, np.uint16) for x in operands)
    return tuple(flush(x, fmt) for x in arrays) if ftz else arrays
