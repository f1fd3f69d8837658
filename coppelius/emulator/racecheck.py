"""racecheck: two threads of a block touch the same bytes of shared memory, one writes, and nothing orders them.

What orders: a barrier that both pass (BAR, whole or with a count; who only arrives is before those who wait), and
for threads of one warp also WARPSYNC, BSYNC, and having executed together, because a warp's accesses are done in
the order of its instructions.  Each granule (the least access size of the program) remembers its last write, its
last read, and the last read by another warp.  For each pair of warps, `known[block, w, u]` is the time up to which
w knows what u did; times are the engine's steps.

Atomics are exempt, and a write of the same bits that are there is none.  Left out: order by atomics (a lock in
shared memory looks like none); of several readers within one warp only the last counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from coppelius.emulator.group import LANES, Bools, Group, Words32, lanes_of
from coppelius.emulator.machine import Machine
from coppelius.emulator.operation import Operation
from coppelius.program.program import Program

Array = npt.NDArray[Any]
Records = npt.NDArray[np.int64]

# a record: time from bit 31 on, then 20 bits of the instruction, 5 of the warp in its block, 6 of the lane
_TIME, _PLACE, _WARP = 31, 11, 6
_WHOLE = 32  # instead of a lane: the warp executed it together
_ALWAYS = np.int64(1 << 31)
_SHARED = frozenset(("LDS", "STS", "LD", "ST", "LDSM", "LDGSTS"))
_SIZES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2}


def granule(program: Program) -> int:
    """The least access to shared memory that this program makes, in bytes."""
    least = 4
    for instruction in program:
        if instruction.encoding.mnemonic.split(".")[0] not in _SHARED:
            continue
        for m in instruction.encoding.modifiers:
            if m.name == "SIZE" and m.fields:
                least = min(least, _SIZES.get(m.suffixes[instruction["SIZE"]].lstrip("."), 4))
    return least


class RaceCheck:
    """Watches the shared memory of one batch."""

    def __init__(self, machine: Machine, program: Program) -> None:
        self.machine = machine
        self.shift = granule(program).bit_length() - 1
        count = (machine.shared.size >> self.shift) + 1
        self.writes, self.reads, self.others = (np.zeros(count, np.int64) for _ in range(3))
        warps, per_block = machine.warps, machine.warps_per_block
        self.identity = np.broadcast_to((np.arange(warps) % per_block << _WARP).reshape(-1, 1), (warps, LANES))
        self.rows = np.broadcast_to(np.arange(warps).reshape(-1, 1), (warps, LANES))
        self.columns = np.broadcast_to(np.arange(LANES), (warps, LANES))
        self.known = np.zeros((machine.capacity, per_block, per_block), np.int64)
        self.known[:, np.arange(per_block), np.arange(per_block)] = _ALWAYS
        self.known[len(machine.blocks) :] = _ALWAYS
        self.floor = int(self.known.min())
        # [warp, lane, other lane], from the first access by part of a warp on
        self.lanes_known: Records | None = None
        self.arrived: dict[tuple[int, int], list[Records]] = {}
        self.operations: dict[int, Operation] = {}
        self.group: Group | None = None
        self.running = -1
        self.said: set[tuple[int, int, str]] = set()

    def enter(self, operation: Operation, group: Group) -> None:
        """The group, guard or not, that is at this instruction."""
        self.group, self.running = group, operation.ordinal

    # what orders

    def together(self, group: Group, need: Words32 | None = None) -> None:
        """These threads of each warp have met those that they `need` (lanes of a word for each), or each other."""
        if self.lanes_known is None:
            return
        active, now = group.active, self.machine.clock()
        met = active[:, None, :]
        if need is not None:
            words = np.broadcast_to(need, (group.count, LANES)).reshape(-1).astype(np.uint32)
            met = lanes_of(words).reshape(group.count, LANES, LANES)
        self.lanes_known[group.select] = np.where(active[:, :, None] & met, now, self.lanes_known[group.select])

    def arrive(self, key: int, group: Group) -> None:
        """Threads come to a barrier for which they do not wait."""
        now, per_block = self.machine.clock(), self.machine.warps_per_block
        for warp in group.warps.tolist():
            block, w = divmod(warp, per_block)
            self.arrived.setdefault((key, block), []).append(self._seen(block, w, now))

    def _seen(self, block: int, warp: int, now: int) -> Records:
        seen: Records = self.known[block, warp].copy()
        seen[warp] = now
        return seen

    def passed(self, key: int, blocks: Bools, waiting: Bools, *, whole: bool) -> None:
        """Blocks' barriers are complete for the waiting `bool[warps, 32]`; `whole`: for every thread of the block."""
        now, per_block = self.machine.clock(), self.machine.warps_per_block
        if whole:
            self.known[blocks] = np.where(self.known[blocks] == _ALWAYS, _ALWAYS, now)
            if self.lanes_known is not None:
                self.lanes_known[blocks[self.machine.block_of_warp]] = now
        for block in [] if whole else np.flatnonzero(blocks).tolist():
            come = waiting.reshape(-1, per_block, LANES)[block].any(axis=1)
            seen = [self._seen(block, w, now) for w in np.flatnonzero(come).tolist()]
            merged = np.maximum.reduce([*seen, *self.arrived.pop((key, block), [])])
            for w in np.flatnonzero(come).tolist():
                self.known[block, w] = np.where(self.known[block, w] == _ALWAYS, _ALWAYS, merged)
        self.floor = int(self.known.min())

    # accesses

    def read(self, op: Operation, g: Group, at: Array, size: int, good: Array | None) -> None:
        """Lanes read these bytes (offsets in the batch's shared memory)."""
        if not len(at):
            return
        stamp = self._stamp(op, g, good)
        for k in range(max(1, size >> self.shift)):
            place = (at >> self.shift) + k
            self._judge(op, g, good, at, stamp, self.writes[place], "read after write")
            before = self.reads[place]
            moved = np.flatnonzero((before ^ stamp) >> _WARP & 31)
            self.others[place[moved]] = before[moved]
            self.reads[place] = stamp
            lost = np.flatnonzero((self.reads[place] ^ stamp) >> _WARP & 31)
            self.others[place[lost]] = stamp[lost]

    def write(
        self, op: Operation, g: Group, at: Array, size: int, good: Array | None, differs: Callable[[], Bools]
    ) -> None:
        """Lanes are about to write these bytes; `differs`: which write what is not there already."""
        if not len(at):
            return
        stamp = self._stamp(op, g, good)
        for k in range(max(1, size >> self.shift)):
            place = (at >> self.shift) + k
            self._judge(op, g, good, at, stamp, self.reads[place], "write after read", differs)
            self._judge(op, g, good, at, stamp, self.others[place], "write after read", differs)
            self._judge(op, g, good, at, stamp, self.writes[place], "write after write", differs)
            self.writes[place] = stamp

    def lost(self, op: Operation, g: Group, at: Array, good: Array | None, differs: Bools) -> None:
        """Which of the lanes find, after one instruction, another's bits where they wrote."""
        if differs.any() and (op.ordinal, op.ordinal, "lost") not in self.said:
            self.said.add((op.ordinal, op.ordinal, "lost"))
            self._report(op, g, good, at, differs, "write after write: several threads write different values at once")

    def _stamp(self, op: Operation, g: Group, good: Array | None) -> Records:
        """The records of this access, one a lane."""
        now = self.machine.clock()
        self.operations[op.ordinal] = op
        base = now << _TIME | op.ordinal << _PLACE
        lane: Array | int = _WHOLE
        group = self.group
        if group is not None and self.running == op.ordinal and group.mask is not None:
            alive = self.machine.alive[group.select]
            part = (group.mask != alive).any(axis=1)
            if part.any():
                if self.lanes_known is None:
                    self.lanes_known = np.zeros((self.machine.warps, LANES, LANES), np.int64)
                self.together(group)
                apart = np.zeros((self.machine.warps, 1), np.bool_)
                apart[group.select] = part.reshape(-1, 1)
                lane = np.where(apart[g.select], self.columns[g.select], _WHOLE)
        return self._flat(g, self.identity[g.select] + (base + lane), good)

    @staticmethod
    def _flat(g: Group, value: Array, good: Array | None) -> Array:
        flat = value.reshape(-1) if g.mask is None else value[g.mask]
        return flat if good is None else flat[good]

    def _judge(
        self,
        op: Operation,
        g: Group,
        good: Array | None,
        at: Array,
        stamp: Records,
        record: Records,
        kind: str,
        differs: Callable[[], Bools] | None = None,
    ) -> None:
        """Finds accesses that nothing orders after the recorded ones."""
        latest = int(record.max()) >> _TIME
        if latest == 0 or (self.lanes_known is None and latest <= self.floor):
            return
        time, same = record >> _TIME, ((record ^ stamp) >> _WARP & 31) == 0
        rows = self._flat(g, self.rows[g.select], good)
        block, warp = self.machine.block_of_warp[rows], stamp >> _WARP & 31
        bad: Bools = ~same & (self.known[block, warp, record >> _WARP & 31] < time)
        if self.lanes_known is not None:
            theirs = record & 63
            lane = self._flat(g, self.columns[g.select], good)
            apart = same & (theirs != _WHOLE) & (theirs != lane)
            bad |= apart & (self.lanes_known[rows, lane, np.minimum(theirs, LANES - 1)] < time)
        if bad.any() and differs is not None:
            bad &= differs()
        if not bad.any():
            return
        first = int(bad.argmax())
        place = int(record[first] >> _PLACE & 0xFFFFF)
        if (op.ordinal, place, kind) in self.said:
            return
        self.said.add((op.ordinal, place, kind))
        self._report(op, g, good, at, bad, self._describe(kind, int(rows[first]), int(record[first])))

    def _describe(self, kind: str, row: int, record: int) -> str:
        per_block, place = self.machine.warps_per_block, record >> _PLACE & 0xFFFFF
        warp, lane = row // per_block * per_block + (record >> _WARP & 31), record & 63
        other = self.operations[place]
        _, thread = self.machine.place_of(warp, min(lane, LANES - 1) if lane != _WHOLE else 0)
        who = f"thread {thread}" if lane != _WHOLE else f"the warp of thread {thread}"
        where = self.machine.section_of(place)[1]
        return f"{kind} of {who} at {where:#06x} {other.text}, with no barrier between"

    def _report(self, op: Operation, g: Group, good: Array | None, at: Array, bad: Bools, text: str) -> None:
        flags = np.zeros(g.threads, np.bool_)
        flags[np.arange(g.threads) if good is None else good] = bad
        lanes = np.zeros((g.count, LANES), np.bool_)
        lanes[g.active] = flags
        address = int(at[int(bad.argmax())]) % self.machine.shared_stride
        self.machine.report(op, "racecheck", text, warps=g.warps, lanes=lanes, address=address)
