"""F2F, F2FP, F2I, I2F, I2I and FRND: a value moves to another format with one rounding.

A float becomes an integer by rounding to integral, then clamping to the destination's range, infinities too.
NaN becomes zero with .NTZ and 1 << (width - 1) without it (# published: PTX 9.0 gives those two values; ptxas
sets NTZ exactly where PTX says zero, and leaves it out for f64 sources and 64-bit results). Narrow results come
back extended to 32 bits. An integer becomes a float by one rounding; f16 overflows to infinity. FTZ
concerns the f32 side of a conversion alone. NaN stays NaN, in the canonical form.
FRND's and F2I's roundings are Rounding's: FLOOR is RM, CEIL is RP, TRUNC is RZ.
"""

import numpy as np

from coppelius.emulator.numerics.blocks import in_blocks
from coppelius.emulator.numerics.half import widen
from coppelius.emulator.numerics.rounding import (
    BF16,
    F16,
    F32,
    F64,
    Array,
    Format,
    Rounding,
    as_bits,
    canonical,
    flush,
    is_nan,
    narrow,
    nearest_bf16,
    nearest_f16,
    normalise,
    round_pack,
    scalar,
    unpack,
)
from coppelius.emulator.numerics.rounding import (
    relu as clamp_negative,
)

_INTEGRAL = {Rounding.RN: np.rint, Rounding.RM: np.floor, Rounding.RP: np.ceil, Rounding.RZ: np.trunc}


@in_blocks(1)
def f2f(bits: Array, source: Format, target: Format, rounding: Rounding = Rounding.RN, *, ftz: bool = False) -> Array:
    bits = _input(bits, source, ftz)
    with np.errstate(all="ignore"):
        result = _float_to_float(bits, source, target, rounding)
    result = np.where(is_nan(bits, source), scalar(target, target.canonical_nan), result)
    return flush(result, target) if ftz and target is F32 else result


def _float_to_float(bits: Array, source: Format, target: Format, rounding: Rounding) -> Array:
    if target is F64:
        return _double(bits, source).view(np.uint64)
    if source.width == 16:
        wide = widen(bits, source)
        return wide.view(np.uint32) if target is F32 else f2f(wide.view(np.uint32), F32, target, rounding)
    if target is F16 and source is F32 and rounding is Rounding.RN:
        return nearest_f16(bits.view(np.float32))
    if target is F32:
        return narrow(bits.view(np.float64), F32, rounding) if source is F64 else bits
    negative, significand, exponent = unpack(bits, source)
    infinite = (bits & scalar(source, source.sign_mask - 1)) == scalar(source, source.infinity)
    packed = round_pack(negative, significand, exponent, target, rounding)
    sign = negative.astype(target.dtype) << scalar(target, target.width - 1)
    return np.where(infinite, sign | scalar(target, target.infinity), packed)


@in_blocks(2)
def f2fp(
    high: Array,
    low: Array,
    target: Format = F16,
    rounding: Rounding = Rounding.RN,
    *,
    relu: bool = False,
    satfinite: bool = False,
) -> Array:
    """Two f32 to one register of f16 or bf16; the first operand fills the high half."""
    halves = [_pack_half(x, target, rounding, relu, satfinite).astype(np.uint32) for x in (high, low)]
    packed: Array = (halves[0] << np.uint32(16)) | halves[1]
    return packed


def _pack_half(bits: Array, target: Format, rounding: Rounding, clamp: bool, satfinite: bool) -> Array:
    bits = _input(bits, F32, False)
    with np.errstate(all="ignore"):
        if rounding is Rounding.RN:
            half = (nearest_f16 if target is F16 else nearest_bf16)(bits.view(np.float32))
        elif target is BF16 and rounding is Rounding.RZ:
            half = np.where(is_nan(bits, F32), np.uint32(BF16.canonical_nan), bits >> np.uint32(16))
            half = half.astype(np.uint16)
        else:
            half = f2f(bits, F32, target, rounding)
    if satfinite:
        # infinity is clamped like any value out of range (# published: PTX)
        magnitude = half & np.uint16(0x7FFF)
        overflow = magnitude == np.uint16(target.infinity)
        half = np.where(overflow, half - np.uint16(1), half)
    return clamp_negative(half, target) if clamp else half


@in_blocks(1)
def f2i(
    bits: Array,
    source: Format,
    width: int,
    *,
    signed: bool,
    rounding: Rounding = Rounding.RZ,
    ftz: bool = False,
    ntz: bool = False,
) -> Array:
    """uint32, or uint64 for width 64; results narrower than 32 bits are sign- or zero-extended."""
    bits = _input(bits, source, ftz)
    container = np.uint64 if width == 64 else np.uint32
    with np.errstate(all="ignore"):
        value = _INTEGRAL[rounding](_double(bits, source))
        low, high = (-(2.0 ** (width - 1)), 2.0 ** (width - 1)) if signed else (0.0, 2.0**width)
        over, under = value >= high, value < low
        # clamped first, so that the cast is always in range
        inside = np.where(over | under | (value != value), 0.0, value)
        upper = inside >= 2.0**63
        result = np.where(upper, inside - 2.0**63, inside).astype(np.int64).view(np.uint64)
        result |= upper.astype(np.uint64) << np.uint64(63)
    limit = (1 << (width - 1 if signed else width)) - 1
    result = np.where(over, np.uint64(limit), result)
    result = np.where(under, np.uint64(int(low) & (2**64 - 1)), result)
    invalid = 0 if ntz else 1 << (width - 1)
    result = np.where(is_nan(bits, source), np.uint64(invalid), result)
    packed: Array = result.astype(container)
    return packed


@in_blocks(1)
def i2f(
    integers: Array,
    width: int,
    target: Format = F32,
    *,
    signed: bool,
    rounding: Rounding = Rounding.RN,
) -> Array:
    """The low `width` bits of each integer; I2FP is the same for 32 bits to f32."""
    raw = np.atleast_1d(np.asarray(integers)).astype(np.uint64)
    up = np.uint64(64 - width)
    value = (raw << up).view(np.int64) >> up.astype(np.int64) if signed else (raw << up) >> up
    if width <= 32 and target is not F16:
        exact = value.astype(np.float64)
        return exact.view(np.uint64) if target is F64 else narrow(exact, F32, rounding)
    negative = value < 0
    magnitude = np.where(negative, np.negative(value), value).astype(np.uint64)
    significand, exponent = normalise(magnitude, np.zeros(magnitude.shape, np.int64))
    return round_pack(negative, significand, exponent, target, rounding)


@in_blocks(1)
def i2i(integers: Array, width: int, *, source_signed: bool, signed: bool) -> Array:
    """I2I.SAT: a 32-bit integer clamped to `width` bits (8, 16, 32), extended to a whole register."""
    words = as_bits(integers, np.uint32)
    value = (words.view(np.int32) if source_signed else words).astype(np.int64)
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
    return np.clip(value, low, high).astype(np.uint32)


@in_blocks(1)
def frnd(bits: Array, fmt: Format, rounding: Rounding = Rounding.RN, *, ftz: bool = False) -> Array:
    """The nearest integral value in that direction, in the same format; -0.3 upwards is -0."""
    bits = _input(bits, fmt, ftz)
    with np.errstate(all="ignore"):
        if fmt.width == 16:
            value = _INTEGRAL[rounding](widen(bits, fmt))
            result = nearest_f16(value) if fmt is F16 else nearest_bf16(value)
        else:
            kind = np.float32 if fmt is F32 else np.float64
            result = _INTEGRAL[rounding](bits.view(kind)).view(fmt.dtype)
    return canonical(result, fmt)


def _double(bits: Array, source: Format) -> Array:
    if source is F64:
        return bits.view(np.float64)
    values = bits.view(np.float32) if source is F32 else widen(bits, source)
    return values.astype(np.float64)


def _input(bits: Array, source: Format, ftz: bool) -> Array:
    bits = as_bits(bits, source.dtype)
    return flush(bits, F32) if ftz and source is F32 else bits
