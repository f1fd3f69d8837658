"""Latencies of other targets, as classes that SM86's grid has not.

A target's instruction has another class where its distance differs: on SM120 the operations of two pipes at once
(selects, moves, comparisons, minima) are a cycle further from the ALU and from each other, and a matrix product's
result takes five cycles longer.  A new row or column is like one of SM86's but for the cells given.

Witness of every cell here: the least distance that the vendor's compiler leaves for that target (m), or the safest
neighbour (a).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Cell(NamedTuple):
    """Cycles needed, and the witness mark."""

    cycles: int
    witness: str


Grid = dict[tuple[str, str], Cell]


class Classes(NamedTuple):
    """Of one target: SM86's class -> its own, for producers and for consumers; operations that are of class `dual`."""

    producers: Mapping[str, str] = {}
    consumers: Mapping[str, str] = {}
    dual: bool = False


# operations of the ALU that are none of two pipes; every other one is taken for `dual`, the longer way
_SINGLE = frozenset(("IADD3", "LOP3", "SHF", "PRMT", "LEA", "IABS", "I2FP", "F2FP"))

_HOPPER = Classes({"half": "half7", "mixed": "half7"})
_BLACKWELL = Classes(
    {"mma24": "mma29", "mma16": "mma21", "mma14": "mma21", "alu.p": "dual.p"}, {"mma": "mma8"}, dual=True
)
CLASSES: Mapping[str, Classes] = {
    "sm80": Classes({}, {"queue": "queue6"}),
    "sm90": _HOPPER,
    "sm120": _BLACKWELL,
    "sm121": _BLACKWELL,
}
_SAME = Classes()


def producer(target: str, stem: str, kind: str) -> str:
    """The class of a result that would be of that kind on SM86."""
    classes = CLASSES.get(target, _SAME)
    if kind == "alu" and classes.dual and stem not in _SINGLE:
        return "dual"
    return classes.producers.get(kind, kind)


def consumer(target: str, stem: str, kind: str) -> str:
    """The class of an operand that would be of that kind on SM86."""
    classes = CLASSES.get(target, _SAME)
    if kind == "alu" and classes.dual and stem not in _SINGLE:
        return "dual"
    return classes.consumers.get(kind, kind)


class Like(NamedTuple):
    """A row or column like another one, but for some cells (`5m`)."""

    name: str
    like: str
    cells: Mapping[str, str]


def _every(names: str, cell: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), cell)


_GENERAL = "alu fma half mixed compare wide queue address fp64"
# fmt: off
# facts 8; columns first, so that a new row may name a new column
RAW_COLUMNS = (
    Like("dual",   "alu",   {"alu": "5m"}),
    Like("mma8",   "mma",   _every("alu fma wide half mixed compare move64", "8m")),
    Like("queue6", "queue", {"fma": "6m", "wide": "6a"}),
)
RAW_ROWS = (
    Like("dual",   "alu",   {"alu": "5m", "dual": "5m"}),
    Like("dual.p", "alu.p", {"alu.p": "5m"}),
    Like("mma29",  "mma24", _every(_GENERAL, "28m") | {"mma8": "29m", "dual": "28m", "mma": "29m"}),
    Like("mma21",  "mma16", _every(_GENERAL, "21a") | {"mma8": "21a", "dual": "21a", "mma": "21a"}),
    Like("half7",  "half",  {"address": "7m"}),
    Like("r2ur.u", "datapath.u", _every("vector.u queue.u control.u datapath.u move.u", "13m") | {"constant.u": "15m"}),
)
WAW_COLUMNS = (
    Like("dual", "alu", {}),
    Like("mma29", "mma24", {}), Like("mma21", "mma16", {}), Like("half7", "half", {}),
    Like("dual.p", "alu.p", {}), Like("r2ur.u", "queue.u", {}),
)
WAW_ROWS = (
    Like("dual", "alu", {}), Like("half7", "half", {}), Like("dual.p", "alu.p", {}),
    Like("mma29", "mma24", _every("alu dual fma half mixed compare wide mma29 mma21 move64 queue fp64", "29a")),
    Like("mma21", "mma16", _every("alu dual fma half mixed compare wide mma29 mma21 move64 queue fp64", "21a")),
    Like("r2ur.u", "datapath.u", _every("datapath.u move.u queue.u r2ur.u", "13a")),
)
WAR_COLUMNS = (Like("r2ur.u", "queue.u", {}),)
WAR_ROWS = (Like("mma29", "mma24", {"fixed": "8m"}), Like("mma21", "mma16", {"fixed": "8a"}))
# fmt: on


def extend(grid: Grid, columns: tuple[Like, ...], rows: tuple[Like, ...]) -> Grid:
    """The grid with these columns and rows added."""
    out = dict(grid)
    for new in columns:
        out |= {(row, new.name): cell for (row, column), cell in out.items() if column == new.like}
        out |= {(row, new.name): _cell(text) for row, text in new.cells.items()}
    for new in rows:
        out |= {(new.name, column): cell for (row, column), cell in out.items() if row == new.like}
        out |= {(new.name, column): _cell(text) for column, text in new.cells.items()}
    return out


def _cell(text: str) -> Cell:
    return Cell(int(text[:-1]), text[-1])
