"""A lowered program whose instructions wait no longer than SM86's: a target's checks must name what is wrong."""

from __future__ import annotations

from coppelius.isa.control import legal_keep
from coppelius.lowering.lower import Lowered
from coppelius.program.program import Program


def native_stalls(native: Program, made: Lowered) -> Program:
    """Lowered whole, barriers and waits too, but each instruction that SM86 has as well stalls as it does there."""
    rows = list(made.program)
    for i, (row, old) in enumerate(zip(rows, made.origin, strict=True)):
        if old in made.origin[i + 1 : i + 2]:
            continue  # a load of a constant, or the first of two that replace one
        stall = native[old]["stall"]
        reuse = {n: 0 for n in row.encoding.column if n.endswith(".reuse") and not stall}
        rows[i] = row.with_fields({"stall": stall, "keep": row["keep"] and int(legal_keep(stall)), **reuse})
    return Program.of(rows, made.program.table)
