"""A slow second opinion on the reuse cache: each kept operand is followed on its own, instruction by instruction.

It is gone behind a wait, behind an instruction that lets another warp in, at a branch and where one leads; the next
reader of its slot and bank takes it, and takes it stale if the same register was written in between.
"""

from __future__ import annotations

from collections.abc import Sequence

from coppelius.program.program import Instruction

STALE = "stale reuse"
Operand = tuple[int, int, int]  # slot, first register, registers


def never(row: Instruction) -> bool:
    """Whether its guard is `!PT`."""
    return (row["guard"], row["guard.not"]) == (7, 1)


def operands(row: Instruction) -> list[tuple[Operand, bool]]:
    """Operands that have a reuse flag, and whether it is set; what no thread ever executes has none."""
    found: list[tuple[Operand, bool]] = []
    if never(row):
        return found
    for f in row.encoding.fields:
        numbers = [t.number for t in row.reads if t.space == "R" and f.name == f"{t.slot}.reuse"]
        if numbers:
            found.append(((f.bits.parts[0][0] - 122, min(numbers), len(numbers)), bool(row[f.name])))
    return found


def follow(
    rows: Sequence[Instruction], waits: Sequence[int], begins: frozenset[int], start: int
) -> tuple[set[tuple[str, int, str]], set[int]]:
    """Who reads what `start` keeps and is stale, and the instructions that it passes; `begins`: of blocks."""
    found: set[tuple[str, int, str]] = set()
    passed = set()
    for (slot, register, width), flagged in operands(rows[start]):
        written, i = False, start
        while flagged:
            written |= not never(rows[i]) and any(
                t.space == "R" and register <= t.number < register + width for t in rows[i].writes
            )
            if not rows[i]["keep"] or i + 1 >= len(rows) or i + 1 in begins:
                break
            i += 1
            passed.add(i)
            if waits[i]:
                break
            readers = [
                first for (other, first, _), _ in operands(rows[i]) if (other, first & 1) == (slot, register & 1)
            ]
            if readers:
                if written and register in readers:
                    found.add((STALE, i, f"R{register}"))
                break
    return found, passed
