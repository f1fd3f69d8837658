"""Moves, selection, and predicates to registers and back."""

from __future__ import annotations

import numpy as np

from coppelius.emulator.group import Group
from coppelius.emulator.operation import Operation
from coppelius.emulator.registry import Step, executes
from coppelius.emulator.semantics.shared import select


@executes("MOV")
def mov(op: Operation) -> Step:
    b, d = op.word("B"), op.destination()
    return lambda g: d(g, b(g))


@executes("SEL")
def sel(op: Operation) -> Step:
    return select(op, op.integer("A"), op.integer("B"))


@executes("P2R")
def p2r(op: Operation) -> Step:
    """D: the predicates P0..P6 under the mask, the other bits from A."""
    a, mask, d = op.word("A"), op.word("B"), op.destination()
    byte = 8 * op.field("byte", 0)

    def step(g: Group) -> None:
        word = np.zeros((1, 1), np.uint32)
        for n in range(7):
            word = word | op.machine.predicates[n][g.select].astype(np.uint32) << np.uint32(n)
        chosen = mask(g) & np.uint32(0x7F)
        d(g, (a(g) & ~(chosen << np.uint32(byte))) | (word & chosen) << np.uint32(byte))

    return step


@executes("R2P")
def r2p(op: Operation) -> Step:
    """Predicates under the mask from the bits of a byte of A."""
    a, mask = op.word("A"), op.word("B")
    byte = np.uint32(8 * op.field("byte", 0))
    rows = [op.predicate_writer(n) for n in range(7)]

    def step(g: Group) -> None:
        word, chosen = a(g) >> byte, mask(g)
        for n, write in enumerate(rows):
            bit = np.uint32(1 << n)
            part = g.under((chosen & bit) != 0)
            if part is not None:
                write(part, (word & bit) != 0)

    return step
