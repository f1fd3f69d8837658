"""Integer arithmetic wraps modulo 2**32 (or 2**64); carries are separate boolean results.

IADD3 adds three numbers and up to two carries, so its sum reaches over 2**33 and leaves two carry bits, the
second set only when the sum passes 2**33 (# assumed order: the first is the sum at least 2**32). A
negated operand is its complement plus one, not wrapped, so that a subtraction's carry means "no borrow" for a
subtrahend of zero too (# published: what ptxas makes of sub.cc and subc); under .X negation is the complement
alone. IMAD.HI and IMAD.WIDE add a 64-bit C (# published: ptxas pairs mad.hi's C with a zero low half).
"""

import numpy as np

from coppelius.emulator.numerics.blocks import in_blocks
from coppelius.emulator.numerics.rounding import Array, as_bits, select

LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)


@in_blocks(3)
def imad(a: Array, b: Array, c: Array, *, negate_c: bool = False) -> Array:
    """The low word of a * b + c."""
    product: Array = _words(a) * _words(b)
    return product - _words(c) if negate_c else product + _words(c)


def imad_carry(a: Array, b: Array, c: Array, carry: Array, *, negate_c: bool = False) -> Array:
    """IMAD.X: the low word of a * b + c + carry, where negation of c is its complement."""
    addend = ~_words(c) if negate_c else _words(c)
    total: Array = _words(a) * _words(b) + addend + np.asarray(carry).astype(np.uint32)
    return total


@in_blocks(3)
def imad_wide(a: Array, b: Array, c: Array, *, signed: bool, carry: Array | bool = False) -> tuple[Array, Array]:
    """a * b + c + carry in 64 bits, c uint64, and the carry out of bit 63 of the addition to the product."""
    product = _wide(a, signed) * _wide(b, signed)
    total: Array = product + np.asarray(c, np.uint64)
    over = total < product
    if carry is False:
        return total, over
    one = np.asarray(carry).astype(np.uint64)
    return total + one, over | ((total + one) < one)


@in_blocks(3)
def imad_hi(a: Array, b: Array, c: Array, *, signed: bool, carry: Array | bool = False) -> tuple[Array, Array]:
    """The high word of a * b + c + carry, c uint64, and the carry out."""
    total, out = imad_wide(a, b, c, signed=signed, carry=carry)
    return (total >> HALF).astype(np.uint32), out


@in_blocks(3)
def iadd3(a: Array, b: Array, c: Array, *, negate: tuple[bool, bool, bool] = (False,) * 3) -> Array:
    """The sum alone, where nobody reads a carry."""
    terms = [np.negative(_words(x)) if n else _words(x) for x, n in zip((a, b, c), negate, strict=True)]
    total: Array = terms[0] + terms[1] + terms[2]
    return total


def iadd3_carry(
    a: Array,
    b: Array,
    c: Array,
    carries: tuple[Array | bool, Array | bool] = (False, False),
    *,
    negate: tuple[bool, bool, bool] = (False,) * 3,
    extended: bool = False,
) -> tuple[Array, Array, Array]:
    """Sum and both carries out; `extended` is .X, where `negate` means complement and `carries` count."""
    total: Array = np.zeros(1, np.uint64)
    for operand, negated in zip((a, b, c), negate, strict=True):
        word = ~_words(operand) if negated else _words(operand)
        total = total + word + np.uint64(negated and not extended)
    if extended:
        for carry in carries:
            total = total + np.asarray(carry).astype(np.uint64)
    return (total & LOW).astype(np.uint32), total > LOW, (total >> HALF) > 1


def lea(
    a: Array, b: Array, shift: int, *, negate_a: bool = False, carry: Array | bool | None = None
) -> tuple[Array, Array]:
    """(a << shift) + b and its carry; `carry` not None is .X, where negation is the complement."""
    return _lea_sum(_words(a) << np.uint32(shift), b, negate_a, carry)


def lea_hi(
    a: Array,
    b: Array,
    c: Array | None,
    shift: int,
    *,
    negate_a: bool = False,
    carry: Array | bool | None = None,
) -> tuple[Array, Array]:
    """The high word of the pair c:a shifted left, plus b; `c` None is .SX32, a's sign. `carry` not None is .X."""
    low = _words(a)
    high = (low.view(np.int32) >> 31).view(np.uint32) if c is None else _words(c)
    pair = (high.astype(np.uint64) << HALF) | low
    if negate_a and carry is None:
        pair = np.negative(pair)  # assumed: the whole pair is negated before the shift
    scaled = ((pair << np.uint64(shift)) >> HALF).astype(np.uint32)
    return _lea_sum(scaled, b, negate_a and carry is not None, carry)


def _lea_sum(scaled: Array, b: Array, negate: bool, carry: Array | bool | None) -> tuple[Array, Array]:
    word = ~scaled if negate else scaled
    extra = np.uint64(negate) if carry is None else np.asarray(carry).astype(np.uint64)
    total = word.astype(np.uint64) + _words(b) + extra
    return (total & LOW).astype(np.uint32), total > LOW


@in_blocks(2)
def minimum(a: Array, b: Array, *, signed: bool, maximum: Array | bool = False) -> Array:
    """IMNMX, and the 64-bit minima of atomics: the operands' width decides."""
    a, b = np.atleast_1d(a), np.atleast_1d(b)
    kind = f"i{a.dtype.itemsize}" if signed else a.dtype
    return select((b.view(kind) < a.view(kind)) ^ np.asarray(maximum), b, a)


def iabs(a: Array) -> Array:
    """-2**31 stays."""
    return np.abs(_words(a).view(np.int32)).view(np.uint32)


@in_blocks(3)
def idp4a(a: Array, b: Array, c: Array, *, signed_a: bool, signed_b: bool) -> Array:
    """c plus the four products of bytes."""
    total: Array = _words(c)
    for k in range(4):
        total = total + _part(a, 8, k, signed_a) * _part(b, 8, k, signed_b)
    return total


@in_blocks(3)
def idp2a(a: Array, b: Array, c: Array, *, signed_a: bool, signed_b: bool, high: bool) -> Array:
    """c plus the products of a's two halves with b's low, or high, two bytes."""
    total: Array = _words(c)
    for k in range(2):
        total = total + _part(a, 16, k, signed_a) * _part(b, 8, k + 2 * high, signed_b)
    return total


def _part(word: Array, width: int, index: int, signed: bool) -> Array:
    up = np.uint32(32 - width * (index + 1))
    moved = _words(word) << up
    if signed:
        return (moved.view(np.int32) >> (32 - width)).view(np.uint32)
    part: Array = moved >> np.uint32(32 - width)
    return part


def _words(x: Array) -> Array:
    return as_bits(x, np.uint32)


def _wide(x: Array, signed: bool) -> Array:
    words = _words(x)
    return words.view(np.int32).astype(np.int64).view(np.uint64) if signed else words.astype(np.uint64)
