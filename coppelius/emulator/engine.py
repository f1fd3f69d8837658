"""Runs the groups of a batch: the lowest place of the program first, so that those who fell behind catch up.

Groups that meet at one place become one.  A thread that must wait is parked: at BAR until the block's
threads have come, at BSYNC until all threads that BSSY named there have come or left, at WARPSYNC
likewise.  Parked threads are looked at when nobody else can run (and now and then, so that a thread
that spins for a parked one does not spin for ever).  If then none can go on, that is a deadlock.

Straight-line code between two places costs one call an instruction, whatever the number of warps.
A launch may take `limit` steps; an endless loop ends there, with the place it turns in.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from coppelius.emulator import semantics  # noqa: F401 - importing registers
from coppelius.emulator.access import Read
from coppelius.emulator.barriers import Parked, release_barriers, release_convergence
from coppelius.emulator.group import Group, Words32, ballot, union
from coppelius.emulator.initcheck import InitCheck
from coppelius.emulator.machine import Machine
from coppelius.emulator.operation import Operation
from coppelius.emulator.registry import BINDERS, CONTROL_BINDERS, ControlStep, Step
from coppelius.emulator.synccheck import SyncCheck
from coppelius.isa.refusal import Refusal
from coppelius.program.program import Program

DEFAULT_LIMIT = 2_000_000
_SETTLE_EVERY = 256
_LOOK_EVERY = 64


class Ended(Exception):
    """The launch cannot go on; its last finding says why (collecting findings, which else raise)."""


@dataclass
class Bound:
    """An instruction ready to run: its guard (None: always), and what it does or where it leads."""

    operation: Operation
    guard: Read | None
    step: Step | None
    control: ControlStep | None


@dataclass
class Engine:
    """One batch's run; `bound` is kept between batches."""

    machine: Machine
    program: Program
    limit: int = DEFAULT_LIMIT
    bound: dict[int, Bound] = field(default_factory=dict)
    ready: dict[int, Group] = field(default_factory=dict)
    parked: list[Parked] = field(default_factory=list)
    steps: int = 0
    issued: int = 0
    place: int = 0
    # seconds the launch may take, and when that is over
    seconds: float | None = None
    deadline: float | None = None
    beat: Callable[[int], None] | None = None
    watch: InitCheck | None = None
    sync: SyncCheck | None = None

    def run(self, start: Group) -> None:
        """Runs until every thread has left."""
        self.trail: deque[int] = deque(maxlen=256)
        self.arrivals: dict[tuple[int, int], int] = {}
        self.machine.clock = lambda: self.steps
        self.ready = {self.machine.entry: start}
        turn = 0
        while self.ready or self.parked:
            turn += 1
            if not self.ready or (self.parked and turn % _SETTLE_EVERY == 0):
                self._settle()
            if turn % _LOOK_EVERY == 0:
                self._look_up()
            place = min(self.ready) if turn % (2 * _SETTLE_EVERY + 1) else max(self.ready)
            self._advance(place, self.ready.pop(place))

    def _look_up(self) -> None:
        """Tells how far the launch is, and ends one that takes too long."""
        if self.beat is not None:
            self.beat(self.steps)
        if self.deadline is not None and time.perf_counter() > self.deadline:
            place, group = min(self.ready.items())
            self.bound.setdefault(place, self._bind(place))
            self._endless(place, group, f"{self.seconds:g} seconds and {self.steps} steps")

    def push(self, place: int, group: Group | None) -> None:
        """The group goes on at `place`."""
        if group is None:
            return
        there = self.ready.get(place)
        self.ready[place] = group if there is None else union((there, group), self.machine.warps)

    def leave(self, group: Group) -> None:
        """These threads are done."""
        alive = self.machine.alive
        if group.mask is None:
            alive[group.select] = False
        else:
            alive[group.select] &= ~group.mask
        self.machine.alive_threads -= group.threads

    def exited(self) -> Words32:
        """The lanes of each warp that have left or never were, `uint32[warps]`."""
        return ~ballot(self.machine.alive)

    def park(self, parked: Parked) -> None:
        """These threads wait."""
        self.parked.append(parked)

    def _settle(self) -> None:
        """Lets go on whoever can; nobody at all is a deadlock."""
        release_barriers(self)
        release_convergence(self)
        if not self.ready:
            self._deadlock()

    def _advance(self, place: int, group: Group) -> None:
        """Runs a group until a branch, or until it meets or passes another group."""
        meeting = min((p for p in self.ready if p > place), default=1 << 30)
        bound = self.bound
        while True:
            self.place = place
            here = bound.get(place)
            if here is None:
                here = bound[place] = self._bind(place)
            self.steps += 1
            self.issued += group.count
            if self.steps > self.limit:
                self._endless(place, group)
            if self.watch is not None and here.guard is not None:
                self.watch.decide(here.operation, group)
            if self.machine.races is not None:
                self.machine.races.enter(here.operation, group)
            part = group if here.guard is None else group.under(here.guard(group))
            if here.control is not None:
                self.trail.append(place)
                self._look(here, part)
                here.control(self, group, part)
                return
            if part is not None and here.step is not None:
                self._step(here, part)
            place += 1
            if place >= meeting:
                self.push(place, group)
                return

    def _step(self, here: Bound, part: Group) -> None:
        assert here.step is not None
        if self.watch is None:
            here.step(part)
        else:
            self.watch.perform(here.operation, here.step, part)

    def _look(self, here: Bound, part: Group | None) -> None:
        if self.watch is not None and part is not None:
            self.watch.branch(here.operation, part)

    def _bind(self, place: int) -> Bound:
        if not 0 <= place < len(self.program):
            raise Refusal(
                f"{self.machine.kernel}: execution leaves the program at {place * 16:#x} "
                f"(it ends at {len(self.program) * 16:#x})"
            )
        operation = Operation(self.machine, self.program, place)
        control, binder = CONTROL_BINDERS.get(operation.mnemonic), BINDERS.get(operation.mnemonic)
        here = f"{self.machine.kernel}+{place * 16:#06x} {operation.text}: the emulator has no meaning for"
        if control is None and binder is None:
            raise Refusal(f"{here} {operation.mnemonic}; add it to coppelius/emulator/semantics")
        bound = Bound(
            operation,
            operation.guard(),
            None if binder is None else binder(operation),
            None if control is None else control(operation),
        )
        if operation.unknown():
            raise Refusal(f"{here} {' '.join(operation.unknown())} of {operation.mnemonic}")
        return bound

    def _endless(self, place: int, group: Group, spent: str = "") -> None:
        here, spent = self.bound[place].operation, spent or f"{self.limit} steps"
        around = sorted(set(self.trail))
        turns = ", ".join(f"{p * 16:#x}" for p in around[-8:])
        self.machine.report(
            here,
            "endless",
            f"no end after {spent}; {group.threads} threads here; last branches at {turns or 'none'}",
            warps=group.warps,
            lanes=group.active,
        )
        raise Ended

    def _deadlock(self) -> None:
        lines = [
            f"{p.group.threads} threads at {p.operation.ordinal * 16:#x} {p.operation.text}"
            for p in sorted(self.parked, key=lambda p: p.operation.ordinal)
        ]
        first = self.parked[0]
        self.machine.report(
            first.operation,
            "deadlock",
            f"nobody can go on: {'; '.join(lines)}; {np.count_nonzero(self.machine.alive)} threads are alive",
            warps=first.group.warps,
            lanes=first.group.active,
        )
        raise Ended
