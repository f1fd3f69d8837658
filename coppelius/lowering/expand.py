"""One instruction of a target as the target's compiler writes it: in another row, or as two or three.

A form that the table has and that the compiler never writes is a form whose working nobody has seen.  So each is
replaced by what the compiler writes in its place; `rules.HABITS` says which of them a target avoids.  What a longer
form needs for itself goes into registers above all others, one for each register that it stands for.
"""

from __future__ import annotations

from collections.abc import Iterable

from coppelius.isa.latency import full_name
from coppelius.isa.operands import RZ_INDEX
from coppelius.isa.parser import parse
from coppelius.isa.refusal import Refusal
from coppelius.isa.table import Table
from coppelius.lowering.rules import HABITS
from coppelius.program.program import Instruction

LAST_REGISTER = 252  # published: R253 and R254 are the hardware's
# what a pair stands for: one serves them all, because it is read at once
_ANY = -1
_MOVES = {"IMAD:1": "MOV:1", "IMAD:2": "MOV:4", "IMAD:7": "MOV:6"}


class Spare:
    """General registers that the program does not use, given out from the lowest above all that it does."""

    def __init__(self, rows: Iterable[Instruction]) -> None:
        used = (t.number for row in rows for t in (*row.reads, *row.writes) if t.space == "R")
        self._next = max(used, default=-1) + 1
        self._given: dict[tuple[int, int], int] = {}

    def register(self, stands_for: int, words: int = 1) -> int:
        """The first of the registers that stand for that one; the same each time it is asked."""
        if (stands_for, words) not in self._given:
            first = -(-self._next // words) * words
            if first + words - 1 > LAST_REGISTER:
                raise Refusal(f"no general register above R{self._next - 1} is left for a form that needs one more")
            self._given[stands_for, words] = first
            self._next = first + words
        return self._given[stands_for, words]


def expand(row: Instruction, table: Table, spare: Spare) -> list[Instruction]:
    """The target's instruction as its compiler writes it; most stay as they are."""
    habits = HABITS[table.target]
    name = row.encoding.name
    if name in _MOVES and not habits.products_move and _is_move(row):
        return [_move(row, table)]
    if name == "IADD3:6" and not habits.leading_minus and row["A.negate"] > row["C.negate"]:
        return [_exchanged(row)]
    if name == "IMAD.WIDE:7" and not habits.uniform_addend:
        return _added_pair(row, table, spare)
    if row.get("address.scale") and not habits.scaled:
        return _scaled_apart(row, table, spare)
    return [row]


def _is_move(row: Instruction) -> bool:
    """Whether a product of zeros brings its addend as it is."""
    return row["A"] == row["B"] == RZ_INDEX and not row.get("C.negate")


def _move(row: Instruction, table: Table) -> Instruction:
    encoding = table.by_name[_MOVES[row.encoding.name]]
    values = dict(zip(encoding.column, encoding.defaults, strict=True))
    place = encoding.fields[encoding.column["B"]]
    addend = row["C"] if place.admits(row["C"]) else row["C"] % (1 << place.width)
    return _guarded(Instruction(encoding, tuple((values | {"D": row["D"], "B": addend}).values())), row)


def _exchanged(row: Instruction) -> Instruction:
    """The sum with its first and its last term in each other's place."""
    parts = ("", ".negate")
    return row.with_fields({f"{to}{p}": row[f"{of}{p}"] for to, of in (("A", "C"), ("C", "A")) for p in parts})


def _added_pair(row: Instruction, table: Table, spare: Spare) -> list[Instruction]:
    """The uniform pair moved to general registers first: the result's own, if no factor lies there."""
    result, pair = row["D"], row["C"]
    if result == RZ_INDEX:
        raise Refusal(f"{full_name(row.encoding, row.values)}: a product that goes nowhere cannot be lowered")
    own = {result, result + 1}.isdisjoint((row["A"], row["B"]))
    first = result if own else spare.register(_ANY, 2)
    ends = "URZ" if pair == row.encoding.fields[row.encoding.column["C"]].high else ""
    moves = [_written(table, f"MOV R{first + k}, {ends or f'UR{pair + k}'}", row) for k in (0, 1)]
    encoding = table.by_name["IMAD.WIDE:1"]
    old = dict(zip(row.encoding.column, row.values, strict=True)) | {"C": first}
    values = [old.get(field.name, field.default) for field in encoding.fields]
    return [*moves, Instruction(encoding, tuple(values))]


def _scaled_apart(row: Instruction, table: Table, spare: Spare) -> list[Instruction]:
    """The address's register multiplied first."""
    base = row["address.base"]
    if base == RZ_INDEX:
        return [row.with_fields({"address.scale": 0})]
    scaled = spare.register(base)
    factor = 2 << row["address.scale"]
    product = _written(table, f"IMAD.SHL.U32 R{scaled}, R{base}, {factor:#x}, RZ", row)
    return [product, row.with_fields({"address.base": scaled, "address.scale": 0})]


def _written(table: Table, text: str, like: Instruction) -> Instruction:
    """The instruction of that text, under the guard of another."""
    encoding, values = parse(table, text)
    return _guarded(Instruction(encoding, tuple(values)), like)


def _guarded(row: Instruction, like: Instruction) -> Instruction:
    guard = {f.name: like[f.name] for f in row.encoding.guard.fields}
    return row.with_fields(guard)
