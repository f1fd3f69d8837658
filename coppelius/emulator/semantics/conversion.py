"""Conversions between formats, one rounding each; see `numerics.convert`.

A narrow source is selected by byte or half of its register; a 64-bit one is a pair.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from coppelius.emulator.access import Write
from coppelius.emulator.group import Group
from coppelius.emulator.numerics import convert
from coppelius.emulator.numerics.rounding import BF16, F16, F32, F64, Format, Rounding
from coppelius.emulator.operation import Operation
from coppelius.emulator.registry import Step, executes
from coppelius.emulator.semantics.shared import flushes
from coppelius.isa.refusal import Refusal

Array = npt.NDArray[Any]
_FORMATS = {"F16": F16, "BF16": BF16, "F32": F32, "F64": F64}


def _source(op: Operation, fmt: Format) -> Callable[[Group], Array]:
    if fmt is F64:
        return op.float64("B")
    if fmt.width == 16:
        halves = op.halves("B")
        return lambda g: halves(g)[0]
    return op.float32("B")


def _target(op: Operation, width: int) -> Write:
    return op.destination64() if width == 64 else op.destination()


def _rounding(op: Operation) -> Rounding:
    """By name, because F2I and FRND spell floor, ceiling and truncation."""
    name = op.suffix("RND") or "RN"
    return {"RN": Rounding.RN, "RM": Rounding.RM, "FLOOR": Rounding.RM, "RP": Rounding.RP, "CEIL": Rounding.RP}.get(
        name, Rounding.RZ
    )


@executes("F2F")
def f2f(op: Operation) -> Step:
    target, source = (_FORMATS[name] for name in op.marks.strip(".").split("."))
    read, write, rounding, ftz = _source(op, source), _target(op, target.width), _rounding(op), flushes(op)
    return lambda g: write(g, convert.f2f(read(g), source, target, rounding, ftz=ftz))


@executes("F2FP")
def f2fp(op: Operation) -> Step:
    if op.marked(".MERGE_C"):
        raise Refusal(f"{op.encoding.name}: the emulator has no meaning for .MERGE_C")
    a, b, d = op.float32("A"), op.float32("B"), op.destination()
    target = BF16 if "BF16" in op.suffix("TYPE") or op.field("BF16", 0) else F16
    rounding, relu = _rounding(op), op.flag("RELU")
    satfinite = op.flag("SATFINITE")

    def step(g: Group) -> None:
        d(g, convert.f2fp(a(g), b(g), target, rounding, relu=relu, satfinite=satfinite))

    return step


@executes("F2I")
def f2i(op: Operation) -> Step:
    kind = op.suffix("DST") or "S32"
    width, signed = int(kind[1:]), kind[0] == "S"
    source = _FORMATS[op.marks.strip(".") or "F32"]
    read, write = _source(op, source), _target(op, width)
    rounding, ftz, ntz = _rounding(op), flushes(op), op.flag("NTZ")

    def step(g: Group) -> None:
        write(g, convert.f2i(read(g), source, width, signed=signed, rounding=rounding, ftz=ftz, ntz=ntz))

    return step


_FIRST_BIT = {"": 0, "B1": 8, "B2": 16, "B3": 24, "H1": 16}


@executes("I2F", "I2FP.F32")
def i2f(op: Operation) -> Step:
    kind = op.suffix("SRC") or "S32"
    width, signed = int(kind[1:]), kind[0] == "S"
    target = _FORMATS[op.suffix("DST") or "F32"]
    read = op.integer64("B") if width == 64 else op.integer("B")
    shift = np.uint32(_FIRST_BIT[op.selected("B")])
    write, rounding = _target(op, target.width), _rounding(op)

    def step(g: Group) -> None:
        value = read(g)
        write(g, convert.i2f(value >> shift if shift else value, width, target, signed=signed, rounding=rounding))

    return step


@executes("FRND")
def frnd(op: Operation) -> Step:
    fmt = _FORMATS[op.marks.strip(".") or "F32"]
    read, write, rounding, ftz = _source(op, fmt), _target(op, fmt.width), _rounding(op), flushes(op)
    return lambda g: write(g, convert.frnd(read(g), fmt, rounding, ftz=ftz))


@executes("F2IP")
def f2ip(op: Operation) -> Step:
    """Two floats clamped to bytes, A above B, half of C above both."""
    kind, signed = op.suffix("DST"), op.suffix("DST") == "S8"
    if op.flag("RELU"):
        raise Refusal(f"{op.encoding.name}: the emulator has no meaning for .RELU ({kind})")
    a, b, c, d = op.float32("A"), op.float32("B"), op.word("C"), op.destination()
    rounding, ntz, shift = _rounding(op), op.flag("NTZ"), np.uint32(16 * op.field("C.half", 0))
    op.ignore(".F32")

    def step(g: Group) -> None:
        high, low = (
            convert.f2i(x(g), F32, 8, signed=signed, rounding=rounding, ntz=ntz) & np.uint32(0xFF) for x in (a, b)
        )
        d(g, high << np.uint32(8) | low | c(g) >> shift << np.uint32(16))

    return step


@executes("I2I")
def i2i(op: Operation) -> Step:
    """A 32-bit integer clamped to a narrower type."""
    kind = op.suffix("DST")
    op.ignore(".S32.SAT")
    b, d, width, signed = op.integer("B"), op.destination(), int(kind[1:]), kind[0] == "S"
    return lambda g: d(g, convert.i2i(b(g), width, source_signed=True, signed=signed))


@executes("I2IP")
def i2ip(op: Operation) -> Step:
    """Two integers clamped and packed, A above B; of bytes, C's lower half above both (# published: PTX cvt.pack)."""
    kind, clamp = op.suffix("DST"), op.suffix("SAT") == "SAT"
    op.ignore(".S32")
    width, signed = int(kind[1:]), kind[0] == "S"
    if width < 8 or not clamp or op.field("C.place", 0):
        raise Refusal(f"{op.encoding.name}: the emulator has no meaning for this form")
    a, b, c, d = op.integer("A"), op.integer("B"), op.word("C"), op.destination()
    mask, up = np.uint32((1 << width) - 1), np.uint32(width)

    def step(g: Group) -> None:
        high, low = (convert.i2i(x(g), width, source_signed=True, signed=signed) & mask for x in (a, b))
        packed = high << up | low
        d(g, packed | c(g) << np.uint32(16) if width == 8 else packed)

    return step
