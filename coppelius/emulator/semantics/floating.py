"""Single precision: one rounding of the exact result, FTZ, FMZ and SAT as `numerics.float32` has them.

A modifier that a form does not have reads as its default, so one meaning serves every form of a row.
"""

from __future__ import annotations

import numpy as np

from coppelius.emulator.group import Group
from coppelius.emulator.numerics import compare, float32
from coppelius.emulator.numerics.rounding import F32, Rounding, flush
from coppelius.emulator.operation import Operation
from coppelius.emulator.registry import Step, executes
from coppelius.emulator.semantics.shared import combine, float_compare, flushes, multiply_modes, select


@executes("FADD")
def fadd(op: Operation) -> Step:
    a, b, d = op.float32("A"), op.float32("B"), op.destination()
    rounding, ftz, sat = Rounding(op.field("RND", 0)), flushes(op), op.flag("SAT")

    def step(g: Group) -> None:
        d(g, float32.add(a(g), b(g), rounding, ftz=ftz, sat=sat))

    return step


@executes("FMUL")
def fmul(op: Operation) -> Step:
    a, b, d = op.float32("A"), op.float32("B"), op.destination()
    rounding, sat = Rounding(op.field("RND", 0)), op.flag("SAT")
    ftz, fmz = multiply_modes(op)
    # 4 is none; .M2 .M4 .M8 follow, .D2 .D4 .D8 precede
    scale = op.field("SCALE", 4) - 4

    def step(g: Group) -> None:
        d(g, float32.mul(a(g), b(g), rounding, ftz=ftz, sat=sat, fmz=fmz, scale=scale))

    return step


@executes("FFMA")
def ffma(op: Operation) -> Step:
    a, b, c, d = op.float32("A"), op.float32("B"), op.float32("C"), op.destination()
    rounding, sat = Rounding(op.field("RND", 0)), op.flag("SAT")
    ftz, fmz = multiply_modes(op)

    def step(g: Group) -> None:
        d(g, float32.fma(a(g), b(g), c(g), rounding, ftz=ftz, sat=sat, fmz=fmz))

    return step


@executes("FMNMX")
def fmnmx(op: Operation) -> Step:
    a, b, d, low = op.float32("A"), op.float32("B"), op.destination(), op.predicate("Ps")
    nan, xorsign, ftz = op.flag("NAN"), op.flag("XORSIGN"), flushes(op)

    def step(g: Group) -> None:
        d(g, compare.minimum(a(g), b(g), F32, maximum=~low(g), nan=nan, xorsign=xorsign, ftz=ftz))

    return step


@executes("FSETP")
def fsetp(op: Operation) -> Step:
    a, b = op.float32("A"), op.float32("B")
    return float_compare(op, a, b, F32)


@executes("FSET.BF")
def fset(op: Operation) -> Step:
    """1.0 where the comparison holds, else zero."""
    a, b, also, d = op.float32("A"), op.float32("B"), op.predicate("Ps"), op.destination()
    code, ftz, logic = op.field("CMP"), flushes(op), op.suffix("BOOL")

    def step(g: Group) -> None:
        truth = combine(logic, compare.compare(a(g), b(g), F32, code, ftz=ftz), also(g))
        d(g, truth * np.uint32(0x3F800000))

    return step


@executes("FSEL")
def fsel(op: Operation) -> Step:
    a, b = op.float32("A"), op.float32("B")
    if not flushes(op):
        return select(op, a, b)
    return select(op, lambda g: flush(a(g), F32), lambda g: flush(b(g), F32))
