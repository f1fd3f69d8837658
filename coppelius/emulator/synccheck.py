"""synccheck: barriers used as no program may count on.

A warp comes to BAR with all of its threads that have not left; a barrier of the whole block is reached by all
threads of the block, none having left before; a count is a multiple of 32 that the block has, the same for all who
meet there; WARPSYNC names the thread that executes it.  A card may let some of these pass, or hang.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from coppelius.emulator.group import LANES, Bools, Group
from coppelius.emulator.machine import Machine
from coppelius.emulator.operation import Operation

MOST_BARRIERS = 16  # published: of a block


class SyncCheck:
    """Watches the barriers of one batch."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.said: set[tuple[int, str]] = set()

    def arrive(self, operation: Operation, group: Group, key: int, count: int) -> None:
        """Threads come to a BAR."""
        missing = self.machine.alive[group.select] & ~group.active
        if missing.any():
            some = missing.any(axis=1, keepdims=True) & group.active
            away = int(np.count_nonzero(missing[int(some.any(axis=1).argmax())]))
            self._object(operation, group, some, f"divergent barrier: {away} more threads of the warp are not here")
        threads = self.machine.warps_per_block * LANES
        if key >= MOST_BARRIERS:
            self._object(operation, group, group.active, f"barrier {key}: a block has {MOST_BARRIERS}")
        if count % LANES or count > threads:
            what = f"wrong count: {count} threads of a block of {self.machine.threads}, counted in warps of {LANES}"
            self._object(operation, group, group.active, what)

    def meet(self, operation: Operation, group: Group, counts: set[int]) -> None:
        """Threads wait at one barrier, expecting these numbers of threads."""
        if len(counts) > 1:
            expected = " and ".join(map(str, sorted(counts)))
            self._object(operation, group, group.active, f"wrong count: {expected} threads expected at one barrier")

    def complete(self, operation: Operation, group: Group, blocks: Bools) -> None:
        """A barrier of whole blocks is complete."""
        per_block = self.machine.warps_per_block * LANES
        left = self.machine.threads - self.machine.alive.reshape(-1, per_block).sum(axis=1)
        some = (blocks & (left > 0))[self.machine.block_of_warp[group.select]]
        if some.any():
            away = int(left[self.machine.block_of_warp[group.select]][int(some.argmax())])
            lanes = some.reshape(-1, 1) & group.active
            self._object(operation, group, lanes, f"barrier of the whole block, of which {away} threads have left")

    def name(self, operation: Operation, group: Group, need: npt.NDArray[Any]) -> None:
        """Threads wait for the lanes they name."""
        own = np.uint32(1) << np.arange(LANES, dtype=np.uint32)
        without = ((np.broadcast_to(need, (group.count, LANES)) & own) == 0) & group.active
        if without.any():
            self._object(operation, group, without, "a thread waits for a mask that does not name it")

    def _object(self, operation: Operation, group: Group, lanes: Bools, what: str) -> None:
        if (operation.ordinal, what) in self.said:
            return
        self.said.add((operation.ordinal, what))
        self.machine.report(operation, "synccheck", what, warps=group.warps, lanes=lanes)
