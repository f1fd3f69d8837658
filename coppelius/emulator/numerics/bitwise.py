"""Shifts, byte permutes, three-input logic, bit counts and bit fields of 32-bit words.

SHF shifts the pair high:low by a count and returns one of its words. A count beyond 32 (64 for the 64-bit types)
acts as 32 (64), or wraps with .W; the signed types fill with the sign to the right. LOP3's bit i is the
result where a, b, c spell i in binary, so a table is two tables of (a, b), one for each value of c.
PRMT picks four of the eight bytes of C:A, bit 3 of a choice meaning the byte's sign spread over it. SGXT and BMSK
clamp counts at 32 or wrap them at 32. FLO counts from bit 0, .SH from the top, and finds nothing as all ones.
"""

from collections.abc import Callable

import numpy as np

from coppelius.emulator.numerics.blocks import in_blocks
from coppelius.emulator.numerics.rounding import Array, as_bits, highest_bit

ONES = np.uint32(0xFFFFFFFF)

# PRMT's other modes as the selectors they stand for, by the low two bits of the selector (# published: PTX)
PRMT_MODES = {
    "F4E": (0x3210, 0x4321, 0x5432, 0x6543),
    "B4E": (0x5670, 0x6701, 0x7012, 0x0123),
    "RC8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ECL": (0x3210, 0x3211, 0x3222, 0x3333),
    "ECR": (0x0000, 0x1110, 0x2210, 0x3210),
    "RC16": (0x1010, 0x3232, 0x1010, 0x3232),
}

_Two = Callable[[Array, Array], Array]
# functions of two words by their four-bit table, whose bit 2a + b is the result
_TABLES: list[_Two] = [
    lambda a, b: (a ^ a) & b,
    lambda a, b: ~(a | b),
    lambda a, b: ~a & b,
    lambda a, b: ~a | (b ^ b),
    lambda a, b: a & ~b,
    lambda a, b: ~b | (a ^ a),
    lambda a, b: a ^ b,
    lambda a, b: ~(a & b),
    lambda a, b: a & b,
    lambda a, b: ~(a ^ b),
    lambda a, b: b | (a ^ a),
    lambda a, b: ~a | b,
    lambda a, b: a | (b ^ b),
    lambda a, b: a | ~b,
    lambda a, b: a | b,
    lambda a, b: ~(a ^ a) | b,
]


@in_blocks(3)
def shf(
    low: Array,
    count: Array,
    high: Array,
    *,
    right: bool,
    signed: bool = False,
    wide: bool = False,
    wrap: bool = False,
    take_high: bool = False,
) -> Array:
    """`wide` is the type S64 or U64, `take_high` is .HI."""
    width = 64 if wide else 32
    n = _words(count)
    n = (n & np.uint32(width - 1)) if wrap else np.minimum(n, np.uint32(width))
    pair = (_words(high).astype(np.uint64) << np.uint64(32)) | _words(low)
    # numpy leaves a shift by 64 undefined: go in two steps
    first = np.minimum(n, np.uint32(63)).astype(np.uint64)
    rest = n.astype(np.uint64) - first
    shifted: Array
    if not right:
        shifted = (pair << first) << rest
    elif signed:
        shifted = ((pair.view(np.int64) >> first.view(np.int64)) >> rest.view(np.int64)).view(np.uint64)
    else:
        shifted = (pair >> first) >> rest
    return (shifted >> np.uint64(32) if take_high else shifted).astype(np.uint32)


@in_blocks(3)
def lop3(a: Array, b: Array, c: Array, table: int) -> Array:
    a, b, c = _words(a), _words(b), _words(c)
    without = sum((table >> (2 * i) & 1) << i for i in range(4))
    with_c = sum((table >> (2 * i + 1) & 1) << i for i in range(4))
    if without == with_c:
        return _TABLES[without](a, b) | (c ^ c) if c.size > 1 else _TABLES[without](a, b)
    if with_c == 15 - without:
        return _TABLES[without](a, b) ^ c
    if without == 0:
        return _TABLES[with_c](a, b) & c
    if with_c == 15:
        return _TABLES[without](a, b) | c
    # the bits where c matters, flipped where c is set
    return _TABLES[without](a, b) ^ (_TABLES[without ^ with_c](a, b) & c)


@in_blocks(3)
def prmt(a: Array, selector: Array, c: Array, mode: str = "IDX") -> Array:
    a, selector, c = _words(a), _words(selector), _words(c)
    if mode != "IDX":
        selector = np.array(PRMT_MODES[mode], np.uint32)[selector & np.uint32(3)]
    if selector.size == 1:
        return _permute_alike(a, int(selector.flat[0]), c)
    pair = (c.astype(np.uint64) << np.uint64(32)) | a
    result = np.zeros(np.broadcast_shapes(pair.shape, selector.shape), np.uint32)
    for position in range(4):
        choice = (selector >> np.uint32(4 * position)) & np.uint32(15)
        at = ((choice & np.uint32(7)) << np.uint32(3)).astype(np.uint64)
        byte = ((pair >> at) & np.uint64(0xFF)).astype(np.uint32)
        byte = np.where(choice > 7, _spread(byte, 0), byte)
        result |= byte << np.uint32(8 * position)
    return result


def _permute_alike(a: Array, selector: int, c: Array) -> Array:
    """PRMT by one selector for all: bytes that move alike move together."""
    moves: dict[tuple[int, int], int] = {}
    result = np.zeros(np.broadcast_shapes(a.shape, c.shape), np.uint32)
    for position in range(4):
        choice = selector >> (4 * position) & 15
        source, byte = choice >> 2 & 1, choice & 3
        if choice > 7:
            result |= _spread((a, c)[source], byte) << np.uint32(8 * position)
        else:
            move = source, position - byte
            moves[move] = moves.get(move, 0) | 0xFF << (8 * position)
    for (source, up), mask in moves.items():
        word = (a, c)[source]
        moved = word << np.uint32(8 * up) if up >= 0 else word >> np.uint32(-8 * up)
        result |= moved & np.uint32(mask)
    return result


def _spread(word: Array, byte: int) -> Array:
    """0xff where that byte's sign is set, else 0."""
    ones: Array = ((word >> np.uint32(8 * byte + 7)) & np.uint32(1)) * np.uint32(0xFF)
    return ones


def popc(a: Array) -> Array:
    return np.bitwise_count(_words(a)).astype(np.uint32)


@in_blocks(1)
def flo(a: Array, *, signed: bool = False, shift_amount: bool = False) -> Array:
    """The highest bit that is set, or, signed, that differs from the sign; `shift_amount` is .SH."""
    words = _words(a)
    if signed:
        words = words ^ (words.view(np.int32) >> 31).view(np.uint32)
    position = highest_bit(words.astype(np.uint64))
    found = 31 - position if shift_amount else position
    return np.where(words == 0, ONES, found.astype(np.uint32))


def brev(a: Array) -> Array:
    words = _words(a)
    for step, mask in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F)):
        n, m = np.uint32(step), np.uint32(mask)
        words = ((words >> n) & m) | ((words & m) << n)
    return words.byteswap()


@in_blocks(2)
def sgxt(a: Array, count: Array, *, signed: bool, wrap: bool = False) -> Array:
    """The low `count` bits, extended by their sign or by zeros; of no bits, zero."""
    words, n = _words(a), _count(count, wrap)
    up = np.uint32(32) - n
    first = np.minimum(up, np.uint32(31))
    moved = (words << first) << (up - first)
    if signed:
        kind = first.view(np.int32)
        return ((moved.view(np.int32) >> kind) >> (up - first).view(np.int32)).view(np.uint32)
    cut: Array = (moved >> first) >> (up - first)
    return cut


@in_blocks(2)
def bmsk(start: Array, count: Array, *, wrap: bool = False) -> Array:
    """`count` ones from bit `start` upwards, those past bit 31 lost."""
    begin, n = (_count(x, wrap).astype(np.uint64) for x in (start, count))
    return ((((np.uint64(1) << n) - np.uint64(1)) << begin) & np.uint64(ONES)).astype(np.uint32)


def _count(x: Array, wrap: bool) -> Array:
    words = _words(x)
    return words & np.uint32(31) if wrap else np.minimum(words, np.uint32(32))


def _words(x: Array) -> Array:
    return as_bits(x, np.uint32)
