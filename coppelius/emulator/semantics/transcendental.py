"""MUFU by correctly rounded value; a card may differ within the published bounds (`numerics.mufu.BOUNDS`).

FCHK says whether a division needs its slow path: where the operands' exponents could make a partial
result of the fast path overflow or lose bits.
"""

from __future__ import annotations

import numpy as np

from coppelius.emulator.group import Group
from coppelius.emulator.numerics.mufu import mufu, mufu_f16
from coppelius.emulator.operation import Operation
from coppelius.emulator.registry import Step, executes


@executes("MUFU")
def mufu_step(op: Operation) -> Step:
    function, d = op.suffix("FUNC"), op.destination()
    if op.marked(".F16"):
        halves = op.halves("B")
        return lambda g: d(g, mufu_f16(halves(g)[0], function).astype(np.uint32))
    b = op.float32("B")
    return lambda g: d(g, mufu(b(g), function))


@executes("FCHK")
def fchk(op: Operation) -> Step:
    """True where ptxas's division sequence must not be used (# assumed: the exponents it cannot handle)."""
    a, b, p = op.float32("A"), op.float32("B"), op.destination_predicate("Pd")

    def step(g: Group) -> None:
        ea = (a(g) >> np.uint32(23) & np.uint32(0xFF)).astype(np.int32)
        eb = (b(g) >> np.uint32(23) & np.uint32(0xFF)).astype(np.int32)
        special = (ea == 0) | (ea == 255) | (eb == 0) | (eb >= 253)
        apart = ea - eb
        p(g, special | (apart >= 126) | (apart <= -125) | (ea <= 24))

    return step
