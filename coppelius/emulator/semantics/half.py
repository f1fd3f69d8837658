"""Packed 16-bit floats: both halves by the same rounding; `.F32` gives one f32 from the low selected halves.

HSETP2 writes a predicate for each half, or with .H_AND their conjunction and its negation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from coppelius.emulator.group import Group
from coppelius.emulator.numerics import compare, half
from coppelius.emulator.numerics.rounding import BF16, F16, Format
from coppelius.emulator.operation import Operation
from coppelius.emulator.registry import Step, executes
from coppelius.emulator.semantics.shared import combine, flushes, multiply_modes

Array = npt.NDArray[Any]


def format_of(op: Operation) -> Format:
    """bf16 where the form says so."""
    return BF16 if "BF16" in op.mnemonic or any("BF16" in op.suffix(m.name) for m in op.encoding.modifiers) else F16


def pack(low: Array, high: Array) -> Array:
    """Two uint16 arrays -> uint32."""
    result: Array = low.astype(np.uint32) | high.astype(np.uint32) << np.uint32(16)
    return result


def _wide(op: Operation) -> bool:
    return op.suffix("F32") == "F32" or op.mnemonic.endswith(".F32")


def _both(op: Operation, names: str, compute: Callable[..., Array], compute_wide: Callable[..., Array]) -> Step:
    d = op.destination()
    if _wide(op):
        pairs = [op.halves(n) for n in names]
        return lambda g: d(g, compute_wide(*(pair(g)[0] for pair in pairs)))
    reads = [op.packed_halves(n) for n in names]

    def step(g: Group) -> None:
        both = compute(*(np.ascontiguousarray(read(g)).view(np.uint16) for read in reads))
        d(g, np.ascontiguousarray(both).view(np.uint32))

    return step


@executes("HADD2", "HADD2.F32")
def hadd2(op: Operation) -> Step:
    ftz, sat, fmt = flushes(op), op.flag("SAT"), format_of(op)
    return _both(
        op,
        "AB",
        lambda a, b: half.add(a, b, fmt, ftz=ftz, sat=sat),
        lambda a, b: half.add_f32(a, b, ftz=ftz, sat=sat),
    )


@executes("HMUL2")
def hmul2(op: Operation) -> Step:
    (ftz, fmz), sat, fmt = multiply_modes(op), op.flag("SAT"), format_of(op)
    return _both(
        op,
        "AB",
        lambda a, b: half.mul(a, b, fmt, ftz=ftz, sat=sat, fmz=fmz),
        lambda a, b: half.mul_f32(a, b, ftz=ftz, sat=sat, fmz=fmz),
    )


@executes("HFMA2", "HFMA2.BF16_V2", "HFMA2.MMA")
def hfma2(op: Operation) -> Step:
    (ftz, fmz), sat, fmt = multiply_modes(op), op.flag("SAT"), format_of(op)
    relu = op.flag("RELU")
    return _both(
        op,
        "ABC",
        lambda a, b, c: half.fma(a, b, c, fmt, ftz=ftz, sat=sat, fmz=fmz, relu=relu),
        lambda a, b, c: half.fma_f32(a, b, c, ftz=ftz, sat=sat, fmz=fmz, relu=relu),
    )


@executes("HMNMX2", "HMNMX2.BF16_V2")
def hmnmx2(op: Operation) -> Step:
    low = op.predicate("Ps")
    nan, xorsign, ftz = op.flag("NAN"), op.flag("XORSIGN"), flushes(op)
    fmt = format_of(op)
    a, b, d = op.halves("A"), op.halves("B"), op.destination()

    def step(g: Group) -> None:
        greater = ~low(g)
        parts = [
            compare.minimum(x, y, fmt, maximum=greater, nan=nan, xorsign=xorsign, ftz=ftz)
            for x, y in zip(a(g), b(g), strict=True)
        ]
        d(g, pack(*parts))

    return step


@executes("HSETP2")
def hsetp2(op: Operation) -> Step:
    a, b, also = op.halves("A"), op.halves("B"), op.predicate("Ps")
    d, d2 = op.destination_predicate("Pd"), op.destination_predicate("Pd2")
    code, ftz, fmt = op.field("CMP"), flushes(op), format_of(op)
    logic, both = op.suffix("BOOL"), op.flag("H_AND")

    def step(g: Group) -> None:
        low, high = (compare.compare(x, y, fmt, code, ftz=ftz) for x, y in zip(a(g), b(g), strict=True))
        if both:
            low = low & high
            high = ~low
        first, second = combine(logic, low, also(g)), combine(logic, high, also(g))
        d(g, first)
        d2(g, second)

    return step


@executes("HSET2")
def hset2(op: Operation) -> Step:
    """Each half: 1.0 (.BF) or all ones where the comparison holds, else zero."""
    a, b, also, d = op.halves("A"), op.halves("B"), op.predicate("Ps"), op.destination()
    code, ftz, fmt, logic = op.field("CMP"), flushes(op), format_of(op), op.suffix("BOOL")
    one = np.uint16(fmt.one if op.field("BF", 0) else 0xFFFF)

    def step(g: Group) -> None:
        tests = [
            combine(logic, compare.compare(x, y, fmt, code, ftz=ftz), also(g)) for x, y in zip(a(g), b(g), strict=True)
        ]
        d(g, pack(*(t * one for t in tests)))

    return step
