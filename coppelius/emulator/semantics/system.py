"""Special registers: who a thread is, which lanes come before it, clocks.

A clock counts the steps the engine has taken: it rises, and says nothing about a card's time.
"""

from __future__ import annotations

import numpy as np

from coppelius.emulator.access import Read
from coppelius.emulator.group import Group
from coppelius.emulator.operation import Operation
from coppelius.emulator.registry import Step, executes
from coppelius.isa.refusal import Refusal
from coppelius.isa.values import Named

_CLOCKS = {"SR_CLOCKLO", "SR_CLOCKHI", "SR_GLOBALTIMERLO", "SR_GLOBALTIMERHI"}


def special(op: Operation) -> tuple[str, Read]:
    """The special register's name and a reader of its low word."""
    slot = next(s for s in op.encoding.operands if isinstance(s, Named))
    name = slot.names[op.field(slot.fields[0].name)]
    machine = op.machine
    if name in _CLOCKS:
        high = name.endswith("HI")
        return name, lambda _: np.full((1, 1), machine.clock() >> 32 * high & 0xFFFFFFFF, np.uint32)
    if name not in machine.special:
        raise Refusal(f"{machine.kernel}+{op.ordinal * 16:#06x} {op.text}: the emulator has no special register {name}")

    def read(g: Group) -> np.ndarray[tuple[int, ...], np.dtype[np.uint32]]:
        value = machine.special[name]
        return value if len(value) == 1 else value[g.select]

    return name, read


@executes("S2R", "S2UR")
def s2r(op: Operation) -> Step:
    _, read = special(op)
    d = op.destination()
    return lambda g: d(g, read(g))


@executes("CS2R")
def cs2r(op: Operation) -> Step:
    name, read = special(op)
    d = op.destination()
    if op.suffix("SIZE") == "32":
        return lambda g: d(g, read(g))
    high = op.destination("D", 1)
    machine = op.machine

    def step(g: Group) -> None:
        d(g, read(g))
        top = machine.clock() >> 32 if name in _CLOCKS else 0
        high(g, np.full((1, 1), top, np.uint32))

    return step
