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
from coppelius.schedule.operation import NO_QUEUE, Operation, exclusive
from coppelius.schedule.sharing import Sharing

Pins = Sequence[Mapping[str, int]]
Settle = Callable[[int, "Flight"], tuple[int, int]]
RESULT, OPERANDS = 0, 1
# (producer, result or operands) -> who waits
Waiters = dict[tuple[int, int], list[int]]
# scoreboard, count, set of scoreboards
Counted = tuple[int, int, int]


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
        self.touched = [self._touched(op) for op in self.operations]
        # every cycle lies within its backward branches
        self.in_loop = 0
        for block in self.blocks:
            for target in block.following:
                if target <= block.start:
                    self.in_loop |= (1 << block.end) - (1 << target)
        self.spans = [0] * len(self.operations)
        for block in self.blocks:
            span = (1 << block.end) - (1 << block.start)
            self.spans[block.start : block.end] = [span] * (block.end - block.start)

    def _touched(self, op: Operation) -> tuple[int, int]:
        """Producers of whatever an instruction touches: of results, and of operands that it would overwrite."""
        results = operands = 0
        for key, _ in op.reads:
            results |= self.writers.get(key, 0)
        for key, *_ in op.writes:
            # results of one queue arrive in order, so the later write wins
            results |= self.writers.get(key, 0) & ~(self.queues.get(op.queue, 0) if op.queue else 0)
            # a later one of the same queue reads, and so writes, after the earlier one has read
            operands |= self.readers.get(key, 0) & ~(self.queues.get(op.late_queue, 0) if op.late_queue else 0)
        return results, operands

    def conflicts(self, i: int, flight: Flight) -> tuple[int, int]:
        """(results, operands) in flight that instruction i must not overtake."""
        op = self.operations[i]
        results, operands = self.touched[i]
        results, operands = results & flight.results, operands & flight.operands
        if op.guard and (results or operands):
            others = self._exclusive(i, results | operands)
            # in a loop it may be the work of the last round, unless its own overwriting has waited for that
            looped = self.in_loop >> i & 1
            results &= ~sum(1 << p for p in others if not (looped and self.operations[p].queue))
            operands &= ~sum(1 << p for p in others if not looped)
        return results, operands

    def _exclusive(self, i: int, work: int) -> list[int]:
        """What a thread that executes i has skipped."""
        return [p for p in ones(work & self.spans[i] & ((1 << i) - 1)) if exclusive(self.operations, p, i)]

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
    counted = [_counted(row, op) for row, op in zip(rows, operations, strict=True)]
    waiters: Waiters = {}
    for i, both in enumerate(needs):
        for kind in (RESULT, OPERANDS):
            for p in ones(both[kind]):
                waiters.setdefault((p, kind), []).append(i)
    estimate = Estimate(operations, blocks, needs)
    while True:
        out = _allocate(flow, estimate, waiters, counted, pins)
        missed = _place_waits(flow, out, counted, pins)
        if not missed:
            return out
        # sharing made an earlier wait do for the one that had covered these
        for work, waiting in missed.items():
            waiters[work] = sorted({*waiters.get(work, ()), *waiting})


def _counted(row: Instruction, op: Operation) -> tuple[int, int, int] | None:
    """(scoreboard, count it may keep, scoreboards that must be zero) of a DEPBAR."""
    if op.kind != "DEPBAR" or op.never:
        return None
    return row.get("scoreboard", -1), row.get("count"), row.get("set")


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


def _allocate(
    flow: Flow, estimate: Estimate, waiters: Waiters, counted: Sequence[Counted | None], pins: Pins
) -> Assignment:
    count = len(flow.operations)
    out = Assignment([NO_BARRIER] * count, [NO_BARRIER] * count, [0] * count)
    columns = (out.write, out.read)
    named = [c[0] for c in counted if c is not None and c[0] >= 0]
    groups = [i for i, op in enumerate(flow.operations) if op.kind == "LDGDEPBAR"]
    fixed: dict[tuple[int, int], int] = {}
    for i in groups:
        # a group raises what counted waits name
        out.write[i] = named[0] if named else 0
    for i, pin in enumerate(pins):
        for kind, name in enumerate(("write_barrier", "read_barrier")):
            if name in pin:
                columns[kind][i] = fixed[i, kind] = pin[name]
    # what is counted nothing else may raise
    reserved = {out.write[i] for i in groups} | (set(named) & set(fixed.values()))
    boards = [b for b in range(BARRIERS) if b not in reserved] or list(range(BARRIERS))
    for (i, kind), board in Sharing(estimate, waiters, fixed, boards).run().items():
        columns[kind][i] = board
    for i in range(count):
        # a result that has arrived says that the operands were read, too
        if out.read[i] == out.write[i] and "read_barrier" not in pins[i]:
            out.read[i] = NO_BARRIER
    return out


class _Waits:
    """Waits over the graph, knowing that a scoreboard at zero finishes all that raised it."""

    def __init__(self, flow: Flow, out: Assignment, counted: Sequence[Counted | None], pins: Pins) -> None:
        self.flow, self.out, self.counted, self.pins = flow, out, counted, pins
        self.on = [[0, 0] for _ in range(BARRIERS)]
        self.missed: dict[tuple[int, int], set[int]] = {}
        for i in range(len(pins)):
            for kind, column in enumerate((out.write, out.read)):
                if column[i] != NO_BARRIER:
                    self.on[column[i]][kind] |= 1 << i

    def settle(self, i: int, flight: Flight) -> tuple[int, int]:
        """Place the wait of instruction i; what it finishes."""
        mask = self.pins[i]["wait"] if "wait" in self.pins[i] else self._mask(i, flight)
        self.out.wait[i] = mask
        done = [0, 0]
        for board in range(BARRIERS):
            if mask >> board & 1:
                done[RESULT] |= self.on[board][RESULT]
                done[OPERANDS] |= self.on[board][OPERANDS]
        if (counted := self.counted[i]) is not None:
            self._count(i, counted, done)
        return done[RESULT] & flight.results, done[OPERANDS] & flight.operands

    def _mask(self, i: int, flight: Flight) -> int:
        mask = 0
        results, operands = _uncovered(self.flow, i, *self.flow.conflicts(i, flight))
        for p in ones(results | operands):
            kind = RESULT if results >> p & 1 else OPERANDS
            board = self.out.write[p] if kind == RESULT or self.out.read[p] == NO_BARRIER else self.out.read[p]
            if board != NO_BARRIER:
                mask |= 1 << board
            elif ("write_barrier", "read_barrier")[kind] not in self.pins[p]:
                self.missed.setdefault((p, kind), set()).add(i)
        return mask

    def _count(self, i: int, counted: Counted, done: list[int]) -> None:
        """What a DEPBAR finishes: all on the scoreboards of its set, and all but the last few in order on its own."""
        board, count, zero = counted
        whole = zero | (1 << board if board >= 0 and not count else 0)
        for b in range(BARRIERS):
            if whole >> b & 1:
                done[RESULT] |= self.on[b][RESULT]
                done[OPERANDS] |= self.on[b][OPERANDS]
        if board < 0 or not count:
            return
        results = self.on[board][RESULT]
        if (
            len({self.flow.operations[p].queue for p in ones(results)} - {NO_QUEUE}) == 1
            and not self.on[board][OPERANDS]
        ):
            here = sorted(ones(results & self.flow.spans[i] & ((1 << i) - 1)))
            for p in here[: max(0, len(here) - count)]:
                done[RESULT] |= 1 << p if self.flow.operations[p].queue else 0


def _place_waits(
    flow: Flow, out: Assignment, counted: Sequence[Counted | None], pins: Pins
) -> dict[tuple[int, int], set[int]]:
    """Fill `out.wait`; the work that someone must wait for and that raises nothing, with who."""
    waits = _Waits(flow, out, counted, pins)
    before = flow.solve(waits.settle)
    out.wait[:] = [pin.get("wait", 0) for pin in pins]
    waits.missed.clear()
    for block, flight in zip(flow.blocks, before, strict=True):
        flow.walk(block, Flight(flight.results, flight.operands), waits.settle)
    return waits.missed
