"""Scoreboards: who raises which of the six, and who waits.

A result of variable latency raises a write barrier if anything reads or overwrites it later; an operand
that is read late raises a read barrier if anything overwrites it before the result is waited for.  The
wait stands on the first such instruction of each path.  Scoreboards are counters: when six are not
enough, a producer shares one, best with a producer that is waited for at the same place.

Pending work is followed over the control-flow graph, loops included, by union over the paths.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from coppelius.isa.control import BARRIERS, NO_BARRIER
from coppelius.isa.latency import is_variable, reads_late
from coppelius.program.flow import Block
from coppelius.program.program import Instruction

Register = tuple[str, int]
Pending = tuple[int, str]  # (producer, "w" result or "r" operand read)
State = dict[Register, frozenset[Pending]]

_NONE: frozenset[Pending] = frozenset()


@dataclass
class Assignment:
    """Per instruction: write barrier, read barrier (7 = none), wait mask."""

    write: list[int]
    read: list[int]
    wait: list[int]


@dataclass
class Flow:
    """Pending work before each block, and the passes over it."""

    rows: Sequence[Instruction]
    blocks: Sequence[Block]
    consumers: dict[Pending, set[int]] = field(default_factory=lambda: defaultdict(set))

    def __post_init__(self) -> None:
        self.reads = [[(t.space, t.number) for t in row.reads] for row in self.rows]
        self.writes = [[(t.space, t.number) for t in row.writes] for row in self.rows]
        self.variable = [is_variable(r.encoding, r.values) for r in self.rows]
        self.late = [[(t.space, t.number) for t in r.reads if reads_late(r.encoding, r.values, t)] for r in self.rows]

    def conflicts(self, state: State, i: int) -> set[Pending]:
        """Pending work that instruction i must not overtake."""
        found: set[Pending] = set()
        for register in self.reads[i]:
            found.update(p for p in state.get(register, _NONE) if p[1] == "w")
        for register in self.writes[i]:
            found.update(state.get(register, _NONE))
        return found

    def raise_pending(self, state: State, i: int) -> None:
        """Add the work that instruction i leaves in flight."""
        for register in self.late[i]:
            state[register] = state.get(register, _NONE) | {(i, "r")}
        if self.variable[i]:
            for register in self.writes[i]:
                state[register] = state.get(register, _NONE) | {(i, "w")}

    def solve(self, settle: Callable[[State, int], set[Pending]]) -> None:
        """Run `settle(state, i) -> pending work that is done` over all blocks to a fixpoint."""
        before: dict[int, State] = {b.start: {} for b in self.blocks}
        queue = [b.start for b in self.blocks]
        by_start = {b.start: b for b in self.blocks}
        while queue:
            block = by_start[queue.pop(0)]
            state = dict(before[block.start])
            for i in range(block.start, block.end):
                done = settle(state, i)
                if done:
                    _remove(state, done)
                self.raise_pending(state, i)
            for target in block.following:
                if _merge(before[target], state) and target not in queue:
                    queue.append(target)


def _remove(state: State, done: set[Pending]) -> None:
    for register, pending in list(state.items()):
        left = pending - done
        if not left:
            del state[register]
        elif left is not pending:
            state[register] = left


def _merge(into: State, state: State) -> bool:
    changed = False
    for register, pending in state.items():
        old = into.get(register, _NONE)
        if not pending <= old:
            into[register] = old | pending
            changed = True
    return changed


def _with_operands(done: set[Pending]) -> set[Pending]:
    """A result that has arrived says that the operands were read, too."""
    return done | {(p, "r") for p, kind in done if kind == "w"}


def assign(rows: Sequence[Instruction], blocks: Sequence[Block], pins: Sequence[Mapping[str, int]]) -> Assignment:
    """Barriers and waits of each instruction; what `pins` fix stays as it is."""
    flow = Flow(rows, blocks)

    def first(state: State, i: int) -> set[Pending]:
        found = flow.conflicts(state, i)
        for pending in found:
            flow.consumers[pending].add(i)
        return _with_operands(found)

    flow.solve(first)
    out = _allocate(flow, pins)
    _place_waits(flow, out, pins)
    return out


def _allocate(flow: Flow, pins: Sequence[Mapping[str, int]]) -> Assignment:
    count = len(flow.rows)
    out = Assignment([NO_BARRIER] * count, [NO_BARRIER] * count, [0] * count)
    holders: dict[int, list[Pending]] = {b: [] for b in range(BARRIERS)}
    for i in range(count):
        for name, kind, column in (("write_barrier", "w", out.write), ("read_barrier", "r", out.read)):
            if name in pins[i]:
                column[i] = pins[i][name]
            elif flow.consumers.get((i, kind)):
                column[i] = _choose(flow, holders, i, flow.consumers[i, kind])
            if column[i] != NO_BARRIER:
                holders[column[i]].append((i, kind))
    return out


def _choose(flow: Flow, holders: dict[int, list[Pending]], i: int, consumers: set[int]) -> int:
    """A free scoreboard; else one waited for at the same place; else the one raised longest ago."""
    busy = {b: [p for p in held if _in_flight(flow, p, i)] for b, held in holders.items()}
    for b, held in busy.items():
        if held and all(flow.consumers[p] == consumers for p in held):
            return b
    free = [b for b, held in busy.items() if not held]
    if free:
        return min(free, key=lambda b: holders[b][-1][0] if holders[b] else -1)
    return min(busy, key=lambda b: max(p[0] for p in busy[b]))


def _in_flight(flow: Flow, pending: Pending, i: int) -> bool:
    """Whether earlier work may still be unfinished at i: some consumer stands later, or a loop brings it back."""
    consumers = flow.consumers[pending]
    return any(c >= i for c in consumers) or any(c <= pending[0] for c in consumers)


def _place_waits(flow: Flow, out: Assignment, pins: Sequence[Mapping[str, int]]) -> None:
    """Waits over the graph, knowing that a scoreboard at zero finishes all that raised it."""
    on: dict[int, set[Pending]] = defaultdict(set)
    for i in range(len(flow.rows)):
        if out.write[i] != NO_BARRIER:
            on[out.write[i]].add((i, "w"))
        if out.read[i] != NO_BARRIER:
            on[out.read[i]].add((i, "r"))

    def settle(state: State, i: int) -> set[Pending]:
        mask = pins[i].get("wait", 0)
        if "wait" not in pins[i]:
            for p, kind in flow.conflicts(state, i):
                barrier = out.write[p] if kind == "w" else out.read[p]
                mask |= 0 if barrier == NO_BARRIER else 1 << barrier
        out.wait[i] |= mask
        done: set[Pending] = set()
        for b in range(BARRIERS):
            if out.wait[i] >> b & 1:
                done |= on[b]
        return _with_operands(done)

    flow.solve(settle)
