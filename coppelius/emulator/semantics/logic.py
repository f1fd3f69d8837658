"""Bits and predicates: LOP3 by truth table, shifts over a pair, byte permutation, PLOP3."""

from __future__ import annotations

import numpy as np

from coppelius.emulator.access import Read
from coppelius.emulator.group import Group
from coppelius.emulator.numerics import bitwise
from coppelius.emulator.operation import Operation
from coppelius.emulator.registry import Step, executes


@executes("LOP3.LUT")
def lop3(op: Operation) -> Step:
    """D by the table; Pd = D != 0 OR Ps (.PAND: AND)."""
    a, b, c, d = op.integer("A"), op.integer("B"), op.integer("C"), op.destination()
    table, out, also = op.field("LUT"), op.destination_predicate("Pd"), op.predicate("Ps")
    writes = op.has("Pd") and op.field("Pd") != 7
    conjunction = op.flag("PAND")

    def step(g: Group) -> None:
        result = bitwise.lop3(a(g), b(g), c(g), table)
        truth = None
        if writes:
            truth = (result != 0) & also(g) if conjunction else (result != 0) | also(g)
        d(g, result)
        if truth is not None:
            out(g, truth)

    return step


@executes("SHF")
def shf(op: Operation) -> Step:
    a, b, c, d = op.word("A"), op.word("B"), op.word("C"), op.destination()
    kind = op.suffix("TYPE") or "S64"
    right, wrap = op.suffix("SIDE") == "R", "W" in op.suffix("WRAP")
    signed, wide, high = kind.startswith("S"), kind.endswith("64"), op.suffix("HI") == "HI"

    def step(g: Group) -> None:
        shifted = bitwise.shf(a(g), b(g), c(g), right=right, signed=signed, wide=wide, wrap=wrap, take_high=high)
        d(g, shifted)

    return step


@executes("PRMT")
def prmt(op: Operation) -> Step:
    a, b, c, d = op.word("A"), op.word("B"), op.word("C"), op.destination()
    mode = op.suffix("MODE") or "IDX"
    return lambda g: d(g, bitwise.prmt(a(g), b(g), c(g), mode))


def _truth_or_sign(op: Operation, name: str, word: str) -> Read:
    if not op.has(word):
        return op.predicate(name)
    read = op.word(word)
    return lambda g: read(g) >> np.uint32(31) != 0


@executes("PLOP3.LUT")
def plop3(op: Operation) -> Step:
    """Two truth tables of three predicates, each of which may be the sign bit of a word instead."""
    a, b, c = (_truth_or_sign(op, name, word) for name, word in (("Ps", "A"), ("Pt", "B"), ("Pu", "C")))
    d, d2 = op.destination_predicate("Pd"), op.destination_predicate("Pd2")
    tables = [
        np.array([table >> k & 1 for k in range(8)], dtype=np.bool_) for table in (op.field("LUT"), op.field("LUT2"))
    ]

    def step(g: Group) -> None:
        index = a(g).astype(np.uint8) << 2 | b(g).astype(np.uint8) << 1 | c(g).astype(np.uint8)
        first, second = tables[0][index], tables[1][index]
        d(g, first)
        d2(g, second)

    return step
