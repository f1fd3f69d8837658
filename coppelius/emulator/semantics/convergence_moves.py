"""Convergence barriers to registers and back: BMOV moves the mask of the lanes that a barrier waits for.

Compiled code saves barriers around calls with it.  Other state of a warp is absent but for MACTIVE, the
lanes that execute together.
"""

from __future__ import annotations

from coppelius.emulator.access import row_writer
from coppelius.emulator.group import Group, Words32, ballot
from coppelius.emulator.machine import CONVERGENCE_BARRIERS
from coppelius.emulator.operation import Operation
from coppelius.emulator.registry import Step, executes
from coppelius.isa.refusal import Refusal

_ACTIVE = 26  # MACTIVE


@executes("BMOV.32")
def bmov(op: Operation) -> Step:
    number = op.field("barrier")
    if op.has("D") and number == _ACTIVE:
        active = op.destination()
        op.ignore("CLEAR")
        return lambda g: active(g, _active(g))
    row = _row(op, number)
    write = row_writer(row)
    if op.has("source"):
        if op.field("source") == _ACTIVE:
            return lambda g: write(g, _active(g))
        source = _row(op, op.field("source"))
        return lambda g: write(g, source[g.select])
    if not op.has("D"):
        read = op.word("B")
        return lambda g: write(g, read(g))
    d, clear = op.destination(), bool(op.field("CLEAR"))

    def step(g: Group) -> None:
        d(g, row[g.select])
        if clear:
            write(g, row[g.select] ^ row[g.select])

    return step


def _active(g: Group) -> Words32:
    return ballot(g.active).reshape(-1, 1)


def _row(op: Operation, number: int) -> Words32:
    if number >= CONVERGENCE_BARRIERS:
        raise Refusal(f"{op.text}: the emulator moves barriers B0 to B15 only")
    row: Words32 = op.machine.convergence[number]
    return row
