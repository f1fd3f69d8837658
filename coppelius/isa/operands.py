"""Operand values: what a kernel or a pass hands to a form.

`R(4)`, `-R(4)`, `abs(R(4))`, `UR(4)`, `P(0)`, `~P(0)`, `Constant(0, 0x160)`, plain integers and floats.
Registers of 255 (RZ), 63 (URZ) and 7 (PT, UPT) read as zero and true, and take no write.
An index above the machine's marks a register that an allocator has still to place.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

RZ_INDEX = 255
URZ_INDEX = 63
PT_INDEX = 7


@dataclass(frozen=True)
class R:
    """A general register, or the first of a pair or quad; `half` selects a 16-bit half ('H0_H0', 'H1_H1', 'F32')."""

    index: int
    negate: bool = False
    absolute: bool = False
    reuse: bool = False
    half: str = ""

    def __neg__(self) -> R:
        return replace(self, negate=not self.negate)

    def __abs__(self) -> R:
        return replace(self, absolute=True, negate=False)

    def __invert__(self) -> R:
        return replace(self, negate=not self.negate)


@dataclass(frozen=True)
class UR:
    """A uniform register."""

    index: int
    negate: bool = False
    absolute: bool = False
    half: str = ""

    def __neg__(self) -> UR:
        return replace(self, negate=not self.negate)

    def __abs__(self) -> UR:
        return replace(self, absolute=True, negate=False)


@dataclass(frozen=True)
class P:
    """A predicate register, inverted with `~`."""

    index: int
    inverted: bool = False

    def __invert__(self) -> P:
        return replace(self, inverted=not self.inverted)


@dataclass(frozen=True)
class UP:
    """A uniform predicate register, inverted with `~`."""

    index: int
    inverted: bool = False

    def __invert__(self) -> UP:
        return replace(self, inverted=not self.inverted)


@dataclass(frozen=True)
class Constant:
    """`c[bank][offset]`, the offset in bytes."""

    bank: int
    offset: int
    negate: bool = False
    absolute: bool = False
    half: str = ""

    def __neg__(self) -> Constant:
        return replace(self, negate=not self.negate)

    def __abs__(self) -> Constant:
        return replace(self, absolute=True, negate=False)


@dataclass(frozen=True)
class Address:
    """`[base + uniform + offset]`; `scale` multiplies the base (1, 4, 8, 16), `wide` says that base is a 64-bit pair.

    `descriptor` says that `uniform` only holds the memory descriptor and adds nothing to the address.
    """

    base: R
    offset: int = 0
    uniform: UR | None = None
    scale: int = 1
    wide: bool = False
    descriptor: bool = False

    def __add__(self, offset: int) -> Address:
        return replace(self, offset=self.offset + offset)


@dataclass(frozen=True)
class Special:
    """A special register by nvdisasm's name, for example `SR_TID.X`."""

    name: str


@dataclass(frozen=True)
class Label:
    """A branch target: the ordinal of an instruction of the same program."""

    ordinal: int


RZ = R(RZ_INDEX)
URZ = UR(URZ_INDEX)
PT = P(PT_INDEX)
UPT = UP(PT_INDEX)
