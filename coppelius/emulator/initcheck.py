"""initcheck: an undefined value that decides a branch, an address or a guard, or that reaches global memory.

Every register, predicate, byte of shared and of local memory begins undefined, and so does a buffer that was
placed as undefined; other buffers are defined.  Undefinedness is kept by bytes and follows what instructions read
(`undefined` tells how); what a whole warp computes together is undefined where any active lane's part is.
Undefined values that only move are no finding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from coppelius.emulator import undefined
from coppelius.emulator.flight import Timed, timed
from coppelius.emulator.group import LANES, Group
from coppelius.emulator.machine import Machine
from coppelius.emulator.operation import Operation
from coppelius.emulator.registry import Step
from coppelius.emulator.shadow import Shadow
from coppelius.emulator.undefined import NONE, Masks
from coppelius.isa.access import Touch
from coppelius.isa.address import AddressOperand, ConstantAddress

_WHOLE_WARP = frozenset(("HMMA", "IMMA", "DMMA", "LDSM", "MOVM", "VOTE", "VOTEU", "MATCH", "REDUX", "R2UR"))
_TO_GLOBAL = frozenset(("STG", "ST"))
_STORES = frozenset(("STG", "ST", "STS", "STL"))
_ATOMICS = frozenset(("RED", "ATOM", "ATOMG"))
_FROM_MEMORY = frozenset(("LDG", "LDS", "LDL", "LD"))
_DEFINED = frozenset(("LDC", "ULDC", "ATOM", "ATOMG", "S2R", "CS2R", "S2UR", "QSPC", "B2R"))


class InitCheck:
    """Follows undefined values through one batch."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.shadow = machine.shadow = Shadow(machine)
        kinds: dict[str, npt.NDArray[Any]] = {"R": machine.registers, "P": machine.predicates}
        kinds |= {"UR": machine.uniform, "UP": machine.uniform_predicates}
        self.undefined: dict[str, Masks] = {name: np.full(v.shape, 15, np.uint8) for name, v in kinds.items()}
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
        data = [r for r in t.reads if r.slot not in addresses]
        self.shadow.loaded = []
        if t.stem in _STORES:
            self._store(operation, t, data, step, part)
            return
        if t.stem in _FROM_MEMORY:
            before = undefined.spread(self._of(data, part))
            step(part)
            masks = self.shadow.loaded or [NONE]
            for k, touch in enumerate(w for w in t.writes if w.space == "R"):
                self._define(touch, part, masks[min(k, len(masks) - 1)] | before)
            return
        value = undefined.passed(operation, t, data, part, lambda touches: self._of(touches, part))
        step(part)
        self._finish(operation, t, part, value)

    def _finish(self, operation: Operation, t: Timed, part: Group, value: Masks) -> None:
        """Defines an instruction's results, once its step has run."""
        for mask in self.shadow.loaded:
            value = value | undefined.spread(mask)
        if t.stem in _ATOMICS:
            self._object(operation, part, value, "reaches global memory")
        if t.stem in _DEFINED:
            value = NONE
        if t.stem in _WHOLE_WARP and value.any():
            active = (np.broadcast_to(value, (part.count, LANES)) != 0) & part.active
            value = active.any(axis=1, keepdims=True).astype(np.uint8) * undefined.WHOLE
        for touch in t.writes:
            self._define(touch, part, value)

    def _store(self, operation: Operation, t: Timed, data: Sequence[Touch], step: Step, part: Group) -> None:
        size = max(1, sum(1 for r in data if r.slot == "data"))
        registers = {r.number: self._of([r], part) for r in data}
        first = operation.field("data")
        masks = [registers.get(first + k, NONE) for k in range(size)] if registers else [NONE]
        narrow = {"U8": 1, "S8": 1, "U16": 3, "S16": 3}.get(operation.suffix("SIZE"), 15)
        if t.stem in _TO_GLOBAL:
            reached = NONE
            for mask in masks:
                reached = reached | mask & np.uint8(narrow)
            self._object(operation, part, reached, "reaches global memory")
        self.shadow.storing = masks
        step(part)

    def _define(self, touch: Touch, part: Group, value: Masks) -> None:
        row = self.undefined[touch.space][touch.number]
        if touch.space in ("P", "UP"):
            value = undefined.spread(value)
        if row.shape[1] == 1:
            if value.shape[1] != 1:
                active = np.where(part.active, np.broadcast_to(value, (part.count, LANES)), np.uint8(0))
                value = np.bitwise_or.reduce(active, axis=1, keepdims=True)
            row[part.select] = value
        elif part.mask is None:
            row[part.select] = value
        elif isinstance(part.select, slice):
            np.copyto(row[part.select], value, where=part.mask)
        else:
            row[part.select] = np.where(part.mask, value, row[part.select])

    def _timed(self, operation: Operation) -> Timed:
        found = self.seen.get(operation.ordinal)
        if found is None:
            found = self.seen[operation.ordinal] = timed(operation)
        return found

    def _of(self, touches: Sequence[Touch], group: Group) -> Masks:
        """The undefined bytes of these together, `[warps, 32]` or `[warps, 1]`."""
        value: Masks = NONE
        for touch in touches:
            row = self.undefined[touch.space][touch.number][group.select]
            value = row if value is NONE else value | row
        return value if value.any() else NONE

    def _object(self, operation: Operation, group: Group, value: Masks, what: str) -> None:
        if value is NONE or not value.any():
            return
        lanes = (np.broadcast_to(value, (group.count, LANES)) != 0) & group.active
        if not lanes.any() or (operation.ordinal, what) in self.said:
            return
        self.said.add((operation.ordinal, what))
        self.machine.report(operation, "initcheck", f"an undefined value {what}", warps=group.warps, lanes=lanes)
