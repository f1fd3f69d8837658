"""initcheck: an undefined value that decides a branch, an address or a guard, or that reaches global memory.

Every register, predicate, byte of shared and word of local memory begins undefined; buffers are defined.
Undefinedness follows the row's accesses: a result is undefined where a source is.  Known better: a
selection follows the source it takes, a shuffle the lane it reads, P2R the predicates under its mask; what a
whole warp computes together is undefined where any lane's part is.  Undefined values that only move are
no finding.  Left out: operands that a truth table or a zero factor ignores; single bytes of registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from coppelius.emulator.flight import Timed, timed
from coppelius.emulator.group import LANES, Bools, Group
from coppelius.emulator.machine import Machine
from coppelius.emulator.operation import Operation
from coppelius.emulator.registry import Step
from coppelius.emulator.semantics.warp import shuffle_source
from coppelius.isa.access import Touch
from coppelius.isa.address import AddressOperand, ConstantAddress
from coppelius.isa.values import Immediate

Array = npt.NDArray[Any]

_WHOLE_WARP = frozenset(("HMMA", "IMMA", "DMMA", "LDSM", "MOVM", "VOTE", "VOTEU", "MATCH", "REDUX", "R2UR"))
_TO_GLOBAL = frozenset(("STG", "ST", "RED", "ATOM", "ATOMG"))
_FROM_MEMORY = frozenset(("LDS", "LDL", "LD", "LDSM", "ATOMS"))
_DEFINED = frozenset(("LDG", "LDC", "ULDC", "ATOM", "ATOMG", "S2R", "CS2R", "S2UR", "QSPC", "B2R"))


class Shadow:
    """Which bytes of shared and words of local memory are defined; `spaces` tells of each access.

    Kept as "defined", because pages of zeros cost nothing until they are touched.
    """

    def __init__(self, machine: Machine) -> None:
        self.shared = np.zeros(machine.shared.size, np.bool_)
        self.local = np.zeros((len(machine.local), machine.warps * LANES), np.bool_)
        self.storing: Bools = np.zeros((1, 1), np.bool_)
        self.loaded: Bools = np.zeros((1, 1), np.bool_)

    def load_shared(self, at: Array, size: int) -> Bools:
        """Which of these accesses read an undefined byte."""
        found: Bools = ~self.shared[at[:, None] + np.arange(size)]
        return np.asarray(found.any(axis=1))

    def store_shared(self, at: Array, size: int, undefined: Bools) -> None:
        """These bytes are now as defined as what is stored."""
        self.shared[at[:, None] + np.arange(size)] = ~undefined[:, None]

    def load_local(self, row: Array, column: Array, words: int) -> Bools:
        """The same for words `row`, `row + 1`, ... of each column."""
        found: Bools = np.logical_or.reduce([~self.local[row + k, column] for k in range(words)])
        return found

    def store_local(self, row: Array, column: Array, words: int, undefined: Bools) -> None:
        """These words are now as defined as what is stored."""
        for k in range(words):
            self.local[row + k, column] = ~undefined


class InitCheck:
    """Follows undefined values through one batch."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.shadow = machine.shadow = Shadow(machine)
        kinds = {"R": machine.registers, "P": machine.predicates}
        kinds |= {"UR": machine.uniform, "UP": machine.uniform_predicates}
        self.undefined: dict[str, Bools] = {name: np.ones(v.shape, np.bool_) for name, v in kinds.items()}
        self.seen: dict[int, Timed] = {}
        self.said: set[tuple[int, str]] = set()

    def decide(self, operation: Operation, group: Group) -> None:
        """Before a guard is looked at."""
        self._object(operation, group, self._of(self._timed(operation).guards, group), "decides whether it executes")

    def branch(self, operation: Operation, group: Group) -> None:
        """Before control flow reads its operands."""
        self._object(operation, group, self._of(self._timed(operation).reads, group), "decides where threads go on")

    def perform(self, operation: Operation, step: Step, part: Group) -> None:
        """Runs a step, and what it defines."""
        t = self._timed(operation)
        addresses = {s.name for s in operation.encoding.operands if isinstance(s, AddressOperand | ConstantAddress)}
        self._object(operation, part, self._of([r for r in t.reads if r.slot in addresses], part), "is an address")
        value = self._value(operation, t, [r for r in t.reads if r.slot not in addresses], part)
        if t.stem in _TO_GLOBAL:
            self._object(operation, part, value, "reaches global memory")
        self.shadow.storing, self.shadow.loaded = value, np.zeros((1, 1), np.bool_)
        step(part)
        if t.stem in _DEFINED:
            value = np.zeros((1, 1), np.bool_)
        elif t.stem in _FROM_MEMORY:
            value = self.shadow.loaded
        if t.stem in _WHOLE_WARP:
            active = np.broadcast_to(value, (part.count, LANES)) & part.active
            value = np.asarray(active.any(axis=1, keepdims=True))
        for touch in t.writes:
            self._define(touch, part, value)

    def _define(self, touch: Touch, part: Group, value: Bools) -> None:
        row = self.undefined[touch.space][touch.number]
        if row.shape[1] == 1:
            value = np.broadcast_to(value, (part.count, LANES))
            row[part.select] = (value & part.active).any(axis=1, keepdims=True)
        elif part.mask is None:
            row[part.select] = value
        else:
            row[part.select] = np.where(part.mask, value, row[part.select])

    def _timed(self, operation: Operation) -> Timed:
        found = self.seen.get(operation.ordinal)
        if found is None:
            found = self.seen[operation.ordinal] = timed(operation)
        return found

    def _of(self, touches: Sequence[Touch], group: Group) -> Bools:
        """Where any of these is undefined, `[warps, 32]` or `[warps, 1]`."""
        value: Bools = np.zeros((1, 1), np.bool_)
        for touch in touches:
            value = value | self.undefined[touch.space][touch.number][group.select]
        return value

    def _value(self, operation: Operation, t: Timed, reads: Sequence[Touch], part: Group) -> Bools:
        if t.stem in ("SEL", "FSEL", "USEL"):
            a, b, p = (self._of([r for r in reads if r.slot == name], part) for name in ("A", "B", "Ps"))
            chosen: Bools = np.where(operation.predicate("Ps")(part), a, b) | p
            return chosen
        if t.stem == "SHFL":
            return self._shuffled(operation, reads, part)
        mask = operation.slot("B") if t.stem in ("P2R", "UP2UR") else None
        if isinstance(mask, Immediate):
            wanted = operation.field("B")
            reads = [r for r in reads if r.space not in ("P", "UP") or wanted >> r.number & 1]
        return self._of(reads, part)

    def _shuffled(self, operation: Operation, reads: Sequence[Touch], part: Group) -> Bools:
        data = np.broadcast_to(self._of([r for r in reads if r.slot == "A"], part), (part.count, LANES))
        source, _ = shuffle_source(operation.suffix("MODE"), operation.word("B")(part), operation.word("C")(part))
        source = np.broadcast_to(source, (part.count, LANES)).astype(np.intp)
        moved: Bools = np.take_along_axis(data, source, axis=1)
        return moved | self._of([r for r in reads if r.slot != "A"], part)

    def _object(self, operation: Operation, group: Group, value: Bools, what: str) -> None:
        if not value.any():
            return
        lanes = np.broadcast_to(value, (group.count, LANES)) & group.active
        if not lanes.any() or (operation.ordinal, what) in self.said:
            return
        self.said.add((operation.ordinal, what))
        self.machine.report(operation, "initcheck", f"an undefined value {what}", warps=group.warps, lanes=lanes)
