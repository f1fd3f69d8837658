"""Stalls: each instruction issues as early as every path to it allows.

Time is the sum of stalls.  A value's reader, its next writer, and a wait on a scoreboard just raised
each need a distance (`isa.latency`); where it is missing, the stall before grows.  What is in flight is
followed over the control-flow graph, the least elapsed time of any path, until no stall grows.

A distance that fifteen cycles on the instructions between cannot give is reported, for a NOP to be put there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from coppelius.isa.access import Touch
from coppelius.isa.control import BARRIERS, MAX_STALL, NO_BARRIER
from coppelius.isa.latency import (
    SET_TO_DEPBAR,
    SET_TO_WAIT,
    Op,
    is_variable,
    minimum_stall,
    raw_cycles,
    reads_late,
    war_cycles,
    waw_cycles,
)
from coppelius.program.flow import Block, stem
from coppelius.program.program import Instruction

HORIZON = 40  # no distance in the grid is longer
# what compiled code leaves after these, though nothing reads their results (facts 3.4)
_FLOORS = {"BRA": 5, "EXIT": 5, "BSYNC": 5, "MEMBAR": 6, "BAR": 6, "CCTL": 5, "WARPSYNC": 5}

Register = tuple[str, int]  # space, number; ("SB", n) is scoreboard n
InFlight = dict[tuple[int, str], int]  # (instruction, "w" or "r") -> cycles from its issue to the block's start
State = dict[Register, InFlight]


def floor(instruction: Instruction) -> int:
    """The least stall this instruction gets whatever follows."""
    return max(minimum_stall(instruction.encoding), _FLOORS.get(stem(instruction), 1))


@dataclass
class Stalls:
    """The pass over one program; `cycles` is the result, `missing` the distances it could not give.

    `among`: if given, only distances to or from these instructions are looked at.
    """

    rows: Sequence[Instruction]
    blocks: Sequence[Block]
    pins: Sequence[Mapping[str, int]]
    among: frozenset[int] | None = None
    cycles: list[int] = field(default_factory=list)
    missing: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.cycles = [pin.get("stall", floor(row)) for row, pin in zip(self.rows, self.pins, strict=True)]
        self.ops: list[Op] = [(r.encoding, r.values) for r in self.rows]
        self.reads = [r.reads for r in self.rows]
        self.writes = [r.writes for r in self.rows]
        self.late = [{t for t in reads if reads_late(*op, t)} for op, reads in zip(self.ops, self.reads, strict=True)]
        self.variable = [is_variable(*op) for op in self.ops]
        self.before: dict[int, list[int]] = {b.start: [] for b in self.blocks}
        for block in self.blocks:
            for target in block.following:
                self.before[target].append(block.end - 1)

    def run(self) -> list[int]:
        """Raise stalls until every distance holds; the stalls."""
        while self._sweep():
            pass
        return self.cycles

    def tight(self) -> set[int]:
        """Instructions whose stall some distance needs whole, given `cycles` as they are."""
        states = self._settled()
        found: set[int] = set()
        for block in self.blocks:
            state: State = {r: {k: -v for k, v in held.items()} for r, held in states[block.start].items()}
            now = 0
            for i in range(block.start, block.end):
                for p, ready in self._needs(state, i):
                    if ready >= now:
                        found |= self._between(block, p, i)
                self._enter(state, i, now)
                now += self.cycles[i] or HORIZON
        return found

    def _settled(self) -> dict[int, State]:
        """What is in flight before each block, no stall being raised."""
        states: dict[int, State] = {b.start: {} for b in self.blocks}
        queue = [b.start for b in self.blocks]
        by_start = {b.start: b for b in self.blocks}
        while queue:
            block = by_start[queue.pop(0)]
            state: State = {r: {k: -v for k, v in held.items()} for r, held in states[block.start].items()}
            now = 0
            for i in range(block.start, block.end):
                self._enter(state, i, now)
                now += self.cycles[i] or HORIZON
            for target in block.following:
                if _merge(states[target], _aged(state, now)) and target not in queue:
                    queue.append(target)
        return states

    def _between(self, block: Block, p: int, i: int) -> set[int]:
        """Instructions from p to the one before i; over other blocks, all that such a short path can visit."""
        if block.start <= p < i:
            return set(range(p, i))
        found = set(range(block.start, i))
        for other in self.blocks:
            if other.start <= p < other.end:
                found |= set(range(p, other.end))
            elif sum(self.cycles[other.start : other.end]) < HORIZON:
                found |= set(range(other.start, other.end))
        return found

    def _sweep(self) -> bool:
        """One solution of the flow under the present stalls; whether any stall grew."""
        states: dict[int, State] = {b.start: {} for b in self.blocks}
        queue = [b.start for b in self.blocks]
        by_start = {b.start: b for b in self.blocks}
        grew = False
        while queue:
            block = by_start[queue.pop(0)]
            state, raised = self._walk(block, states[block.start])
            grew |= raised
            for target in block.following:
                if _merge(states[target], state) and target not in queue:
                    queue.append(target)
        return grew

    def _walk(self, block: Block, entry: State) -> tuple[State, bool]:
        """The block's instructions in order; in flight at its end, and whether a stall grew.

        Inside, the state holds the time of issue, entries from before the block being negative.
        """
        state: State = {r: {k: -v for k, v in held.items()} for r, held in entry.items()}
        grew = False
        now = 0
        for i in range(block.start, block.end):
            ready, cause = self._ready(state, i)
            if ready > now:
                given = self._raise(block, i, cause, ready - now)
                grew |= given > 0
                now += given if i > block.start else 0
            self._enter(state, i, now)
            now += self.cycles[i] or HORIZON
        return _aged(state, now), grew

    def _ready(self, state: State, i: int) -> tuple[int, int]:
        """The earliest time at which instruction i may issue, and the instruction that says so."""
        return max(((ready, p) for p, ready in self._needs(state, i)), default=(-HORIZON, i))

    def _needs(self, state: State, i: int) -> Iterator[tuple[int, int]]:
        """(instruction in flight, time from which i may issue after it) for each distance that i must keep."""
        op = self.ops[i]
        for touch in self.reads[i]:
            for (p, kind), issued in self._held(state, touch, i):
                if kind == "w":
                    needs = (raw_cycles(self.ops[p], w, op, touch) for w in self.writes[p] if _same(w, touch))
                    yield p, issued + max(needs, default=0)
        for touch in self.writes[i]:
            for (p, kind), issued in self._held(state, touch, i):
                if kind == "w":
                    needs = (waw_cycles(self.ops[p], w, op, touch) for w in self.writes[p] if _same(w, touch))
                else:
                    needs = (war_cycles(self.ops[p], t, op, touch) for t in self.reads[p] if _same(t, touch))
                yield p, issued + max(needs, default=0)
        wait = self.rows[i]["wait"]
        need = SET_TO_DEPBAR if stem(self.rows[i]) == "DEPBAR" else SET_TO_WAIT
        for b in range(BARRIERS):
            if wait >> b & 1:
                for (p, _), issued in self._held(state, Touch("", "SB", b), i):
                    yield p, issued + need

    def _held(self, state: State, touch: Touch, i: int) -> list[tuple[tuple[int, str], int]]:
        held = state.get((touch.space, touch.number))
        if not held:
            return []
        if self.among is None or i in self.among:
            return list(held.items())
        return [(k, v) for k, v in held.items() if k[0] in self.among]

    def _enter(self, state: State, i: int, now: int) -> None:
        """Put what instruction i leaves in flight into the state."""
        row = self.rows[i]
        for t in self.reads[i]:
            if t not in self.late[i]:
                state.setdefault((t.space, t.number), {})[i, "r"] = now
        if not self.variable[i]:
            for t in self.writes[i]:
                state.setdefault((t.space, t.number), {})[i, "w"] = now
        for name in ("write_barrier", "read_barrier"):
            if row[name] != NO_BARRIER:
                state.setdefault(("SB", row[name]), {})[i, "w"] = now

    def _raise(self, block: Block, i: int, cause: int, lacking: int) -> int:
        """Give the missing cycles to instructions from `cause` to the one before i; how many they got.

        A stall that the kernel itself fixed stays, for the checkers to judge.
        """
        if i == block.start:
            return max((self._raise_at(p, i, lacking) for p in self.before[i]), default=0)
        given = 0
        first = cause if block.start <= cause < i else block.start
        for p in range(i - 1, first - 1, -1):
            given += self._raise_at(p, i, lacking - given, report=False)
            if given == lacking:
                return given
        if not any("stall" in self.pins[p] for p in range(first, i)):
            self.missing[i] = max(self.missing.get(i, 0), lacking - given)
        return given

    def _raise_at(self, p: int, where: int, lacking: int, *, report: bool = True) -> int:
        if "stall" in self.pins[p]:
            return 0
        given = min(lacking, MAX_STALL - self.cycles[p])
        if given < lacking and report:
            self.missing[where] = max(self.missing.get(where, 0), lacking - given)
        self.cycles[p] += given
        return given


def _same(a: Touch, b: Touch) -> bool:
    return a.space == b.space and a.number == b.number


def _aged(state: State, now: int) -> State:
    """Times of issue to cycles since, what is older than the horizon left out."""
    left: State = {}
    for register, held in state.items():
        fresh = {k: now - v for k, v in held.items() if now - v < HORIZON}
        if fresh:
            left[register] = fresh
    return left


def _merge(into: State, state: State) -> bool:
    changed = False
    for register, held in state.items():
        mine = into.setdefault(register, {})
        for key, elapsed in held.items():
            if elapsed < mine.get(key, HORIZON + 1):
                mine[key] = elapsed
                changed = True
    return changed
