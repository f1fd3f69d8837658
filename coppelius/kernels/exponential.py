"""Exponentials of numbers at or below 0 by the slow unit's power of two.

MUFU.EX2 flushes results below 2^-126.  Where small ones matter, a shift (a register that holds a whole
number) is added to the exponent, and the caller divides by 2^shift where nothing is lost, or lets it cancel.
"""

from __future__ import annotations

import math

from coppelius.builder.kernel import Kernel
from coppelius.builder.lanes import Lanes, Together
from coppelius.isa.operands import RZ, R

LOG2_E = 1 / math.log(2)
MINUS_INFINITY = float("-inf")


def exponential(k: Kernel | Together, x: R | Lanes, shift: R | None = None) -> None:
    """x becomes e^x 2^shift; one or several side by side."""
    if shift is None:
        k.FMUL(x, x, LOG2_E)
    else:
        k.FFMA(x, x, LOG2_E, shift)
    k.MUFU_EX2(x, x)


def finite_top(k: Kernel, name: str, top: R) -> R:
    """`top`, or 0 where it is minus infinity, so that x - top is minus infinity there and not NaN."""
    anything = k.compare_f32(f"{name}.any", "NEU", top, MINUS_INFINITY)
    out: R = k.FSEL(name, top, RZ, anything)
    return out
