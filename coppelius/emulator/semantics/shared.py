"""What several families share: flushing modes, selection, comparisons that write two predicates."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from coppelius.emulator.access import Read
from coppelius.emulator.group import Group
from coppelius.emulator.numerics import compare
from coppelius.emulator.numerics.rounding import Format
from coppelius.emulator.operation import Operation
from coppelius.emulator.registry import Step

Array = npt.NDArray[Any]


def flushes(op: Operation) -> bool:
    """Whether the instruction is .FTZ, in a field of its own or in the one shared with FMZ."""
    return op.flag("FTZ") or "FTZ" in op.suffix("FMZ")


def multiply_modes(op: Operation) -> tuple[bool, bool]:
    """(.FTZ, .FMZ)."""
    return flushes(op), "FMZ" in op.suffix("FMZ")


def select(op: Operation, a: Read, b: Read) -> Step:
    """D = predicate ? A : B."""
    d, p = op.destination(), op.predicate("Ps")

    def step(g: Group) -> None:
        d(g, np.where(p(g), a(g), b(g)))

    return step


def combine(name: str, x: Array, y: Array) -> Array:
    """AND, OR or XOR of two predicates."""
    if name == "OR":
        return x | y
    return x ^ y if name == "XOR" else x & y


def write_comparison(op: Operation, test: Read, name: str) -> Step:
    """Pd = test op Ps; Pd2 = !test op Ps."""
    d, d2, p = op.destination_predicate("Pd"), op.destination_predicate("Pd2"), op.predicate("Ps")

    def step(g: Group) -> None:
        result, also = test(g), p(g)
        first, second = combine(name, result, also), combine(name, ~result, also)
        d(g, first)
        d2(g, second)

    return step


def float_compare(op: Operation, a: Read, b: Read, fmt: Format) -> Step:
    """FSETP and DSETP."""
    code, ftz = op.field("CMP"), flushes(op)
    return write_comparison(op, lambda g: compare.compare(a(g), b(g), fmt, code, ftz=ftz), op.suffix("BOOL"))
