"""Double precision, register pairs."""

from __future__ import annotations

from coppelius.emulator.group import Group
from coppelius.emulator.numerics import compare, float64
from coppelius.emulator.numerics.rounding import F64, Rounding
from coppelius.emulator.operation import Operation
from coppelius.emulator.registry import Step, executes
from coppelius.emulator.semantics.shared import float_compare


@executes("DADD")
def dadd(op: Operation) -> Step:
    a, b, d, rounding = op.float64("A"), op.float64("B"), op.destination64(), Rounding(op.field("RND", 0))
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


@executes("DMNMX")
def dmnmx(op: Operation) -> Step:
    a, b, d, low = op.float64("A"), op.float64("B"), op.destination64(), op.predicate("Ps")

    def step(g: Group) -> None:
        d(g, compare.minimum(a(g), b(g), F64, maximum=~low(g)))

    return step


@executes("DSETP")
def dsetp(op: Operation) -> Step:
    return float_compare(op, op.float64("A"), op.float64("B"), F64)
