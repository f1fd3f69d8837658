"""Bit ranges and fields: each bit of a word belongs to the opcode, to one field, to a fixed value, or is reserved zero.

`bits[23:16]` and `bits[72]` are written as a manual writes them; `bits[90:87] + bits[75:73]` joins two
ranges, the first one on top.  A field may hold its value inverted, signed, or limited to certain codes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coppelius.isa.word import Column, Words, deposit, extract


@dataclass(frozen=True)
class Bits:
    """Ranges of bit positions, (lowest bit, width) each, the least significant range first."""

    parts: tuple[tuple[int, int], ...]

    def __add__(self, lower: Bits) -> Bits:
        return Bits(lower.parts + self.parts)

    @property
    def width(self) -> int:
        return sum(width for _, width in self.parts)

    @property
    def mask(self) -> int:
        """The 128-bit mask of these positions."""
        return sum(((1 << width) - 1) << low for low, width in self.parts)

    def place(self, value: int) -> int:
        """`value` spread over these positions of a 128-bit word."""
        word = 0
        for low, width in self.parts:
            word |= (value & ((1 << width) - 1)) << low
            value >>= width
        return word

    def take(self, word: int) -> int:
        """The value these positions hold in a 128-bit word."""
        value, shift = 0, 0
        for low, width in self.parts:
            value |= (word >> low & ((1 << width) - 1)) << shift
            shift += width
        return value


class _BitsFactory:
    def __getitem__(self, key: int | slice) -> Bits:
        if isinstance(key, slice):
            high, low = int(key.start), int(key.stop)
            if not 0 <= low <= high < 128:
                raise ValueError(f"bits[{high}:{low}] is no range of a 128-bit word")
            return Bits(((low, high - low + 1),))
        return Bits(((key, 1),))


bits = _BitsFactory()


@dataclass(frozen=True)
class Field:
    """A named value inside the word.

    `codes`: the legal values (None: all).  `invert`: XORed between value and stored bits.
    `default`: what an instruction gets that does not say.
    """

    name: str
    bits: Bits
    codes: frozenset[int] | None = None
    signed: bool = False
    invert: int = 0
    default: int = 0

    @property
    def width(self) -> int:
        return self.bits.width

    @property
    def low(self) -> int:
        """The least legal value."""
        return -(1 << (self.width - 1)) if self.signed else 0

    @property
    def high(self) -> int:
        """The greatest legal value."""
        return (1 << (self.width - 1)) - 1 if self.signed else (1 << self.width) - 1

    def admits(self, value: int) -> bool:
        """Whether the word can hold `value` and the machine gives it a meaning."""
        return self.low <= value <= self.high and (self.codes is None or value in self.codes)

    def constant_bits(self) -> tuple[int, int]:
        """Bits that all legal stored codes agree on: their mask and their value."""
        if not self.codes:
            return 0, 0
        every = (1 << self.width) - 1
        stored = [(code ^ self.invert) & every for code in self.codes]
        common, union = every, 0
        for code in stored:
            common &= code
            union |= code
        return every & ~(common ^ union), common

    def read(self, words: Words) -> Column:
        """The field of each word, `int64[n]`."""
        (low, width), *more = self.bits.parts
        value = extract(words, low, width)
        for low, part in more:
            value |= extract(words, low, part) << width
            width += part
        if self.invert:
            value ^= self.invert
        if self.signed:
            sign = np.int64(1 << (width - 1))
            value = (value ^ sign) - sign
        return value

    def write(self, words: Words, values: Column) -> None:
        """Or the field into each word, in place; the caller has checked `admits`."""
        if self.invert:
            values = values ^ self.invert
        for low, width in self.bits.parts:
            deposit(words, low, width, values)
            values = values >> width
