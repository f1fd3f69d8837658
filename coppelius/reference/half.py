"""The two half formats, as bit patterns: `uint16` arrays for bf16 and for f16 alike.

Rounding is to nearest, ties to even, once from whatever precision the values have.  NaN stays NaN (the
quiet pattern 0x7fff, as the machine's conversions write it), infinities stay, values past the largest
finite half go to infinity, denormals are kept.  Widening is exact.

A bit pattern is kept rather than numpy's float16 because numpy has no bf16, and because kernels that move
halves must keep the bits of a NaN.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Bits = NDArray[np.uint16]
Floats = NDArray[np.float64]


class Format(NamedTuple):
    """A binary format: explicit mantissa bits, exponents of its smallest and largest normal numbers."""

    mantissa: int
    least_exponent: int
    most_exponent: int


F32 = Format(23, -126, 127)
FORMATS = {"bf16": Format(7, -126, 127), "f16": Format(10, -14, 15)}
NAN_BITS = 0x7FFF


def format_of(half: str) -> Format:
    """The format of that name."""
    if half not in FORMATS:
        raise ValueError(f"half format {half!r}: known formats are {', '.join(FORMATS)}")
    return FORMATS[half]


def spacing(values: ArrayLike, form: Format) -> Floats:
    """The distance between neighbouring numbers of the format at each value's magnitude."""
    wide = np.asarray(values, np.float64)
    # frexp gives [0.5, 1) times 2^exponent, and exponent 0 for 0; 0 and denormals have the least spacing
    exponent = np.where(wide == 0, form.least_exponent, np.frexp(wide)[1].astype(np.int64) - 1)
    exponent = np.clip(exponent, form.least_exponent, form.most_exponent)
    return np.asarray(np.ldexp(1.0, exponent - form.mantissa), np.float64)


def ulp(values: ArrayLike, half: str) -> Floats:
    """The distance between neighbouring halves at each value's magnitude."""
    return spacing(values, format_of(half))


def round_half(values: ArrayLike, half: str) -> Floats:
    """The nearest halves as float64, ties to even."""
    form = format_of(half)
    with np.errstate(invalid="ignore"):  # signalling NaN among the values
        wide = np.asarray(values, np.float64)
        unit = spacing(np.where(np.isfinite(wide), wide, 0.0), form)
        # a power of two scales exactly, and rint rounds ties to even
        rounded = np.rint(wide / unit) * unit
    overflow = np.abs(rounded) >= 2.0 ** (form.most_exponent + 1)
    return np.asarray(np.where(overflow, np.copysign(np.inf, wide), rounded))


def to_bits(values: ArrayLike, half: str) -> Bits:
    """The bit patterns of the values rounded to the half format."""
    rounded = round_half(values, half)
    if half == "f16":
        bits = rounded.astype(np.float16).view(np.uint16)
    else:
        bits = (rounded.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return np.where(np.isnan(rounded), np.uint16(NAN_BITS), bits)


def from_bits(bits: NDArray[Any], half: str) -> Floats:
    """The values of the bit patterns, exactly."""
    format_of(half)
    words = np.ascontiguousarray(bits, np.uint16)
    with np.errstate(invalid="ignore"):  # a signalling NaN widens to a quiet one
        if half == "f16":
            return words.view(np.float16).astype(np.float64)
        return (words.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def is_nan(bits: NDArray[Any], half: str) -> NDArray[np.bool_]:
    """Which bit patterns are NaN."""
    return np.isnan(from_bits(bits, half))
