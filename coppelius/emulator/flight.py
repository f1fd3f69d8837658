"""Instructions in flight, for strict mode: what the schedule sees of one, and what its registers held before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from coppelius.emulator.group import Bools, Group
from coppelius.emulator.operation import Operation
from coppelius.isa import latency
from coppelius.isa.access import Touch
from coppelius.isa.form import CONTROL, FP64, MEMORY, SHARED, XU

Array = npt.NDArray[Any]
Key = tuple[str, int]

SPACES = ("R", "P", "UR", "UP")
_QUEUE = frozenset((MEMORY, SHARED))
# results that come back in the order of issue (mined: code relies on it)
_ORDERED = ("LDS", "SHFL", "LDSM", "MOVM")


class Kept(NamedTuple):
    """An operand that the reuse cache may hold: its slot (0 to 2) and registers."""

    slot: int
    register: int
    width: int

    @property
    def place(self) -> tuple[int, int]:
        """Slot and bank."""
        return self.slot, self.register & 1


@dataclass(frozen=True)
class Timed:
    """What the schedule sees of the instruction at one place."""

    operation: Operation
    guards: tuple[Touch, ...]
    reads: tuple[Touch, ...]
    writes: tuple[Touch, ...]
    late: frozenset[Key]
    variable: bool
    # whether it passes its queue even when its guard is false
    queued: bool
    # operands that the reuse cache may answer, those that go into it, and whether it keeps nothing behind this
    slots: tuple[Kept, ...]
    kept: tuple[Kept, ...]
    ends: bool

    @property
    def op(self) -> latency.Op:
        i = self.operation.instruction
        return i.encoding, i.values

    @property
    def stem(self) -> str:
        return latency.stem(self.operation.encoding)


@dataclass(eq=False)
class Flight:
    """One instruction issued for one group: when, for which lanes, and what its registers held before.

    All arrays span the machine's warps.  `landed`: a variable result was waited on; `read`: its operands were.
    """

    timed: Timed
    group: Group
    step: Callable[[Group], None] | None
    member: Bools
    lanes: Bools
    issue: npt.NDArray[np.int64]
    landed: Bools
    read: Bools
    old: dict[Key, Array] = field(default_factory=dict)
    late: dict[Key, Array] = field(default_factory=dict)
    copies: list[Callable[[], None]] = field(default_factory=list)


def same_queue(first: Timed, second: Timed) -> bool:
    """Whether two instructions that read late read their operands in the order of issue."""
    pipes = {first.operation.encoding.pipe, second.operation.encoding.pipe}
    return len(pipes) == 1 or pipes <= _QUEUE


def same_order(first: Timed, second: Timed) -> bool:
    """Whether their results come back in the order of issue."""
    one, other = first.operation.encoding.pipe, second.operation.encoding.pipe
    return (one == other and one in (XU, FP64)) or (first.stem in _ORDERED and second.stem in _ORDERED)


def timed(operation: Operation) -> Timed:
    """What the schedule sees of an instruction."""
    i = operation.instruction
    reads = [t for t in i.reads if t.space in SPACES]
    late = frozenset(
        (t.space, t.number) for t in reads if t.slot != "guard" and latency.reads_late(i.encoding, i.values, t)
    )
    variable = latency.is_variable(i.encoding, i.values)
    slots = _slots(operation)
    return Timed(
        operation,
        tuple(t for t in reads if t.slot == "guard"),
        tuple(t for t in reads if t.slot != "guard"),
        tuple(t for t in i.writes if t.space in SPACES),
        late,
        variable,
        bool(late or variable) and (i["guard"], i["guard.not"]) != (7, 1),
        tuple(operand for operand, _ in slots),
        tuple(operand for operand, flagged in slots if flagged),
        not i["keep"] or i.encoding.pipe == CONTROL,
    )


def _slots(operation: Operation) -> list[tuple[Kept, bool]]:
    """Operands with a reuse flag, and whether it is set; what no thread ever executes has none."""
    i = operation.instruction
    found: list[tuple[Kept, bool]] = []
    if (i["guard"], i["guard.not"]) == (7, 1):
        return found
    for name, column in i.encoding.column.items():
        numbers = [t.number for t in i.reads if t.space == "R" and f"{t.slot}.reuse" == name]
        if numbers:
            # the flag's own place says which slot: bits 122, 123, 124
            slot = i.encoding.fields[column].bits.parts[0][0] - 122
            found.append((Kept(slot, min(numbers), len(numbers)), bool(i[name])))
    return found
