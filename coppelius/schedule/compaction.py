"""Compaction: stalls lowered, front to back, until no single one can be without a hazard.

Time is the sum of stalls, so an instruction's stall can fall by the least slack of all distances that pass it:
from what is young when it issues, to whatever comes after it on any path.  No stall is ever raised.  What compiled
code always leaves (after a branch, from BAR to what is not of fixed latency) stays, though no check asks for it.

`drained` also keeps, for each result that is ready by the end of its block, that it stays so: then the block may be
repeated or followed by anything.

The checkers judge the program before and after: one that they refuse comes back unchanged, and a stall that they
would miss (none is known) is put back.
"""

from __future__ import annotations

from collections.abc import Sequence

from coppelius.check.facts import Facts, facts_of
from coppelius.check.fixed_latency import fixed_latency_hazards
from coppelius.check.flow import Graph, graph_of
from coppelius.check.hazard import ALONE, Hazard
from coppelius.check.scoreboard import scoreboard_hazards
from coppelius.isa.control import legal_keep
from coppelius.isa.word import from_bytes
from coppelius.program.flow import Block
from coppelius.program.program import Instruction, Program
from coppelius.schedule.likeness import Memory, shape_of
from coppelius.schedule.operation import HORIZON, ROW_NEED, operation_of
from coppelius.schedule.stalls import DRAIN, Scan, Stalls, State

# more cycles than any block has
_PLENTY = 1 << 30
_STALLS: Memory[list[int]] = Memory()


def compact_stalls(program: Program, *, pinned: frozenset[int] = frozenset(), drained: bool = False) -> Program:
    """The program with every stall as low as the checks allow; `pinned` instructions keep theirs.

    A program that the checks refuse comes back unchanged: there is nothing to preserve.
    """
    question = (shape_of(program.rows), pinned, drained)
    new = _STALLS.get(question)
    if new is None:
        new = _STALLS.keep(question, _lowered(program, pinned, drained))
    if new == [row["stall"] for row in program.rows]:
        return program
    rows = [row if s == row["stall"] else _with_stall(row, s) for row, s in zip(program, new, strict=True)]
    return Program.of(rows, program.table)


def _lowered(program: Program, pinned: frozenset[int], drained: bool) -> list[int]:
    """The stalls, the program's own where the checks refuse it."""
    facts = facts_of(program.decoded, from_bytes(program.encode()))
    graph = graph_of(facts)
    old = [f.stall for f in facts]
    if _hazards(facts, graph):
        return old
    new = _Lowering(program, blocks_of(graph), pinned, drained).run()
    while new != old and (hazards := _hazards(_with_stalls(facts, new), graph)):
        for hazard in hazards:
            _restore(new, old, hazard)
    return new


def _with_stall(row: Instruction, stall: int) -> Instruction:
    """A lower stall; what had to let another warp in for its length alone no longer does."""
    keep = row["keep"] if legal_keep(row["stall"]) else int(legal_keep(stall))
    return row.with_fields({"stall": stall, "keep": keep})


def blocks_of(graph: Graph) -> list[Block]:
    """The checkers' graph as blocks: calls and indirect branches lead where they may lead in any context."""
    following: list[set[int]] = [set() for _ in graph.spans]
    for node, targets in enumerate(graph.successors):
        following[graph.blocks[node]].update(graph.spans[graph.blocks[t]][0] for t in targets)
    return [Block(*span, tuple(sorted(f))) for span, f in zip(graph.spans, following, strict=True)]


def _hazards(facts: Sequence[Facts], graph: Graph) -> list[Hazard]:
    return [*fixed_latency_hazards(facts, graph), *scoreboard_hazards(facts, graph)]


def _with_stalls(facts: Sequence[Facts], stalls: Sequence[int]) -> list[Facts]:
    return [f if f.stall == s else f._replace(stall=s) for f, s in zip(facts, stalls, strict=True)]


def _restore(new: list[int], old: Sequence[int], hazard: Hazard) -> None:
    """Put back the stalls that a distance may pass."""
    if hazard.cause == ALONE or hazard.cause >= hazard.ordinal:
        new[:] = old
    else:
        new[hazard.cause : hazard.ordinal] = old[hazard.cause : hazard.ordinal]


class _Lowering:
    """One compaction: `stalls.cycles` are the stalls as they fall."""

    def __init__(self, program: Program, flow: Sequence[Block], pinned: frozenset[int], drained: bool) -> None:
        self.rows = list(program)
        self.operations = [operation_of(row.encoding, row.values) for row in self.rows]
        self.pinned, self.drained = pinned, drained
        self.stalls = Stalls(self.rows, self.operations, flow, [{}] * len(self.rows), [r["stall"] for r in self.rows])
        self.stalls.settle()

    def run(self) -> list[int]:
        for block in self.stalls.blocks:
            self._lower(block)
        return self.stalls.cycles

    def _lower(self, block: Block) -> None:
        cycles = self.stalls.cycles
        scan, time = self._scan(block, block.start)
        left = sum(cycles[block.start : block.end])
        ready = _PLENTY
        for i in range(block.start, block.end):
            scan.enter(i, time)
            if self.drained:
                ready = min(ready, self._drain_slack(i, left))
            floor = max(self.operations[i].floor, self._adjacent(block, i))
            room = min(cycles[i] - floor, ready) if i not in self.pinned else 0
            if room > 0:
                slack, again = self._slack(block, scan, i, time, room)
                given = self._step_by_step(block, i, room) if again else max(0, room + min(0, slack))
                cycles[i] -= given if not again else 0
                left -= given
                ready -= given if self.drained else 0
                if given and left < HORIZON and self._spread(block):
                    scan, time = self._scan(block, i)
                    scan.enter(i, time)
            left -= cycles[i]
            time += cycles[i] or DRAIN

    def _step_by_step(self, block: Block, i: int, room: int) -> int:
        """Lower a stall in so short a loop that a distance passes it more than once: by one, and look again."""
        cycles = self.stalls.cycles
        for given in range(room):
            cycles[i] -= 1
            self.stalls.settle([block.start])
            scan, time = self._scan(block, i)
            scan.enter(i, time)
            if self._slack(block, scan, i, time, 0)[0] < 0:
                cycles[i] += 1
                self._settle_anew()
                return given
        return room

    def _settle_anew(self) -> None:
        self.stalls.entries = {b.start: {} for b in self.stalls.blocks}
        self.stalls.settle()

    def _scan(self, block: Block, end: int) -> tuple[Scan, int]:
        """What is young before `end`, and the time from the block's start."""
        scan = Scan(self.operations, self.stalls.entries[block.start])
        time = 0
        for i in range(block.start, end):
            scan.enter(i, time)
            time += self.stalls.cycles[i] or DRAIN
        return scan, time

    def _spread(self, block: Block) -> bool:
        """Tell the blocks after this one that what it leaves is younger; whether that came round to itself."""
        before = dict(self.stalls.entries[block.start])
        self.stalls.settle([block.start])
        return self.stalls.entries[block.start] != before

    def _drain_slack(self, i: int, left: int) -> int:
        """Cycles that the results of instruction i have to spare at its block's end, if they are ready there."""
        need = max((ROW_NEED[row] for _, row, _, _ in self.operations[i].writes if row >= 0), default=0)
        return left - need if left >= need > 0 else _PLENTY

    def _adjacent(self, block: Block, i: int) -> int:
        following = [i + 1] if i + 1 < block.end else block.following
        return max((self.stalls.adjacent(i, target) for target in following), default=0)

    def _slack(self, block: Block, scan: Scan, i: int, time: int, given: int) -> tuple[int, bool]:
        """The least cycles to spare, once i gives so many, of all distances from what is young to what follows i.

        And whether such a distance may pass i again.
        """
        entry = scan.left(time)
        after = (self.stalls.cycles[i] or DRAIN) - given
        slack, pending = self._ahead(entry, i + 1, block.end, after)
        again = False
        paths: list[tuple[int, State]] = [(t, pending) for t in block.following] if pending else []
        seen: dict[int, list[State]] = {}
        while paths:
            start, state = paths.pop()
            if any(_covers(known, state) for known in seen.get(start, ())):
                continue
            seen.setdefault(start, []).append(state)
            other = self.stalls.by_start[start]
            again |= other.start <= i < other.end
            found, state = self._ahead(state, other.start, other.end, 0)
            slack = min(slack, found)
            paths += [(t, state) for t in other.following] if state else []
        return slack, again

    def _ahead(self, entry: State, first: int, end: int, time: int) -> tuple[int, State]:
        """The slack of instructions from `first` on against these young registers, and those still young at `end`."""
        scan = Scan(self.operations, entry)
        slack = HORIZON
        for i in range(first, end):
            if time >= HORIZON or not (scan.written or scan.read):
                return slack, {}
            for ready, _ in scan.needs(i):
                slack = min(slack, time - ready)
            scan.forget(i)
            time += self.stalls.cycles[i] or DRAIN
        return slack, scan.left(time)


def _covers(known: State, state: State) -> bool:
    """Whether what is young in `state` is at least as young in `known`."""
    return all(known.get(key, age + 1) <= age for key, age in state.items())
