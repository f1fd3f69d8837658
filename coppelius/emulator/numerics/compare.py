"""Comparisons and minima of f16, bf16, f32 and f64.

A comparison code is a set of outcomes: bit 0 less, bit 1 equal, bit 2 greater, bit 3 unordered. That set
is the instruction's own four-bit field, so F is 0 and T is 15, and NUM (7) and NAN (8) need no special case.
A minimum treats -0 as less than +0; if one operand is NaN it gives the other, if both are, or if .NAN is
set and one is, the canonical NaN (# published: PTX). XORSIGN gives the result the product of the operands' signs.
Integer comparison codes are the same with three bits; see `compare_integers`.
"""

from collections.abc import Callable

import numpy as np

from coppelius.emulator.numerics.blocks import in_blocks
from coppelius.emulator.numerics.half import widen
from coppelius.emulator.numerics.rounding import (
    F32,
    F64,
    Array,
    Format,
    as_bits,
    canonical,
    flush,
    is_nan,
    scalar,
    select,
    sign_spread,
)

CODES = ["F", "LT", "EQ", "LE", "GT", "NE", "GE", "NUM", "NAN", "LTU", "EQU", "LEU", "GTU", "NEU", "GEU", "T"]
INTEGER_CODES = ["F", "LT", "EQ", "LE", "GT", "NE", "GE", "T"]


@in_blocks(2)
def compare(a: Array, b: Array, fmt: Format, code: int, *, ftz: bool = False) -> Array:
    a, b = _inputs(a, b, fmt, ftz)
    x, y = (_values(v, fmt) for v in (a, b))
    result = np.zeros(np.broadcast_shapes(x.shape, y.shape), bool)
    with np.errstate(all="ignore"):
        if code & 7 == 7:
            result |= (x == x) & (y == y)
        elif code & 7:
            result |= _ORDERED[(code & 7) - 1](x, y)
        if code & 8:
            result |= (x != x) | (y != y)
    return result


def _apart(x: Array, y: Array) -> Array:
    """Unequal and ordered, which numpy's own != is not."""
    result: Array = (x < y) | (x > y)
    return result


_Test = Callable[[Array, Array], Array]
_ORDERED: list[_Test] = [np.less, np.equal, np.less_equal, np.greater, _apart, np.greater_equal]
_INTEGER: list[_Test] = [*_ORDERED[:4], np.not_equal, np.greater_equal]


@in_blocks(2)
def compare_integers(a: Array, b: Array, code: int, *, signed: bool) -> Array:
    """uint32 or uint64 operands; the three-bit code of ISETP, where 7 is T."""
    if signed:
        a, b = (np.asarray(x).view(f"i{x.dtype.itemsize}") for x in (a, b))
    shape = np.broadcast_shapes(np.shape(a), np.shape(b))
    if code in (0, 7):
        return np.full(shape, code == 7)
    return np.asarray(_INTEGER[code - 1](a, b))


@in_blocks(2)
def minimum(
    a: Array,
    b: Array,
    fmt: Format,
    *,
    maximum: Array | bool = False,
    nan: bool = False,
    xorsign: bool = False,
    ftz: bool = False,
) -> Array:
    """The smaller operand, or where `maximum` (a lane's inverted predicate) holds the greater."""
    a, b = _inputs(a, b, fmt, ftz)
    sign = scalar(fmt, fmt.sign_mask)
    nan_a, nan_b = is_nan(a, fmt), is_nan(b, fmt)
    take_b = (_order(b, fmt) < _order(a, fmt)) ^ np.asarray(maximum)
    take_b = (take_b & ~nan_b) | nan_a
    result = select(take_b, b, a)
    if xorsign:
        result = (result & ~sign) | ((a ^ b) & sign)
    if nan:
        return np.where(nan_a | nan_b, scalar(fmt, fmt.canonical_nan), result)
    return canonical(result, fmt)


def _order(bits: Array, fmt: Format) -> Array:
    """Unsigned keys in the order of the values, -0 just below +0."""
    sign = scalar(fmt, fmt.sign_mask)
    keys: Array = bits ^ (sign_spread(bits, fmt) | sign)
    return keys


def _values(bits: Array, fmt: Format) -> Array:
    if fmt is F32:
        return bits.view(np.float32)
    if fmt is F64:
        return bits.view(np.float64)
    return widen(bits, fmt)


def _inputs(a: Array, b: Array, fmt: Format, ftz: bool) -> tuple[Array, Array]:
    a, b = (as_bits(x, fmt.dtype) for x in (a, b))
    return (flush(a, fmt), flush(b, fmt)) if ftz else (a, b)
