"""MUFU by correctly rounded value; a card may differ within the published bounds (`numerics.mufu.BOUNDS`)."""

from __future__ import annotations

import numpy as np

from coppelius.emulator.numerics.float32 import division_needs_care
from coppelius.emulator.numerics.mufu import mufu, mufu_f16
from coppelius.emulator.operation import Operation
from coppelius.emulator.registry import Step, executes


@executes("MUFU")
def mufu_step(op: Operation) -> Step:
    function, d = op.suffix("FUNC"), op.destination()
    if op.marked(".F16"):
        halves = op.halves("B")
        return lambda g: d(g, mufu_f16(halves(g)[0], function).astype(np.uint32))
    # of a double only the upper word goes in, which is what its immediate holds
    b = op.float64_upper("B") if function.endswith("64H") else op.float32("B")
    return lambda g: d(g, mufu(b(g), function))


@executes("FCHK")
def fchk(op: Operation) -> Step:
    """Whether a division must leave the short sequence."""
    a, b, p = op.float32("A"), op.float32("B"), op.destination_predicate("Pd")
    return lambda g: p(g, division_needs_care(a(g), b(g)))
