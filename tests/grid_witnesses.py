"""The smallest distance that the vendor leaves between dependent instructions, by cell of the latency grid.

Reads shipped kernels (any cubins below the folder) and those compiled from tests/data: CUDA sources, probes of the
tensor cores.  Distances add stalls along each straight run; a branch that may fall through does not end one.  Left
out: pairs under opposite guards, pairs that a scoreboard covers, what follows a jump, and two writes with a read
between them, which that read keeps apart.

A cell with 20 or more witnesses must hold the smallest distance seen, or `latency_reasons` says why it does not.
"""

from __future__ import annotations

import lzma
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from coppelius.check.facts import Facts, facts_of
from coppelius.check.fixed_latency import DRAIN
from coppelius.check.scan import exclusive
from coppelius.check.shape import PLAIN, RAW_COLUMNS, RAW_ROWS, WAR_COLUMNS, WAR_ROWS, WAW_COLUMNS
from coppelius.container.cubin import Kernel
from coppelius.container.reader import read_kernels
from coppelius.isa import latency
from coppelius.isa.codec import decode
from coppelius.isa.form import TENSOR
from coppelius.isa.latency_reasons import REASONS
from coppelius.isa.refusal import Refusal
from coppelius.isa.table import sm86
from coppelius.isa.targets.latencies import Cell as Held
from coppelius.isa.word import from_bytes

DATA = Path(__file__).resolve().parent / "data"
ENOUGH = 20  # witnesses

# (table, row, column)
Cell = tuple[str, str, str]


@dataclass
class Seen:
    """Distances of one cell: how many pairs, the least, how many at the least, and one of those."""

    count: int = 0
    least: int = 1 << 30
    at_least: int = 0
    example: tuple[str, int, int] = ("", 0, 0)

    def add(self, distance: int, place: tuple[str, int, int]) -> None:
        self.count += 1
        if distance < self.least:
            self.least, self.at_least, self.example = distance, 0, place
        self.at_least += distance == self.least


@dataclass
class Derived:
    """All cells; `shapes`: read after write by MMA name and column."""

    kernels: int = 0
    instructions: int = 0
    cells: dict[Cell, Seen] = field(default_factory=dict)
    shapes: dict[tuple[str, str], Seen] = field(default_factory=dict)

    def add(self, kernel: Kernel) -> None:
        """One kernel's pairs."""
        words = from_bytes(kernel.code)
        decoded = decode(sm86(), words)
        if (decoded.uids < 0).any():
            return
        self.kernels += 1
        self.instructions += len(words)
        _Run(self, f"{kernel.origin} {kernel.name}", facts_of(decoded, words)).scan()

    def disagreements(self) -> list[str]:
        """Cells with enough witnesses that hold another number and name no reason; reasons that are none."""
        found = []
        for cell, seen in sorted(self.cells.items()):
            cycles, reason = expected(cell), REASONS.get(cell)
            if seen.count >= ENOUGH and seen.least != cycles and reason is None:
                found.append(f"{cell}: holds {cycles}, seen {seen}")
            if reason is not None and seen.count >= ENOUGH and seen.least == cycles:
                found.append(f"{cell}: is {cycles} as seen, needs no reason")
            if seen.count >= ENOUGH and seen.least == cycles and mark(cell) != "m":
                found.append(f"{cell}: is marked {mark(cell)!r}, and seen {seen.count} times")
        return found

    def below(self) -> list[str]:
        """Cells that some pair undercuts: a false alarm each."""
        return [f"{c}: holds {expected(c)}, seen {s}" for c, s in sorted(self.cells.items()) if s.least < expected(c)]


def held(cell: Cell) -> Held:
    """What the grid holds."""
    table, row, column = cell
    if table == "RAW":
        return latency.raw_cell(row, column)
    if table == "WAR":
        return latency.war_cell(row, column)
    return latency.waw_cell(row, column, predicated=table == "WAW guarded")


def expected(cell: Cell) -> int:
    """Its cycles."""
    return held(cell).cycles


def mark(cell: Cell) -> str:
    """Its witness; that of a guarded first writer is written nowhere."""
    return "m" if cell[0] == "WAW guarded" else held(cell).witness


class _Run:
    """One kernel front to back: who last wrote and read each register."""

    def __init__(self, into: Derived, name: str, facts: Sequence[Facts]) -> None:
        self.into, self.name, self.facts = into, name, facts
        # key -> (time, row, ordinal)
        self.written: dict[int, list[tuple[int, int, int]]] = {}
        # keys read since they were last written
        self.used: set[int] = set()
        self.read: dict[int, list[tuple[int, str, int]]] = {}

    def scan(self) -> None:
        time = 0
        for i, f in enumerate(self.facts):
            self._reads(i, f, time)
            self._writes(i, f, time)
            # old toolkits put MMAs under scoreboards: their distances say nothing
            if not f.waitable[1]:
                for key in f.prompt:
                    self.read.setdefault(key, []).append((time, "fixed", i))
                for key, row in f.timed:
                    self.read.setdefault(key, []).append((time, WAR_ROWS[row], i))
            time += f.stall or DRAIN
            if f.flow != PLAIN and not f.guarded:
                self.written.clear()
                self.read.clear()

    def _note(self, cell: Cell, distance: int, first: int, second: int) -> None:
        if not exclusive(self.facts, first, second):
            self.into.cells.setdefault(cell, Seen()).add(distance, (self.name, first, second))

    def _reads(self, i: int, f: Facts, time: int) -> None:
        for key, column in f.reads:
            self.used.add(key)
            for when, row, producer in self.written.get(key, ()) if column >= 0 else ():
                name = RAW_COLUMNS[column]
                self._note(("RAW", RAW_ROWS[row], name), time - when, producer, i)
                g = self.facts[producer]
                if g.encoding.pipe == TENSOR:
                    shape = latency.full_name(g.encoding, g.values)
                    self.into.shapes.setdefault((shape, name), Seen()).add(time - when, (self.name, producer, i))

    def _writes(self, i: int, f: Facts, time: int) -> None:
        for key, row, second, war in f.writes:
            for when, first, producer in self.written.get(key, ()) if second >= 0 and key not in self.used else ():
                table = "WAW guarded" if self.facts[producer].guarded else "WAW"
                self._note((table, RAW_ROWS[first], WAW_COLUMNS[second]), time - when, producer, i)
            for when, reader, ordinal in self.read.get(key, ()) if war >= 0 else ():
                if ordinal != i:
                    self._note(("WAR", reader, WAR_COLUMNS[war]), time - when, ordinal, i)
            self.used.discard(key)
            if not f.guarded:
                self.read.pop(key, None)
                self.written.pop(key, None)
            if row >= 0 and not f.waitable[1]:
                self.written.setdefault(key, []).append((time, row, i))


def compiled() -> Iterator[Kernel]:
    """Kernels of tests/data: CUDA sources of both toolkits, tensor probes."""
    for path in sorted((DATA / "cuda" / "cubins").glob("*/*.cubin")):
        if path.parent.name != "O0":
            yield from read_kernels(path)
    yield from probes()


def probes() -> Iterator[Kernel]:
    """The probes of the tensor cores."""
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted((DATA / "probes").glob("*.cubin.xz")):
            plain = Path(folder) / path.stem
            plain.write_bytes(lzma.decompress(path.read_bytes()))
            yield from read_kernels(plain)


def shipped(folder: Path) -> Iterator[Kernel]:
    """Every kernel of every cubin below a folder."""
    for path in sorted(folder.rglob("*.cubin")):
        try:
            yield from read_kernels(path)
        except Refusal:
            continue


def derive(kernels: Iterable[Kernel]) -> Derived:
    """Distances over these kernels, each code once."""
    derived = Derived()
    seen = set()
    for kernel in kernels:
        if kernel.code not in seen:
            seen.add(kernel.code)
            derived.add(kernel)
    return derived
