"""Registers by name: until an allocator places them, their indices start at 1000.

A virtual index is an ordinary operand, so instructions are built and read the same way before and
after allocation; a word cannot hold one, so a forgotten allocation is refused by the encoder.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from coppelius.isa.operands import UP, UR, P, R
from coppelius.isa.refusal import Refusal

FIRST_VIRTUAL = 1000
OPERANDS: dict[str, type[R] | type[UR] | type[P] | type[UP]] = {"R": R, "UR": UR, "P": P, "UP": UP}


@dataclass(frozen=True)
class Vector(R):
    """A pair or quad of general registers: the operand is its first, `v[i]` is one of them."""

    width: int = 1

    def __getitem__(self, lane: int) -> R:
        if not 0 <= lane < self.width:
            raise IndexError(f"lane {lane} of {self.width} registers")
        return R(self.index + lane)

    def __len__(self) -> int:
        return self.width

    def pair(self, lane: int) -> Vector:
        """Two neighbouring registers from an even lane on."""
        if lane % 2:
            raise IndexError(f"a pair starts at an even lane, not {lane}")
        return Vector(self.index + lane, width=2)


@dataclass(frozen=True)
class UniformVector(UR):
    """A pair of uniform registers."""

    width: int = 1

    def __getitem__(self, lane: int) -> UR:
        if not 0 <= lane < self.width:
            raise IndexError(f"lane {lane} of {self.width} uniform registers")
        return UR(self.index + lane)


@dataclass
class Virtual:
    """A named register: `first` is its virtual index, `pinned` the machine's index if the kernel insists."""

    space: str
    name: str
    first: int
    width: int
    pinned: int | None = None


@dataclass
class Names:
    """All named registers of one kernel, a counter a space."""

    virtuals: list[Virtual] = field(default_factory=list)
    _next: dict[str, int] = field(default_factory=lambda: dict.fromkeys(OPERANDS, FIRST_VIRTUAL))

    def new(self, space: str, name: str, width: int = 1, pinned: int | None = None) -> R | UR | P | UP:
        """A new register of that name; `width` of them, aligned to it."""
        if width not in (1, 2, 4) or (width > 1 and space not in ("R", "UR")):
            raise Refusal(f"register {name}: no {space} register is {width} wide")
        first = -(-self._next[space] // width) * width
        self._next[space] = first + width
        self.virtuals.append(Virtual(space, name, first, width, pinned))
        if space == "R":
            return Vector(first, width=width) if width > 1 else R(first)
        if space == "UR":
            return UniformVector(first, width=width) if width > 1 else UR(first)
        return P(first) if space == "P" else UP(first)

    def copy(self) -> Names:
        """The same names, to which others may be added."""
        return Names(list(self.virtuals), dict(self._next))

    def owner(self, space: str, index: int) -> Virtual | None:
        """The named register that a virtual index belongs to."""
        for virtual in self.virtuals:
            if virtual.space == space and virtual.first <= index < virtual.first + virtual.width:
                return virtual
        return None
