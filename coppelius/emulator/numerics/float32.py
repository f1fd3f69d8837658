"""FADD, FMUL and FFMA round the exact result once to f32, in any of the four directions.

FTZ flushes subnormal inputs and results to zeros of their sign (a result is judged after rounding: # assumed).
SAT clamps the result to [0, 1] and turns NaN and -0 into +0. FMZ makes 0 times anything +0, flushes like
FTZ and leaves the addend alone. Every NaN result is 0x7fffffff (# published: PTX).

The product of two f32 is exact in float64, so a fused result is one float64 sum away: where that sum's
low bits could mislead the second rounding (a tie, or a subnormal result) it is redone rounded to odd.
Left out: payload propagation, which the machine does not do for f32.
"""

import numpy as np

from coppelius.emulator.numerics.blocks import in_blocks
from coppelius.emulator.numerics.rounding import (
    F32,
    Array,
    Rounding,
    as_bits,
    canonical,
    flush,
    narrow,
    saturate,
    sum_to_odd,
)

TIE = np.int64(1 << 28)  # float64 has 29 bits below f32's last
BELOW = np.int64((1 << 29) - 1)
SIGN = np.uint32(0x80000000)
SMALLEST_NORMAL = 2.0**-126


@in_blocks(2)
def add(a: Array, b: Array, rounding: Rounding = Rounding.RN, *, ftz: bool = False, sat: bool = False) -> Array:
    a, b = _inputs(ftz, a, b)
    with np.errstate(all="ignore"):
        if rounding is Rounding.RN:
            return _finish((_floats(a) + _floats(b)).view(np.uint32), ftz, sat)
        p, c = _doubles(a), _doubles(b)
        bits = _signed_zero(narrow(sum_to_odd(p, c), F32, rounding), p, c, rounding)
    return _finish(bits, ftz, sat)


@in_blocks(2)
def mul(
    a: Array,
    b: Array,
    rounding: Rounding = Rounding.RN,
    *,
    ftz: bool = False,
    sat: bool = False,
    fmz: bool = False,
    scale: int = 0,
) -> Array:
    """a * b * 2**scale; `scale` is -1, -2, -3 for .D2, .D4, .D8 and 1, 2, 3 for .M2, .M4, .M8."""
    ftz = ftz or fmz
    a, b = _inputs(ftz, a, b)
    with np.errstate(all="ignore"):
        if rounding is Rounding.RN and not scale:
            bits = (_floats(a) * _floats(b)).view(np.uint32)
        else:
            # the scale is applied before the only rounding (# assumed)
            bits = narrow(_doubles(a) * _doubles(b) * 2.0**scale, F32, rounding)
    if fmz:
        bits = np.where(_either_zero(a, b), np.uint32(0), bits)
    return _finish(bits, ftz, sat)


@in_blocks(3)
def fma(
    a: Array,
    b: Array,
    c: Array,
    rounding: Rounding = Rounding.RN,
    *,
    ftz: bool = False,
    sat: bool = False,
    fmz: bool = False,
) -> Array:
    ftz = ftz or fmz
    a, b, c = _inputs(ftz, a, b, c)
    with np.errstate(all="ignore"):
        product = _doubles(a) * _doubles(b)
        if fmz:
            product = np.where(_either_zero(a, b), 0.0, product)
        addend = _doubles(c)
        if rounding is Rounding.RN:
            bits = _nearest_sum(product, addend)
        else:
            exact = sum_to_odd(product, addend)
            bits = _signed_zero(narrow(exact, F32, rounding), product, addend, rounding)
    return _finish(bits, ftz, sat)


@in_blocks(2)
def division_needs_care(a: Array, b: Array) -> Array:
    """FCHK.DIVIDE: whether a / b must leave the short sequence of a reciprocal and its corrections.

    The machine's own limits are not published. These are strict (# assumed): a numerator whose
    remainder could be subnormal, a denominator or quotient near the ends of the range. Either way gives
    the same quotient, so only the path taken may differ.
    """
    ea, eb = (((x >> np.uint32(23)) & np.uint32(0xFF)).astype(np.int16) - np.int16(127) for x in _inputs(False, a, b))
    ordinary = (ea >= -100) & (ea <= 126) & (eb >= -125) & (eb <= 125) & (ea - eb >= -100) & (ea - eb <= 125)
    care: Array = ~ordinary
    return care


def _nearest_sum(product: Array, addend: Array) -> Array:
    """product + addend to nearest f32, both exact float64 well inside the range."""
    total = product + addend
    bits: Array = total.astype(np.float32).view(np.uint32)
    suspicious = (total.view(np.int64) & BELOW) == TIE
    suspicious |= np.abs(total) < SMALLEST_NORMAL
    if suspicious.any():
        suspicious &= total != 0
        product, addend = (np.broadcast_to(x, total.shape)[suspicious] for x in (product, addend))
        bits[suspicious] = sum_to_odd(product, addend).astype(np.float32).view(np.uint32)
    return bits


def _signed_zero(bits: Array, p: Array, c: Array, rounding: Rounding) -> Array:
    """Towards minus infinity an exact zero sum is -0 unless both terms are +0."""
    if rounding is not Rounding.RM:
        return bits
    zero = (p + c) == 0
    return np.where(zero & (np.signbit(p) | np.signbit(c)), SIGN, bits)


def _finish(bits: Array, ftz: bool, sat: bool) -> Array:
    if sat:
        bits = saturate(bits, F32)
    elif _has_nan(bits):
        bits = canonical(bits, F32)
    return flush(bits, F32) if ftz else bits


def _has_nan(bits: Array) -> bool:
    values = bits.view(np.float32)
    return bool((values != values).any())


def _inputs(ftz: bool, *operands: Array) -> tuple[Array, ...]:
    # at least one dimension, so that every result is an array that can be viewed
    arrays = tuple(as_bits(x, np.uint32) for x in operands)
    return tuple(flush(x, F32) for x in arrays) if ftz else arrays


def _floats(bits: Array) -> Array:
    return bits.view(np.float32)


def _doubles(bits: Array) -> Array:
    wide: Array = bits.view(np.float32).astype(np.float64)
    return wide


def _either_zero(a: Array, b: Array) -> Array:
    zero: Array = ((a & ~SIGN) == 0) | ((b & ~SIGN) == 0)
    return zero
