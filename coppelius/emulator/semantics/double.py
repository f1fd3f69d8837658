"""Double precision, register pairs."""

from __future__ import annotations

import numpy as np

from coppelius.emulator.group import Group
from coppelius.emulator.numerics import compare, float64
from coppelius.emulator.numerics.rounding import F64, Rounding, is_nan
from coppelius.emulator.operation import Operation
from coppelius.emulator.registry import Step, executes
from coppelius.emulator.semantics.shared import combine, float_compare


@executes("DADD")
def dadd(op: Operation) -> Step:
    a, b, d, rounding = op.float64("A"), op.float64("C"), op.destination64(), Rounding(op.field("RND", 0))
    return lambda g: d(g, float64.add(a(g), b(g), rounding))


@executes("DMUL")
def dmul(op: Operation) -> Step:
    a, b, d, rounding = op.float64("A"), op.float64("B"), op.destination64(), Rounding(op.field("RND", 0))
    return lambda g: d(g, float64.mul(a(g), b(g), rounding))


@executes("DFMA")
def dfma(op: Operation) -> Step:
    a, b, c, d = op.float64("A"), op.float64("B"), op.float64("C"), op.destination64()
    rounding = Rounding(op.field("RND", 0))
    return lambda g: d(g, float64.fma(a(g), b(g), c(g), rounding))


@executes("DSETP")
def dsetp(op: Operation) -> Step:
    if op.suffix("CMP") in ("MIN", "MAX"):
        return _which(op, op.suffix("CMP") == "MAX")
    return float_compare(op, op.float64("A"), op.float64("B"), F64)


def _which(op: Operation, greatest: bool) -> Step:
    """.MIN and .MAX: Pd, whether the first operand is the one; Pd2, whether both are NaN (# assumed)."""
    a, b, also = op.float64("A"), op.float64("B"), op.predicate("Ps")
    d, d2, logic = op.destination_predicate("Pd"), op.destination_predicate("Pd2"), op.suffix("BOOL")

    def step(g: Group) -> None:
        x, y = np.atleast_1d(a(g)), np.atleast_1d(b(g))
        chosen = compare.minimum(x, y, F64, maximum=greatest)
        second_only, both = is_nan(y, F64), is_nan(x, F64) & is_nan(y, F64)
        first = combine(logic, ((chosen == x) | second_only) & ~both, also(g))
        also_both = combine(logic, both, also(g))
        d(g, first)
        d2(g, also_both)

    return step
