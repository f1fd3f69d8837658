"""Convergence barriers to registers and back: BMOV moves the mask of the lanes that a barrier waits for.

Compiled code saves barriers around calls with it.  Other state of a warp is absent but for MACTIVE, the
lanes that execute together.
"""

from __future__ import annotations

from coppelius.emulator.access import row_writer
from coppelius.emulator.group import Group, ballot
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
        return lambda g: active(g, ballot(g.active).reshape(-1, 1))
    if number >= CONVERGENCE_BARRIERS or op.field("PQUAD", 0):
        raise Refusal(f"{op.text}: the emulator moves barriers B0 to B15 only")
    row = op.machine.convergence[number]
    write = row_writer(row)
    if not op.has("D"):
        source = op.machine.convergence[op.field("source")] if op.has("source") else None
        read = (lambda g: source[g.select]) if source is not None else op.word("B")
        return lambda g: write(g, read(g))
    d, clear = op.destination(), bool(op.field("CLEAR"))

    def step(g: Group) -> None:
        d(g, row[g.select])
        if clear:
            write(g, row[g.select] ^ row[g.select])

    return step
