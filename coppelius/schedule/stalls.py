"""Stalls: each instruction issues as early as every path to it allows.

Time is the sum of stalls.  A value's reader, its next writer, and a wait on a scoreboard just raised
each need a distance (`isa.latency`); where it is missing, the stall before grows.  What is young enough to
matter is followed over the control-flow graph, the least age of any path, until no stall grows.

Within a block the cycles go just before the instruction that lacks them; where a block's first one lacks
them, to the end of the blocks that bring the young value.  A distance that fifteen cycles on the
instructions between cannot give is reported, for a NOP to be put there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from coppelius.isa.control import MAX_STALL, NO_BARRIER
from coppelius.isa.latency import SET_TO_DEPBAR, SET_TO_WAIT
from coppelius.program.cycles import Pipes
from coppelius.program.flow import Block
from coppelius.program.program import Instruction
from coppelius.schedule.operation import (
    PROMPT_NEED,
    RAW_NEED,
    ROW_NEED,
    WAR_NEED,
    WAR_ROW_NEED,
    WAW_NEED,
    Operation,
    exclusive,
)

# stall 0 waits about 45 cycles (published), longer than any distance
DRAIN = 45

_WRITTEN, _READ = 0, 1
# barrier -> the scoreboard that it raises, as a mask
_RAISED = [0 if barrier == NO_BARRIER else 1 << barrier for barrier in range(NO_BARRIER + 1)]
# (written or read, register, row of RAW/WAW or WAR, guarded writer, ordinal) -> least age at the block's start
State = dict[tuple[int, int, int, bool, int], int]


# a register written or read: time, row of RAW and WAW or of WAR, guarded writer, ordinal
Event = tuple[int, int, bool, int]


class Scan:
    """Young registers along a block, from what comes into it; `time` counts from the block's start."""

    def __init__(self, operations: Sequence[Operation], entry: State) -> None:
        self.operations = operations
        self.written: dict[int, tuple[Event, ...]] = {}
        self.read: dict[int, tuple[Event, ...]] = {}
        for (kind, key, row, guarded, ordinal), age in entry.items():
            table = self.written if kind == _WRITTEN else self.read
            table[key] = (*table.get(key, ()), (-age, row, guarded, ordinal))

    def needs(self, i: int) -> list[tuple[int, int]]:
        """(time from which instruction i may issue, who says so) for each young register that it touches."""
        op = self.operations[i]
        written, read = self.written, self.read
        found = []
        for key, column in op.reads:
            if key in written and column >= 0:
                for time, row, _, ordinal in written[key]:
                    if (need := RAW_NEED[row][column]) and not (op.guard and exclusive(self.operations, ordinal, i)):
                        found.append((time + need, ordinal))
        for key, _, column, war in op.writes:
            if key in written and column >= 0:
                for time, row, guarded, ordinal in written[key]:
                    if (need := WAW_NEED[guarded][row][column]) and not (
                        op.guard and exclusive(self.operations, ordinal, i)
                    ):
                        found.append((time + need, ordinal))
            if key in read and war >= 0:
                for time, row, _, ordinal in read[key]:
                    if (need := WAR_NEED[row][war]) and not (op.guard and exclusive(self.operations, ordinal, i)):
                        found.append((time + need, ordinal))
        return found

    def enter(self, i: int, time: int) -> None:
        """Instruction i has issued."""
        op = self.operations[i]
        written, read = self.written, self.read
        guarded = op.guard != 0
        for key, row, _, _ in op.writes:
            if row >= 0:
                event = (time, row, guarded, i)
                written[key] = (*written[key], event) if guarded and key in written else (event,)
            elif key in written and not guarded:
                del written[key]
        for key, row in op.timed:
            event = (time, row, False, i)
            read[key] = (*[e for e in read[key] if e[1] != row], event) if key in read else (event,)

    def forget(self, i: int) -> None:
        """Instruction i has surely overwritten what it writes."""
        op = self.operations[i]
        if not op.guard:
            for key, *_ in op.writes:
                self.written.pop(key, None)

    def left(self, now: int) -> State:
        """What is still young at that time."""
        state: State = {}
        for kind, table, needs in ((_WRITTEN, self.written, ROW_NEED), (_READ, self.read, WAR_ROW_NEED)):
            for key, events in table.items():
                for time, row, guarded, ordinal in events:
                    if now - time < needs[row]:
                        state[kind, key, row, guarded, ordinal] = now - time
        return state


@dataclass
class Stalls:
    """The pass over one program; `cycles` is the result, `missing` the distances it could not give.

    among: if given, only distances to or from these instructions are looked at, and pipes are not.
    """

    rows: Sequence[Instruction]
    operations: Sequence[Operation]
    blocks: Sequence[Block]
    pins: Sequence[Mapping[str, int]]
    cycles: list[int] = field(default_factory=list)
    missing: dict[int, int] = field(default_factory=dict)
    among: frozenset[int] | None = None

    def __post_init__(self) -> None:
        if not self.cycles:
            self.cycles = [pin.get("stall", op.floor) for op, pin in zip(self.operations, self.pins, strict=True)]
        self.waits = [row["wait"] for row in self.rows]
        self.raised = [_RAISED[row["write_barrier"]] | _RAISED[row["read_barrier"]] for row in self.rows]
        self.by_start = {b.start: b for b in self.blocks}
        self.entries: dict[int, State] = {b.start: {} for b in self.blocks}

    def run(self) -> list[int]:
        """Raise stalls until every distance holds; the stalls."""
        grew = True
        while grew:
            self.entries = {b.start: {} for b in self.blocks}
            grew = self.settle(raising=True)
        return self.cycles

    def settle(self, first: Sequence[int] | None = None, *, raising: bool = False) -> bool:
        """Follow what is young from these blocks (None: all) on to a fixpoint; whether a stall grew."""
        queue = [b.start for b in self.blocks] if first is None else list(first)
        waiting = set(queue)
        grew = False
        while queue:
            block = self.by_start[queue.pop(0)]
            waiting.discard(block.start)
            scan = Scan(self.operations, self.entries[block.start])
            time, raised = self._walk(block, scan, raising)
            state = scan.left(time)
            for target in block.following:
                lacking = self._lacking(block, target, state) if raising else 0
                if lacking > 0 and (given := self._raise_at(block.end - 1, target, lacking)):
                    raised = True
                    time += given
                    state = scan.left(time)
                if _merge(self.entries[target], state) and target not in waiting:
                    queue.append(target)
                    waiting.add(target)
            grew |= raised
        return grew

    def _walk(self, block: Block, scan: Scan, raising: bool) -> tuple[int, bool]:
        """The block's instructions in order; its length in cycles, and whether a stall grew."""
        time = 0
        if not raising:
            for i in range(block.start, block.end):
                scan.enter(i, time)
                time += self.cycles[i] or DRAIN
            return time, False
        grew = False
        pipes = Pipes()
        for i in range(block.start, block.end):
            op = self.operations[i]
            if i > block.start:
                lacking, cause = self._needed(scan, i, time)
                # compiled code leaves its pipe's cycles, too: later distances then start where the machine is
                if self.among is None:
                    lacking = max(lacking, min(pipes.earliest(op.pipes) - time, MAX_STALL - self.cycles[i - 1]))
                if lacking > 0:
                    given = self._raise(block, i, cause, lacking)
                    grew |= given > 0
                    time += given
            scan.enter(i, time)
            if self.waits[i]:
                # it may issue any time later, and the pipes be free by then
                pipes = Pipes()
            pipes.issue(op.pipes, op.taken, time)
            time += self.cycles[i] or DRAIN
        return time, grew

    def _needed(self, scan: Scan, i: int, time: int) -> tuple[int, int]:
        """(cycles that instruction i lacks if it issues at that time, the instruction that says so)."""
        ready, cause = max(self._chosen(scan.needs(i), i), default=(time, i - 1))
        adjacent = self.adjacent(i - 1, i) - (self.cycles[i - 1] or DRAIN)
        return max((ready - time, cause), (adjacent, i - 1))

    def _chosen(self, needs: list[tuple[int, int]], i: int) -> list[tuple[int, int]]:
        if self.among is None or i in self.among:
            return needs
        return [(ready, cause) for ready, cause in needs if cause in self.among]

    def adjacent(self, first: int, second: int) -> int:
        """Cycles that two instructions in a row need by what only the next one can miss."""
        need = 0
        if self.among is not None and not self.among & {first, second}:
            return 0
        if self.waits[second] & self.raised[first]:
            need = SET_TO_DEPBAR if self.operations[second].kind == "DEPBAR" else SET_TO_WAIT
        prompt = self.operations[first].prompt
        if prompt:
            for key, _, _, war in self.operations[second].writes:
                if war >= 0 and PROMPT_NEED[war] > need and key in prompt:
                    need = PROMPT_NEED[war]
        return need

    def _lacking(self, block: Block, target: int, state: State) -> int:
        """Cycles that the first instruction of the next block lacks."""
        scan = Scan(self.operations, state)
        ready = max((ready for ready, _ in self._chosen(scan.needs(target), target)), default=0)
        return max(ready, self.adjacent(block.end - 1, target) - (self.cycles[block.end - 1] or DRAIN))

    def _raise(self, block: Block, i: int, cause: int, lacking: int) -> int:
        """Give the missing cycles to instructions from `cause` to the one before i; how many they got.

        A stall that the kernel itself fixed stays, for the checkers to judge.
        """
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
        if "stall" in self.pins[p] or not self.cycles[p]:
            return 0
        given = min(lacking, MAX_STALL - self.cycles[p])
        if given < lacking and report:
            self.missing[where] = max(self.missing.get(where, 0), lacking - given)
        self.cycles[p] += given
        return given


def _merge(into: State, state: State) -> bool:
    changed = False
    for key, age in state.items():
        if age < into.get(key, age + 1):
            into[key] = age
            changed = True
    return changed
