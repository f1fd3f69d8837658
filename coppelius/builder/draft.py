"""What a kernel builds before its registers are placed and its control words assigned.

A draft is a list of instructions with virtual registers, labels by name, pins (control fields that the
kernel fixes) and, beside each, the kernel's own file and line.  The body of a counted loop stands in it once,
without counter and branch, until the loop is laid out (`loops`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from coppelius.builder.registers import Names
from coppelius.isa.access import Touch, reads, writes
from coppelius.isa.form import Encoding
from coppelius.isa.operands import R

PIN_FIELDS = frozenset(("stall", "keep", "write_barrier", "read_barrier", "wait"))


@dataclass(frozen=True)
class Source:
    """Where an instruction comes from: file (relative to the package), line, and the region it stands in."""

    file: str
    line: int
    region: str = ""


@dataclass
class Item:
    """One instruction being built; `target` names the label it branches to."""

    encoding: Encoding
    values: list[int]
    source: Source
    target: str | None = None
    pins: Mapping[str, int] = field(default_factory=dict)

    def copy(self) -> Item:
        """Another, whose registers may be placed without placing this one's."""
        return Item(self.encoding, list(self.values), self.source, self.target, self.pins)

    @property
    def reads(self) -> list[Touch]:
        """Registers it reads, virtual or placed."""
        return reads(self.encoding, self.values)

    @property
    def writes(self) -> list[Touch]:
        """Registers it may write."""
        return writes(self.encoding, self.values)

    @property
    def guard(self) -> tuple[int, int]:
        """(predicate, inverted) of its guard; (7, 0) always runs."""
        return self.values[self.encoding.column["guard"]], self.values[self.encoding.column["guard.not"]]

    @property
    def guarded(self) -> bool:
        """Whether it may be skipped."""
        return self.guard != (7, 0)


@dataclass(frozen=True)
class Loop:
    """Instructions `first` to `end - 1` so many times over, not yet laid out.

    least: iterations that there surely are.  stages: how many iterations are to be under way at once; None: as many
    as pay and fit.  marks: the stage of each instruction, where the kernel says it.  apart: spaces of memory in which
    no iteration touches what another writes.  often: iterations that it is judged by.
    """

    name: str
    first: int
    end: int
    count: R | int
    source: Source
    least: int = 0
    stages: int | None = None
    marks: tuple[int, ...] = ()
    apart: tuple[str, ...] = ()
    often: int = 8


@dataclass
class Draft:
    """Instructions in order, label name -> ordinal of the instruction it stands before, named registers, loops."""

    items: list[Item] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    names: Names = field(default_factory=Names)
    loops: list[Loop] = field(default_factory=list)
