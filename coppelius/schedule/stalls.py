"""Stalls: each instruction issues as early as every path to it allows.

Time is the sum of stalls.  A value's reader, its next writer, and a wait on a scoreboard just raised
each need a distance (`isa.latency`); where it is missing, the stall before grows.  What is in flight is
followed over the control-flow graph, the least elapsed time of any path, until no stall grows.

A distance that fifteen cycles on the instructions between cannot give is reported, for a NOP to be put there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from coppelius.isa.access import Touch
from coppelius.isa.control import MAX_STALL, NO_BARRIER
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

Key = tuple[str, int, int, str]  # space, register, instruction, "w" or "r"
State = dict[Key, int]  # least cycles since that instruction issued


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

    def _sweep(self) -> bool:
        """One solution of the flow under the present stalls; whether any stall grew."""
        states: dict[int, State] = {b.start: {} for b in self.blocks}
        queue = [b.start for b in self.blocks]
        by_start = {b.start: b for b in self.blocks}
        grew = False
        while queue:
            block = by_start[queue.pop(0)]
            state, raised = self._walk(block, dict(states[block.start]))
            grew |= raised
            for target in block.following:
                if _merge(states[target], state) and target not in queue:
                    queue.append(target)
        return grew

    def _walk(self, block: Block, state: State) -> tuple[State, bool]:
        grew = False
        for i in range(block.start, block.end):
            lacking = self._lack(state, i)
            if lacking > 0:
                given = self._raise(block, i, lacking)
                grew |= given > 0
                if i > block.start and given:
                    state = {k: v + given for k, v in state.items()}
            self._enter(state, i)
            stall = self._effective(i)
            state = {k: v + stall for k, v in state.items() if v + stall < HORIZON}
        return state, grew

    def _effective(self, i: int) -> int:
        """Cycles this stall gives; 0 with the yield drains, which outlasts any fixed latency."""
        return self.cycles[i] or HORIZON

    def _lack(self, state: State, i: int) -> int:
        """Cycles missing before instruction i may issue."""
        lacking = 0
        row, op = self.rows[i], self.ops[i]
        if self.among is not None and i not in self.among:
            state = {k: v for k, v in state.items() if k[2] in self.among}
        for touch in self.reads[i]:
            for (_, _, p, _), elapsed in _of(state, touch, "w"):
                need = max((raw_cycles(self.ops[p], w, op, touch) for w in self._written(p, touch)), default=0)
                lacking = max(lacking, need - elapsed)
        for touch in self.writes[i]:
            for (_, _, p, _), elapsed in _of(state, touch, "w"):
                need = max((waw_cycles(self.ops[p], w, op, touch) for w in self._written(p, touch)), default=0)
                lacking = max(lacking, need - elapsed)
            for (_, _, p, _), elapsed in _of(state, touch, "r"):
                reads = (t for t in self.reads[p] if _same(t, touch))
                need = max((war_cycles(self.ops[p], t, op, touch) for t in reads), default=0)
                lacking = max(lacking, need - elapsed)
        wait = row["wait"]
        need = SET_TO_DEPBAR if stem(row) == "DEPBAR" else SET_TO_WAIT
        for b in range(6):
            if wait >> b & 1:
                for _, elapsed in _of(state, Touch("", "SB", b), "w"):
                    lacking = max(lacking, need - elapsed)
        return lacking

    def _written(self, producer: int, touch: Touch) -> list[Touch]:
        return [w for w in self.writes[producer] if _same(w, touch)]

    def _enter(self, state: State, i: int) -> None:
        """Put what instruction i leaves in flight into the state, zero cycles old."""
        if not self.variable[i]:
            for t in self.writes[i]:
                state[t.space, t.number, i, "w"] = 0
        for t in self.reads[i]:
            if t not in self.late[i]:
                state[t.space, t.number, i, "r"] = 0
        row = self.rows[i]
        for name in ("write_barrier", "read_barrier"):
            if row[name] != NO_BARRIER:
                state["SB", row[name], i, "w"] = 0

    def _raise(self, block: Block, i: int, lacking: int) -> int:
        """Give the missing cycles to the instructions before i; how many a first instruction's path got."""
        if i == block.start:
            return max((self._raise_at(p, p, lacking) for p in self.before[i]), default=0)
        given = 0
        for p in range(i - 1, block.start - 1, -1):
            given += self._raise_at(p, i, lacking - given, report=False)
            if given == lacking:
                return given
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


def _of(state: State, touch: Touch, kind: str) -> list[tuple[Key, int]]:
    return [(k, v) for k, v in state.items() if k[0] == touch.space and k[1] == touch.number and k[3] == kind]


def _merge(into: State, state: State) -> bool:
    changed = False
    for key, elapsed in state.items():
        if elapsed < into.get(key, HORIZON + 1):
            into[key] = elapsed
            changed = True
    return changed
