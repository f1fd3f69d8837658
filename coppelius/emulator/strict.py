"""Strict mode honours the schedule: hardware checks no fixed latency, and a scoreboard only where it is waited on.

A warp's clock is the sum of its stalls; waits and branches give no credit.  A fixed-latency result is
visible to a consumer once the cycles that the pair needs have passed (`isa.latency`).  A variable-latency
result lands when a later instruction waits on its scoreboard, at the earliest two cycles after it was
raised, else never; so do copies of LDGSTS.  Operands of such an instruction may be read until its read
or write barrier, or a later instruction of its in-order queue, has been waited on, or a BAR passed.
A stall of 0 lets nothing go on before the instruction is done, scoreboard or not.
An instruction that its guard skips still passes its queue (`!PT` apart), so waiting for it covers earlier ones.

The register file holds the new value from issue on, and each instruction in flight keeps the old one: a
read that comes too early gets the old value, a write that comes too early is undone by the result that
lands late, an operand that is overwritten too early is read again after that.  Each is a finding.
So is an operand that the reuse cache still holds as it was (`reuse`).
Left out: bank conflicts, and how long anything takes beyond what the schedule grants.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

import numpy as np

from coppelius.emulator.engine import Bound, Engine
from coppelius.emulator.flight import Array, Flight, Key, Timed, same_order, same_queue, timed
from coppelius.emulator.group import LANES, Bools, Group
from coppelius.emulator.machine import Machine
from coppelius.emulator.operation import Operation
from coppelius.emulator.reuse import ReuseCache
from coppelius.isa import latency
from coppelius.isa.access import Touch
from coppelius.isa.control import BARRIERS, NO_BARRIER
from coppelius.isa.form import TENSOR
from coppelius.program.program import Program

DRAIN = 45  # published: cycles measured for stall 0
SETTLED = 40  # more than any fixed latency of the grid


class StrictEngine(Engine):
    """An engine that keeps the time of each warp and what is in flight."""

    def __init__(self, machine: Machine, program: Program, limit: int) -> None:
        super().__init__(machine, program, limit)
        self.seen: dict[int, Timed] = {}
        self.said: set[tuple[str, int, int, Key]] = set()

    def run(self, start: Group) -> None:
        """Runs a batch from cycle 0."""
        warps = self.machine.warps
        self.cycle = np.zeros(warps, dtype=np.int64)
        self.writers: dict[Key, list[Flight]] = defaultdict(list)
        self.readers: dict[Key, list[Flight]] = defaultdict(list)
        self.boards: list[list[tuple[Flight, bool]]] = [[] for _ in range(BARRIERS)]
        self.queue: list[Flight] = []
        self.reuse = ReuseCache(warps)
        self.copies: list[Callable[[], None]] = []
        self.machine.defer = self.copies.append
        super().run(start)

    def _advance(self, place: int, group: Group) -> None:
        meeting = min((p for p in self.ready if p > place), default=1 << 30)
        while True:
            self.place = place
            here = self.bound.get(place)
            if here is None:
                here = self.bound[place] = self._bind(place)
            self.steps += 1
            self.issued += group.count
            if self.steps > self.limit:
                self._endless(place, group)
            if self._issue(here, place, group):
                return
            place += 1
            if place >= meeting:
                self.push(place, group)
                return

    def _issue(self, here: Bound, place: int, group: Group) -> bool:
        """Runs one instruction in time; whether it was control flow."""
        timed = self._timed(place)
        instruction = timed.operation.instruction
        self._wait(timed, group)
        swapped = self._read(timed, timed.guards, group)
        if self.reuse.entries or timed.kept:
            swapped += self._reuse(timed, group)
        if self.watch is not None and here.guard is not None:
            self.watch.decide(timed.operation, group)
        if self.machine.races is not None:
            self.machine.races.enter(timed.operation, group)
        part = group if here.guard is None else group.under(here.guard(group))
        overtaken: list[Flight] = []
        if part is not None:
            swapped += self._read(timed, timed.reads, part)
            overtaken = self._write(timed, part)
            if self.reuse.entries:
                for touch in timed.writes:
                    self.reuse.write((touch.space, touch.number), self._row((touch.space, touch.number)), part)
        if self.reuse.entries and timed.ends:
            self.reuse.end(group)
        stall = instruction["stall"]
        if here.control is not None:
            self.trail.append(place)
            if timed.stem == "BAR":
                self._pass_barrier(group)
            self.cycle[group.select] += stall or DRAIN
            self._restore(timed, swapped)
            self._look(here, part)
            here.control(self, group, part)
            return True
        if part is not None and here.step is not None:
            flight = self._fly(timed, part, here.step)
            self._step(here, part)
            self._restore(timed, swapped)
            if timed.stem == "LDGDEPBAR":
                flight.copies, self.copies[:] = list(self.copies), []
            for late in overtaken:
                if late.step is not None:
                    late.step(late.group)
            if not stall:
                self._finish(flight, flight.member, written=True)
        elif part is None and timed.queued:
            self._skip(timed, group)
        self.cycle[group.select] += stall or DRAIN
        return False

    def _timed(self, place: int) -> Timed:
        found = self.seen.get(place)
        if found is None:
            found = self.seen[place] = timed(self.bound[place].operation)
        return found

    def _row(self, key: Key) -> Array:
        machine = self.machine
        rows = {
            "R": machine.registers,
            "P": machine.predicates,
            "UR": machine.uniform,
            "UP": machine.uniform_predicates,
        }
        row: Array = rows[key[0]][key[1]]
        return row

    # in flight

    def _fly(self, timed: Timed, part: Group, step: Callable[[Group], None]) -> Flight:
        warps = self.machine.warps
        member, lanes = np.zeros(warps, np.bool_), np.zeros((warps, LANES), np.bool_)
        member[part.select], lanes[part.select] = True, part.active
        flight = Flight(
            timed, part, step, member, lanes, self.cycle.copy(), np.zeros(warps, np.bool_), np.zeros(warps, np.bool_)
        )
        for touch in timed.writes:
            key = touch.space, touch.number
            flight.old[key] = self._row(key).copy()
            self.writers[key].append(flight)
        if timed.late:
            for key in timed.late:
                self.readers[key].append(flight)
        elif timed.operation.encoding.pipe == TENSOR:
            for touch in timed.reads:
                self.readers[touch.space, touch.number].append(flight)
        self._enqueue(flight)
        return flight

    def _skip(self, timed: Timed, group: Group) -> None:
        """An instruction that no lane executes: it touches nothing, and takes its place in queue and scoreboards."""
        warps = self.machine.warps
        member = np.zeros(warps, np.bool_)
        member[group.select] = True
        lanes = np.zeros((warps, LANES), np.bool_)
        idle = np.zeros(warps, np.bool_), np.zeros(warps, np.bool_)
        self._enqueue(Flight(timed, group, None, member, lanes, self.cycle.copy(), *idle))

    def _enqueue(self, flight: Flight) -> None:
        timed = flight.timed
        if timed.late or timed.variable:
            self.queue.append(flight)
        for name, writes in (("write_barrier", True), ("read_barrier", False)):
            board = timed.operation.instruction[name]
            if board != NO_BARRIER:
                self.boards[board].append((flight, writes))

    def _land(self, flight: Flight, where: Bools, *, written: bool) -> None:
        """The flight's reads, and if `written` its results, are done for these warps; so are those ahead of it."""
        where = where & flight.member
        if not where.any():
            return
        self._finish(flight, where, written=written)
        for earlier in self.queue:
            if earlier is flight:
                break
            ordered = same_order(earlier.timed, flight.timed)
            if ordered or same_queue(earlier.timed, flight.timed):
                self._finish(earlier, where & earlier.member, written=written and ordered)
        self.queue = [f for f in self.queue if (f.member & ~(f.landed if f.timed.variable else f.read)).any()]

    def _finish(self, flight: Flight, where: Bools, *, written: bool) -> None:
        flight.read |= where
        if not written:
            return
        now = where & ~flight.landed
        flight.landed |= where
        for key, value in flight.late.items():
            row = self._row(key)
            lanes = (flight.lanes & now.reshape(-1, 1))[:, : row.shape[1]]
            np.copyto(row, value, where=lanes)
        for copy in flight.copies:
            copy()
        flight.copies.clear()

    def _wait(self, timed: Timed, group: Group) -> None:
        instruction = timed.operation.instruction
        mask = instruction["wait"]
        for board in range(BARRIERS):
            if mask >> board & 1:
                self._wait_board(board, group, latency.SET_TO_WAIT, 0)
        if timed.stem == "DEPBAR":
            board, count = instruction.get("scoreboard", 7), instruction.get("count", 0)
            if board < BARRIERS:
                self._wait_board(board, group, latency.SET_TO_DEPBAR, count)
            also = instruction.get("set", 0)
            for other in range(BARRIERS):
                if also >> other & 1:
                    self._wait_board(other, group, latency.SET_TO_DEPBAR, 0)

    def _wait_board(self, board: int, group: Group, distance: int, left: int) -> None:
        """Lands all but the `left` newest flights on a scoreboard."""
        here = np.zeros(self.machine.warps, np.bool_)
        here[group.select] = True
        newer = np.zeros(self.machine.warps, np.int64)
        for flight, writes in reversed(self.boards[board]):
            pending = flight.member & ~(flight.landed if writes else flight.read)
            old_enough = self.cycle - flight.issue >= distance
            self._land(flight, here & pending & old_enough & (newer >= left), written=writes)
            newer += pending
        self.boards[board] = [(f, w) for f, w in self.boards[board] if (f.member & ~(f.landed if w else f.read)).any()]

    def _pass_barrier(self, group: Group) -> None:
        for flight in self.queue:
            flight.read[group.select] = True

    # hazards

    def _read(self, timed: Timed, touches: Iterable[Touch], group: Group) -> list[tuple[Key, Array, Bools]]:
        """Finds operands that are not there yet, and puts the old values in their place: (key, new row, lanes)."""
        swapped = []
        for touch in touches:
            key = touch.space, touch.number
            for flight in self._pending(self.writers, key):
                lanes, cycles = self._too_early(flight, timed, touch, group)
                if lanes is None:
                    continue
                self._hazard("stale read", timed, flight, key, *cycles, lanes)
                row = self._row(key)
                chosen: Bools = lanes if row.shape[1] == LANES else np.asarray(lanes.any(axis=1, keepdims=True))
                swapped.append((key, row.copy(), chosen))
                np.copyto(row, flight.old[key], where=chosen)
        return swapped

    def _reuse(self, timed: Timed, group: Group) -> list[tuple[Key, Array, Bools]]:
        """Finds operands that the cache holds as they were, puts them in their place, and keeps what is flagged."""
        if timed.operation.instruction["wait"]:
            self.reuse.end(group)
        swapped = []
        for key, old, lanes, entry in self.reuse.read(timed, group):
            fact = f"as {entry.by.ordinal * 16:#06x} {entry.by.text} read it, and written since"
            self._report("stale reuse", timed, entry.by, key, fact, lanes)
            row = self._row(key)
            swapped.append((key, row.copy(), lanes))
            np.copyto(row, old, where=lanes)
        self.reuse.keep(timed, group)
        return swapped

    def _too_early(
        self, flight: Flight, timed: Timed, touch: Touch, group: Group
    ) -> tuple[Bools | None, tuple[int, int]]:
        """The lanes of the machine that read before the result is there; cycles needed and given."""
        select = group.select
        age = self.cycle[select] - flight.issue[select]
        if flight.timed.variable:
            early, need = ~flight.landed[select], 0
        else:
            written = next(t for t in flight.timed.writes if (t.space, t.number) == (touch.space, touch.number))
            need = latency.raw_cycles(flight.timed.op, written, timed.op, touch)
            early = age < need
        early = early & flight.member[select]
        if not early.any():
            return None, (0, 0)
        both = flight.lanes[select] & group.active & early.reshape(-1, 1)
        if not both.any():
            return None, (0, 0)
        lanes = np.zeros((self.machine.warps, LANES), np.bool_)
        lanes[select] = both
        return lanes, (need, int(age[early].min()))

    def _pending(self, table: dict[Key, list[Flight]], key: Key) -> list[Flight]:
        """Flights that may still matter for a register, oldest first."""
        flights = table.get(key)
        if not flights:
            return []
        if table is self.readers:
            kept = [f for f in flights if (f.member & ~f.read).any() and self._fresh(f)]
        else:
            kept = [f for f in flights if self._fresh(f)]
        table[key] = kept
        return kept

    def _fresh(self, flight: Flight) -> bool:
        if flight.timed.variable or flight.timed.late:
            return bool((flight.member & ~(flight.landed if flight.timed.variable else flight.read)).any())
        return bool((flight.member & (self.cycle - flight.issue < SETTLED)).any())

    def _write(self, timed: Timed, part: Group) -> list[Flight]:
        """Finds results that land later than this one, and operands not yet read; the flights to read again."""
        overtaken = []
        for touch in timed.writes:
            key = touch.space, touch.number
            for flight in self._pending(self.writers, key):
                self._overwrite(timed, flight, touch, part)
            for flight in self._pending(self.readers, key):
                if self._overread(timed, flight, touch, part):
                    overtaken.append(flight)
        return overtaken

    def _overwrite(self, timed: Timed, flight: Flight, touch: Touch, part: Group) -> None:
        if timed.variable and same_order(flight.timed, timed):
            return
        select, key = part.select, (touch.space, touch.number)
        age = self.cycle[select] - flight.issue[select]
        if flight.timed.variable:
            early, need = ~flight.landed[select], 0
        else:
            written = next(t for t in flight.timed.writes if (t.space, t.number) == key)
            need = latency.waw_cycles(flight.timed.op, written, timed.op, touch)
            early = age < need
        lanes = self._shared_lanes(flight, part, early)
        if lanes is None:
            return
        given = int(age[early & flight.member[select]].min())
        self._hazard("early overwrite", timed, flight, key, need, given, lanes)
        if flight.timed.variable:
            flight.late[key] = self._row(key).copy()

    def _overread(self, timed: Timed, flight: Flight, touch: Touch, part: Group) -> bool:
        select, key = part.select, (touch.space, touch.number)
        age = self.cycle[select] - flight.issue[select]
        if key in flight.timed.late:
            early, need = ~flight.read[select], 0
            if timed.variable and same_queue(flight.timed, timed):
                return False  # its write comes after its own read, and that after the earlier one
        else:
            read = next(t for t in flight.timed.reads if (t.space, t.number) == key)
            need = latency.war_cycles(flight.timed.op, read, timed.op, touch)
            early = age < need
        lanes = self._shared_lanes(flight, part, early)
        if lanes is None:
            return False
        given = int(age[early & flight.member[select]].min())
        self._hazard("overwritten before read", timed, flight, key, need, given, lanes)
        return True

    def _shared_lanes(self, flight: Flight, part: Group, early: Bools) -> Bools | None:
        both = flight.lanes[part.select] & part.active & (early & flight.member[part.select]).reshape(-1, 1)
        if not both.any():
            return None
        lanes = np.zeros((self.machine.warps, LANES), np.bool_)
        lanes[part.select] = both
        return lanes

    def _hazard(self, rule: str, timed: Timed, flight: Flight, key: Key, need: int, given: int, lanes: Bools) -> None:
        other = flight.timed.operation
        if need:
            fact = f"{given} cycles after it, of {need} needed"
        else:
            fact = f"{given} cycles after it, its scoreboard not waited on"
        fact = f"of {other.ordinal * 16:#06x} {other.text}: {fact}"
        self._report(rule, timed, other, key, fact, lanes)

    def _report(self, rule: str, timed: Timed, other: Operation, key: Key, fact: str, lanes: Bools) -> None:
        place = rule, timed.operation.ordinal, other.ordinal, key
        if place in self.said:
            return
        self.said.add(place)
        detail = f"{key[0]}{key[1]} {fact}"
        self.machine.report(timed.operation, rule, detail, warps=np.arange(self.machine.warps), lanes=lanes)

    def _restore(self, timed: Timed, swapped: list[tuple[Key, Array, Bools]]) -> None:
        own = {(t.space, t.number) for t in timed.writes}
        for key, new, lanes in reversed(swapped):
            if key not in own:
                np.copyto(self._row(key), new, where=lanes)
