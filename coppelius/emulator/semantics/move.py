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


def _space(op: Operation) -> str:
    """P or UP, by the operand that stands for all predicates."""
    return op.slot("PR").accesses[0].space


@executes("P2R")
def p2r(op: Operation) -> Step:
    """D: the predicates under the mask as bits of one byte, the other bits from A."""
    a, mask, d = op.word("A"), op.word("B"), op.destination()
    byte, machine = np.uint32(8 * op.field("byte", 0)), op.machine
    rows = machine.predicates if _space(op) == "P" else machine.uniform_predicates

    def step(g: Group) -> None:
        word = np.zeros((1, 1), np.uint32)
        for n in range(7):
            word = word | rows[n][g.select].astype(np.uint32) << np.uint32(n)
        chosen = mask(g) & np.uint32(0x7F)
        d(g, (a(g) & ~(chosen << byte)) | (word & chosen) << byte)

    return step


@executes("R2P")
def r2p(op: Operation) -> Step:
    """Predicates under the mask from the bits of a byte of A."""
    a, mask = op.word("A"), op.word("B")
    byte = np.uint32(8 * op.field("byte", 0))
    writes = [op.predicate_writer(_space(op), n) for n in range(7)]

    def step(g: Group) -> None:
        word, chosen = a(g) >> byte, mask(g)
        for n, write in enumerate(writes):
            bit = np.uint32(1 << n)
            part = g.under((chosen & bit) != 0)
            if part is not None:
                write(part, (word & bit) != 0)

    return step
