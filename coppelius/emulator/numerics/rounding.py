"""A result is the exact value rounded once to its format, in one of four directions.

RN takes the nearest value and, on a tie, the even one; RM, RP and RZ take the neighbour towards minus
infinity, plus infinity or zero. Subnormals are kept here; flushing is the caller's modifier. Beyond the
largest finite value a direction that points inwards gives that value, any other gives infinity.

So two ways lead to a result: a float64 that is exact or rounded to odd (its last bit set when inexact,
which no later single rounding to 51 bits or fewer can tell from the exact value), and, where float64 does not
reach, a 64-bit significand whose last bit is sticky. Not here: signalling flags, which the machine lacks.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Rounding(IntEnum):
    """The two-bit rounding field of the float instructions, in its encoding."""

    RN = 0
    RM = 1
    RP = 2
    RZ = 3


@dataclass(frozen=True)
class Format:
    """A binary floating-point format and the NaN its operations produce."""

    name: str
    width: int
    fraction_bits: int
    canonical_nan: int

    @property
    def exponent_bits(self) -> int:
        return self.width - 1 - self.fraction_bits

    @property
    def bias(self) -> int:
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def sign_mask(self) -> int:
        return 1 << (self.width - 1)

    @property
    def infinity(self) -> int:
        return ((1 << self.exponent_bits) - 1) << self.fraction_bits

    @property
    def smallest_normal(self) -> int:
        return 1 << self.fraction_bits

    @property
    def one(self) -> int:
        return self.bias << self.fraction_bits

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(f"u{self.width // 8}")


F16 = Format("f16", 16, 10, 0x7FFF)  # canonical NaN: published (PTX)
BF16 = Format("bf16", 16, 7, 0x7FFF)  # published (PTX)
F32 = Format("f32", 32, 23, 0x7FFFFFFF)  # published (PTX; CUDART_NAN_F)
F64 = Format("f64", 64, 52, 0xFFF8000000000000)  # published (CUDART_NAN)


def scalar(fmt: Format, value: int) -> Any:
    """`value` as a numpy scalar of the format's width, so that no operation widens."""
    return fmt.dtype.type(value)


def as_bits(x: Array | int, dtype: Any) -> Array:
    """An array of at least one dimension, so that every result is one that can be viewed."""
    if isinstance(x, np.ndarray) and x.dtype == dtype and x.ndim:
        return x
    return np.atleast_1d(np.asarray(x, dtype))


def is_nan(bits: Array, fmt: Format) -> Array:
    magnitude: Array = bits & scalar(fmt, fmt.sign_mask - 1)
    result: Array = magnitude > scalar(fmt, fmt.infinity)
    return result


def flush(bits: Array, fmt: Format) -> Array:
    """Subnormals become zeros of their sign."""
    magnitude = bits & scalar(fmt, fmt.sign_mask - 1)
    # unsigned wrap sends zero to the top, so one comparison finds the subnormals alone
    subnormal = (magnitude - scalar(fmt, 1)) < scalar(fmt, fmt.smallest_normal - 1)
    if not subnormal.any():
        return bits
    return np.where(subnormal, bits & scalar(fmt, fmt.sign_mask), bits)


def select(condition: Array, a: Array, b: Array) -> Array:
    """numpy.where on bit patterns without its branches, which random conditions make ten times slower."""
    mask = np.negative(condition.astype(b.dtype))
    chosen: Array = b ^ ((a ^ b) & mask)
    return chosen


def sign_spread(bits: Array, fmt: Format) -> Array:
    """All ones where the sign is set, else zero."""
    spread: Array = (bits.view(f"i{fmt.width // 8}") >> (fmt.width - 1)).view(fmt.dtype)
    return spread


def saturate(bits: Array, fmt: Format) -> Array:
    """Clamp to [0, 1]; NaN and every negative value, -0 too, become +0."""
    kept = bits & ~sign_spread(bits, fmt)
    nan = kept > scalar(fmt, fmt.infinity)
    if nan.any():
        kept[nan] = 0
    clamped: Array = np.minimum(kept, scalar(fmt, fmt.one))
    return clamped


def relu(bits: Array, fmt: Format) -> Array:
    """Negative values, -0 too, become +0; NaN becomes the canonical one."""
    kept: Array = bits & ~sign_spread(bits, fmt)
    nan = is_nan(bits, fmt)
    if nan.any():
        kept[nan] = fmt.canonical_nan
    return kept


def canonical(bits: Array, fmt: Format) -> Array:
    nan = is_nan(bits, fmt)
    return np.where(nan, scalar(fmt, fmt.canonical_nan), bits) if nan.any() else bits


def sum_to_odd(p: Array, c: Array) -> Array:
    """p + c in the floats' own width, rounded to odd: exact, or truncated with the last bit set.

    Neither may come near the overflow of that width, infinities and NaN excepted.
    """
    s = p + c
    t = s - p
    error = (p - (s - t)) + (c - t)
    signed = np.int64 if s.dtype == np.float64 else np.int32
    bits: Array = s.view(signed)
    # NaN and infinity: the error is NaN and both comparisons are false
    toward = (error > 0) | (error < 0)
    step = 1 - 2 * ((error > 0) != (s > 0)).astype(signed)
    fixed: Array = (bits + step * (toward & ((bits & 1) == 0))).view(s.dtype)
    return fixed


def narrow(value: Array, fmt: Format, mode: Rounding) -> Array:
    """float64 (or float32 to f16) rounded once to the next format; returns the narrow bits."""
    kind = {16: np.float16, 32: np.float32}[fmt.width]
    result = np.atleast_1d(value.astype(kind))
    bits = result.view(fmt.dtype)
    if mode is not Rounding.RN:
        bits = _redirect(np.atleast_1d(value), result.astype(value.dtype), bits, fmt, mode)
    return bits.reshape(value.shape)


def nearest_f16(value: Array) -> Array:
    """float32 to the nearest f16 (uint16 bits), subnormals and overflow included."""
    bits = np.atleast_1d(value).view(np.uint32)
    # adding 2**(e + 13) leaves exactly the ten fraction bits of f16; below 2**-14 the step stays that of 2**-14
    magnitude = np.fmin(np.abs(bits.view(np.float32)), np.float32(65536))
    binade = np.maximum(magnitude.view(np.uint32) & np.uint32(0x7F800000), np.uint32(0x38800000))
    anchor = (binade + np.uint32(13 << 23)).view(np.float32)
    # 2**-112 is the difference of the biases: the f32 pattern, subnormal or not, is then the f16 pattern
    rounded = ((magnitude + anchor) - anchor) * np.float32(2.0**-112)
    packed = (rounded.view(np.uint32) >> np.uint32(13)) | ((bits >> np.uint32(16)) & np.uint32(0x8000))
    result: Array = packed.astype(np.uint16)
    nan = is_nan(bits, F32)
    if nan.any():
        result[nan] = F16.canonical_nan
    return result.reshape(value.shape)


def nearest_bf16(value: Array) -> Array:
    """float32 to the nearest bf16 (uint16 bits)."""
    bits = np.atleast_1d(value).view(np.uint32)
    last = (bits >> np.uint32(16)) & np.uint32(1)
    result: Array = ((bits + (last + np.uint32(0x7FFF))) >> np.uint32(16)).astype(np.uint16)
    nan = is_nan(bits, F32)
    if nan.any():
        result[nan] = BF16.canonical_nan
    return result.reshape(value.shape)


def _redirect(value: Array, nearest: Array, bits: Array, fmt: Format, mode: Rounding) -> Array:
    """Step the nearest value to its neighbour where it lies on the wrong side of the exact one."""
    stepped: Array
    if mode is Rounding.RZ:
        stepped = bits - (np.abs(nearest) > np.abs(value)).astype(fmt.dtype)
        return stepped
    wrong = nearest > value if mode is Rounding.RM else nearest < value
    # away from zero is one pattern up, towards zero one down
    toward_zero = sign_spread(bits, fmt) if mode is Rounding.RP else ~sign_spread(bits, fmt)
    step = toward_zero | scalar(fmt, 1)
    stepped = bits + step * wrong.astype(fmt.dtype)
    return stepped


def highest_bit(x: Array) -> Array:
    """Position of the highest set bit of a uint64 (int64); of zero, a negative number."""
    # clearing the bit below each set bit keeps the conversion from rounding up to the next power of two
    top = x & ~(x >> np.uint64(1))
    position: Array = (np.asarray(top.astype(np.float64)).view(np.int64) >> 52) - 1023
    return position


def normalise(significand: Array, exponent: Array) -> tuple[Array, Array]:
    """Shift so that bit 63 is set; zero stays zero."""
    shift = 63 - np.clip(highest_bit(significand), 0, 63)
    return significand << shift.astype(np.uint64), exponent - shift


def shift_right_sticky(x: Array, count: Array) -> Array:
    """x >> count, the bits lost gathered in the last one; counts over 63 act as 63."""
    n = np.clip(count, 0, 63).astype(np.uint64)
    lost = (x & ((np.uint64(1) << n) - np.uint64(1))) != 0
    shifted: Array = (x >> n) | lost
    return shifted


def unpack(bits: Array, fmt: Format) -> tuple[Array, Array, Array]:
    """Finite bits to (negative, significand with bit 63 set or zero, exponent): value = s * 2**e."""
    wide = bits.astype(np.uint64)
    fraction = wide & np.uint64((1 << fmt.fraction_bits) - 1)
    field = ((wide >> np.uint64(fmt.fraction_bits)) & np.uint64((1 << fmt.exponent_bits) - 1)).astype(np.int64)
    significand = fraction | ((field != 0).astype(np.uint64) << np.uint64(fmt.fraction_bits))
    exponent = np.maximum(field, 1) - fmt.bias - fmt.fraction_bits
    negative = (wide >> np.uint64(fmt.width - 1)) != 0
    return negative, *normalise(significand, exponent)


def round_pack(negative: Array, significand: Array, exponent: Array, fmt: Format, mode: Rounding) -> Array:
    """Round (-1)**negative * significand * 2**exponent to the format; bit 63 set or zero, last bit sticky."""
    top = (1 << fmt.exponent_bits) - 1
    biased = np.minimum(exponent + 63 + fmt.bias, top)
    m = shift_right_sticky(significand, 1 - biased)
    drop = 63 - fmt.fraction_bits
    kept = m >> np.uint64(drop)
    rest = m & np.uint64((1 << drop) - 1)
    half = np.uint64(1 << (drop - 1))
    inexact = rest != 0
    if mode is Rounding.RN:
        up = (rest > half) | ((rest == half) & ((kept & np.uint64(1)) != 0))
    elif mode is Rounding.RZ:
        up = np.zeros_like(inexact)
    else:
        up = inexact & (negative if mode is Rounding.RM else ~negative)
    base = (np.maximum(biased, 1) - 1).astype(np.uint64) << np.uint64(fmt.fraction_bits)
    # `kept` carries the implicit bit, which adds the exponent's last unit; a carry out of it is the next binade
    magnitude = np.where(significand == 0, np.uint64(0), base + kept + up)
    inward = {Rounding.RZ: ~inexact | True, Rounding.RM: ~negative, Rounding.RP: negative}
    limit = np.where(inward.get(mode, False), np.uint64(fmt.infinity - 1), np.uint64(fmt.infinity))
    magnitude = np.where(magnitude >= np.uint64(fmt.infinity), limit, magnitude)
    packed: Array = magnitude | (negative.astype(np.uint64) << np.uint64(fmt.width - 1))
    return packed.astype(fmt.dtype)
