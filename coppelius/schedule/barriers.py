"""Scoreboards: who raises which of the six, and who waits.

A result of variable latency raises a write barrier if anything reads or overwrites it later; an operand
that is read late raises a read barrier if anything overwrites it before it is known to have been read.
The wait stands on the first such instruction of each path, and covers what is known to be done by then:
results of one queue come back in order (SHFL, LDS; MUFU; FP64), operands leave a queue in order, and BAR
lets no operand unread.  Who is always covered by another raises nothing.

Scoreboards are counters, and six are seldom enough; `sharing` decides which producers share one.

Work in flight is a set of producers, an integer with a bit for each, followed over the control-flow graph
with loops, by union over the paths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from coppelius.isa.control import BARRIERS, NO_BARRIER
from coppelius.program.flow import Block
from coppelius.program.program import Instruction
from coppelius.schedule.estimate import Estimate
from coppelius.schedule.operation import Operation
from coppelius.schedule.sharing import Sharing

Pins = Sequence[Mapping[str, int]]
Settle = Callable[[int, "Flight"], tuple[int, int]]
RESULT, OPERANDS = 0, 1


@dataclass
class Assignment:
    """Per instruction: write barrier, read barrier (7 = none), wait mask."""

    write: list[int]
    read: list[int]
    wait: list[int]


@dataclass
class Flight:
    """What is in flight at one place: results and late operands as sets of producers, and what came in."""

    results: int = 0
    operands: int = 0

    def merge(self, other: Flight) -> bool:
        """Join; whether that added anything."""
        before = (self.results, self.operands)
        self.results |= other.results
        self.operands |= other.operands
        return (self.results, self.operands) != before


@dataclass
class Flow:
    """The passes over a program's work in flight."""

    operations: Sequence[Operation]
    blocks: Sequence[Block]
    # register -> producers that write it, that read it late
    writers: dict[int, int] = field(default_factory=dict)
    readers: dict[int, int] = field(default_factory=dict)
    # queue -> its instructions
    queues: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for i, op in enumerate(self.operations):
            for key in op.results:
                self.writers[key] = self.writers.get(key, 0) | 1 << i
            for key in op.late:
                self.readers[key] = self.readers.get(key, 0) | 1 << i
            if not op.never:
                for queue in {op.queue, op.late_queue}:
                    self.queues[queue] = self.queues.get(queue, 0) | 1 << i
        self.spans = [0] * len(self.operations)
        for block in self.blocks:
            span = (1 << block.end) - (1 << block.start)
            self.spans[block.start : block.end] = [span] * (block.end - block.start)

    def conflicts(self, i: int, flight: Flight) -> tuple[int, int]:
        """(results, operands) in flight that instruction i must not overtake."""
        op = self.operations[i]
        results = operands = 0
        if flight.results:
            for key, _ in op.reads:
                results |= self.writers.get(key, 0)
            for key, *_ in op.writes:
                # results of one queue arrive in order, so the later write wins
                results |= self.writers.get(key, 0) & ~(self.queues[op.queue] if op.queue else 0)
        if flight.operands:
            for key, *_ in op.writes:
                # a later one of the same queue reads, and so writes, after the earlier one has read
                operands |= self.readers.get(key, 0) & ~(self.queues[op.late_queue] if op.late_queue else 0)
        return results & flight.results, operands & flight.operands

    def finish(self, i: int, flight: Flight, results: int, operands: int) -> None:
        """Take out what is done once instruction i has waited for these."""
        for p in ones(results):
            older = self._older(p, i)
            flight.results &= ~(1 << p | older & self.queues.get(self.operations[p].queue or -1, 0))
            flight.operands &= ~(1 << p | older & self.queues.get(self.operations[p].late_queue or -1, 0))
        for p in ones(operands):
            older = self._older(p, i)
            flight.operands &= ~(1 << p | older & self.queues.get(self.operations[p].late_queue or -1, 0))

    def _older(self, p: int, i: int) -> int:
        """Instructions whose last execution before i surely came before p's, given that p was executed."""
        own = self.spans[p]
        earlier = own & ((1 << p) - 1)
        if own != self.spans[i]:
            return earlier
        # of the block that i stands in: what stands before i was executed anew since p's, if p stands after it
        return earlier | ~own if p < i else earlier & ~((1 << i) - 1)

    def solve(self, settle: Settle) -> list[Flight]:
        """What is in flight before each block, where `settle(i, flight)` says what i waits for: a fixpoint."""
        before = {b.start: Flight() for b in self.blocks}
        by_start = {b.start: b for b in self.blocks}
        queue = [b.start for b in self.blocks]
        waiting = set(queue)
        while queue:
            start = queue.pop(0)
            waiting.discard(start)
            flight = Flight(before[start].results, before[start].operands)
            self.walk(by_start[start], flight, settle)
            for target in by_start[start].following:
                if before[target].merge(flight) and target not in waiting:
                    queue.append(target)
                    waiting.add(target)
        return [before[b.start] for b in self.blocks]

    def walk(self, block: Block, flight: Flight, settle: Settle) -> None:
        """One block, front to back."""
        for i in range(block.start, block.end):
            op = self.operations[i]
            if flight.results or flight.operands:
                results, operands = settle(i, flight)
                if results or operands:
                    self.finish(i, flight, results, operands)
            if op.kind == "BAR" and not op.never:
                flight.operands = 0
            if op.late:
                flight.operands |= 1 << i
            if op.results:
                flight.results |= 1 << i


def ones(bits: int) -> Iterator[int]:
    """The places of the set bits, the highest first: a younger producer covers older ones."""
    while bits:
        place = bits.bit_length() - 1
        yield place
        bits &= ~(1 << place)


def assign(
    rows: Sequence[Instruction], operations: Sequence[Operation], blocks: Sequence[Block], pins: Pins
) -> Assignment:
    """Barriers and waits of each instruction; what `pins` fix stays as it is."""
    flow = Flow(operations, blocks)
    needs = _needs(flow)
    out = _allocate(flow, rows, needs, pins)
    _place_waits(flow, out, pins)
    return out


def _needs(flow: Flow) -> list[tuple[int, int]]:
    """(results, operands) that each instruction waits for, those left out that another of them covers."""

    def settle(i: int, flight: Flight) -> tuple[int, int]:
        return _uncovered(flow, i, *flow.conflicts(i, flight))

    needs: list[tuple[int, int]] = [(0, 0)] * len(flow.operations)

    def note(i: int, flight: Flight) -> tuple[int, int]:
        needs[i] = settle(i, flight)
        return needs[i]

    for block, flight in zip(flow.blocks, flow.solve(settle), strict=True):
        flow.walk(block, Flight(flight.results, flight.operands), note)
    return needs


def _uncovered(flow: Flow, i: int, results: int, operands: int) -> tuple[int, int]:
    """Without those that waiting for a younger one of the same queue covers."""
    if not results and not operands:
        return 0, 0
    kept_results = kept_operands = 0
    left = Flight(results, operands)
    for p in ones(results | operands):
        bit = 1 << p
        if left.results & bit:
            kept_results |= bit
            flow.finish(i, left, bit, 0)
        elif left.operands & bit:
            kept_operands |= bit
            flow.finish(i, left, 0, bit)
    return kept_results, kept_operands


def _group_scoreboard(flow: Flow, rows: Sequence[Instruction], pins: Pins) -> int:
    """What LDGDEPBAR raises: the scoreboard that counted waits name, which then nothing else may raise."""
    groups = [i for i, op in enumerate(flow.operations) if op.kind == "LDGDEPBAR"]
    if not groups:
        return NO_BARRIER
    pinned = [pins[i]["write_barrier"] for i in groups if "write_barrier" in pins[i]]
    counted = (row for row, op in zip(rows, flow.operations, strict=True) if op.kind == "DEPBAR")
    named = [row["scoreboard"] for row in counted if "scoreboard" in row.encoding.column]
    return (pinned or named or [0])[0]


def _allocate(flow: Flow, rows: Sequence[Instruction], needs: list[tuple[int, int]], pins: Pins) -> Assignment:
    count = len(rows)
    out = Assignment([NO_BARRIER] * count, [NO_BARRIER] * count, [0] * count)
    columns = (out.write, out.read)
    waiters: dict[tuple[int, int], list[int]] = {}
    for i, both in enumerate(needs):
        for kind in (RESULT, OPERANDS):
            for p in ones(both[kind]):
                waiters.setdefault((p, kind), []).append(i)
    groups = _group_scoreboard(flow, rows, pins)
    fixed: dict[tuple[int, int], int] = {}
    for i, (op, pin) in enumerate(zip(flow.operations, pins, strict=True)):
        if op.kind == "LDGDEPBAR":
            out.write[i] = groups
        for kind, name in enumerate(("write_barrier", "read_barrier")):
            if name in pin:
                columns[kind][i] = pin[name]
                fixed[i, kind] = pin[name]
    estimate = Estimate(flow.operations, flow.blocks, rows, needs)
    boards = [b for b in range(BARRIERS) if b != groups]
    for (i, kind), board in Sharing(estimate, waiters, fixed, boards).run().items():
        columns[kind][i] = board
    for i in range(count):
        # a result that has arrived says that the operands were read, too
        if out.read[i] == out.write[i] and "read_barrier" not in pins[i]:
            out.read[i] = NO_BARRIER
    return out


def _place_waits(flow: Flow, out: Assignment, pins: Pins) -> None:
    """Waits over the graph, knowing that a scoreboard at zero finishes all that raised it."""
    on = [[0, 0] for _ in range(BARRIERS)]
    for i in range(len(flow.operations)):
        if out.write[i] != NO_BARRIER:
            on[out.write[i]][RESULT] |= 1 << i
        if out.read[i] != NO_BARRIER:
            on[out.read[i]][OPERANDS] |= 1 << i

    def settle(i: int, flight: Flight) -> tuple[int, int]:
        mask = pins[i].get("wait", -1)
        if mask < 0:
            mask = 0
            results, operands = _uncovered(flow, i, *flow.conflicts(i, flight))
            for p in ones(results | operands):
                board = out.write[p] if results >> p & 1 or out.read[p] == NO_BARRIER else out.read[p]
                mask |= 0 if board == NO_BARRIER else 1 << board
        out.wait[i] = mask
        done = [0, 0]
        for board in range(BARRIERS):
            if mask >> board & 1:
                done[RESULT] |= on[board][RESULT]
                done[OPERANDS] |= on[board][OPERANDS]
        return done[RESULT] & flight.results, done[OPERANDS] & flight.operands

    before = flow.solve(settle)
    out.wait[:] = [pin.get("wait", 0) for pin in pins]
    for block, flight in zip(flow.blocks, before, strict=True):
        flow.walk(block, Flight(flight.results, flight.operands), settle)
