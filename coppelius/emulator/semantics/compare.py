"""Integer comparison into predicates; `.EX` continues a comparison of the low words."""

from __future__ import annotations

import numpy as np

from coppelius.emulator.group import Group
from coppelius.emulator.numerics.compare import compare_integers
from coppelius.emulator.operation import Operation
from coppelius.emulator.registry import Step, executes
from coppelius.emulator.semantics.shared import Array, write_comparison


@executes("ISETP")
def isetp(op: Operation) -> Step:
    a, b = op.integer("A"), op.integer("B")
    code, signed, logic = op.field("CMP"), not op.unsigned, op.suffix("BOOL")
    if not op.marked(".EX"):
        return write_comparison(op, lambda g: compare_integers(a(g), b(g), code, signed=signed), logic)
    low = op.predicate("Pu")

    def extended(g: Group) -> Array:
        return extend_comparison(a(g), b(g), low(g), code, signed)

    return write_comparison(op, extended, logic)


def extend_comparison(a: Array, b: Array, low: Array, code: int, signed: bool) -> Array:
    """Of 64 bits: decided by the high words, or where they are equal by the low words' comparison."""
    equal = a == b
    if code in (0, 7):
        return np.broadcast_to(np.bool_(code == 7), np.broadcast_shapes(a.shape, b.shape))
    result: Array = equal & low
    if code == 5:
        result = ~equal | low
    elif code != 2:
        strict = {1: 1, 3: 1, 4: 4, 6: 4}[code]
        result |= compare_integers(a, b, strict, signed=signed)
    return result
