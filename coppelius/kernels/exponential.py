"""Exponentials of numbers at or below 0 by the slow unit's power of two.

MUFU.EX2 flushes results below 2^-126.  Where small ones matter, `shift` is added to the exponent, and the
caller divides by 2^shift where nothing is lost, or lets it cancel.
"""

from __future__ import annotations

import math

from coppelius.builder.kernel import Kernel
from coppelius.isa.operands import RZ, R

LOG2_E = 1 / math.log(2)
MINUS_INFINITY = float("-inf")


def exponential(k: Kernel, name: str, x: R, shift: int = 0) -> R:
    """e^x 2^shift in a new register."""
    power = k.FFMA(f"{name}.power", x, LOG2_E, k.move(f"{name}.shift", float(shift))) if shift else _plain(k, name, x)
    out: R = k.MUFU_EX2(name, power)
    return out


def _plain(k: Kernel, name: str, x: R) -> R:
    out: R = k.FMUL(f"{name}.power", x, LOG2_E)
    return out


def finite_top(k: Kernel, name: str, top: R) -> R:
    """`top`, or 0 where it is minus infinity, so that x - top is minus infinity there and not NaN."""
    anything = k.compare_f32(f"{name}.any", "NEU", top, MINUS_INFINITY)
    out: R = k.FSEL(name, top, RZ, anything)
    return out
