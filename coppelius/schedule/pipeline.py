"""Software pipelining: stages of a loop's body, by modulo scheduling.

One iteration starts every `interval` cycles; each instruction gets a time such that its operands are there, also those
of the iteration before, and that no pipe is wanted twice at the same time modulo the interval.  The interval is at
least what issue and pipes need for one iteration (resources), and what a value needs on its way round (recurrences).

An instruction's time divided by the interval is its stage, the rest its place in the phase.  How long loads are assumed
to take decides how many stages there are; a number of stages is reached by the longest loads that still fit in it.

Registers that belong to one iteration only (`own`) order nothing between iterations: they get copies.  Memory does,
where spaces may be the same, except in the spaces that the kernel declares `apart` between iterations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from coppelius.isa.refusal import Refusal
from coppelius.program.cycles import MEMORY_CYCLES, MEMORY_QUEUE, QUEUE_CYCLES
from coppelius.program.flow import Block, stem
from coppelius.program.program import Instruction
from coppelius.program.stages import Stages, in_turn
from coppelius.schedule.operation import Operation, operation_of
from coppelius.schedule.reorder import GLOBAL, LOCAL, SHARED_SPACE, Access, Blocks

SPACES = {"global": GLOBAL, "shared": SHARED_SPACE, "local": LOCAL}
# asked for where the kernel says nothing (assumed: more seldom fit)
MOST_STAGES = 4
# intervals tried above the least, and instructions put back for each that the body has (assumed)
_SLACK, _PATIENCE = 2, 6
# what counts groups in flight, or means its own place, cannot be overlapped with itself
_NEVER = ("LDGDEPBAR", "DEPBAR", "LEPC")
_BESIDE = 1 << 28  # registers of the iteration after, numbered beside those of the one before
_FAR = 8  # spaces of the iteration after, where they are apart: so many bits further


class Edge(NamedTuple):
    """`second` of the iteration `distance` later issues at least so many cycles after `first`."""

    first: int
    second: int
    cycles: int
    distance: int


@dataclass(frozen=True)
class Body:
    """A loop's body: instructions on virtual registers; keys of the registers of one iteration; spaces apart."""

    rows: Sequence[Instruction]
    pins: Sequence[Mapping[str, int]]
    own: frozenset[int] = frozenset()
    apart: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for row, pin in zip(self.rows, self.pins, strict=True):
            if stem(row) in _NEVER:
                raise Refusal(f"{stem(row)} in a pipelined loop: what it counts would be other iterations' too")
            if pin:
                raise Refusal(f"{stem(row)} in a pipelined loop has {', '.join(sorted(pin))} pinned")
        if unknown := set(self.apart) - set(SPACES):
            raise Refusal(f"no space {min(unknown)} of memory; spaces: {', '.join(sorted(SPACES))}")

    @property
    def operations(self) -> list[Operation]:
        return [operation_of(row.encoding, row.values) for row in self.rows]


def edges(body: Body, memory: int) -> list[Edge]:
    """What must stay apart, within an iteration and from one to the next; loads take `memory` cycles."""
    own, count = body.operations, len(body.rows)
    after = [_beside(op, body.own) for op in own]
    twice = Blocks([*body.rows] * 2, [*own, *after], [*body.pins] * 2, None)
    far = sum(SPACES[name] for name in body.apart)
    twice.access[count:] = [_moved(access, far) for access in twice.access[count:]]
    graph = twice.graph(Block(0, 2 * count, ()), twice.results_at(memory))
    found = []
    for j, needs in enumerate(graph.after):
        for i, cycles in needs.items():
            if i < count:
                found.append(Edge(i, j % count, max(1, cycles), j // count))
    return found


def _beside(op: Operation, own: frozenset[int]) -> Operation:
    """An instruction of the next iteration: its own registers are others."""

    def at(key: int) -> int:
        return key + _BESIDE if key in own else key

    return op._replace(
        reads=tuple((at(key), column) for key, column in op.reads),
        writes=tuple((at(key), row, column, war) for key, row, column, war in op.writes),
        timed=tuple((at(key), row) for key, row in op.timed),
        prompt=frozenset(map(at, op.prompt)),
        late=tuple(map(at, op.late)),
        results=tuple(map(at, op.results)),
    )


def _moved(access: Access, far: int) -> Access:
    """Accesses to those spaces as to spaces that no iteration before knows."""
    reads, writes = ((bits & ~far) | (bits & far) << _FAR for bits in (access.reads, access.writes))
    return Access(reads, writes, access.fence)


def resource_interval(operations: Sequence[Operation]) -> int:
    """Cycles that issue and the busiest pipe need for one iteration."""
    taken: dict[tuple[str, ...], int] = {}
    for op in operations:
        taken[op.pipes] = taken.get(op.pipes, 0) + op.taken
    # of two pipes that serve the same, each takes half; what must go through one of them comes on top
    shared = [
        -(-sum(cycles for pipes, cycles in taken.items() if set(pipes) <= set(these)) // len(these)) for these in taken
    ]
    return max(len(operations), *shared)


def recurrence_interval(count: int, found: Sequence[Edge]) -> int:
    """The least interval at which every way round leaves its cycles."""
    low, high = 1, max(1, sum(edge.cycles for edge in found))
    while low < high:
        middle = (low + high) // 2
        if _heights(count, found, middle) is None:
            low = middle + 1
        else:
            high = middle
    return low


def _heights(count: int, found: Sequence[Edge], interval: int) -> list[int] | None:
    """Cycles from each instruction to the last that waits for it; None where a way round has too few."""
    heights = [0] * count
    for _ in range(count + 1):
        changed = False
        for first, second, cycles, distance in found:
            needed = heights[second] + cycles - interval * distance
            if needed > heights[first]:
                heights[first], changed = needed, True
        if not changed:
            return heights
    return None


class _Reservation:
    """Which pipes and issue slots are taken, modulo the interval."""

    def __init__(self, operations: Sequence[Operation], interval: int) -> None:
        self.operations, self.interval = operations, interval
        self.slots: list[int | None] = [None] * interval
        self.pipes: dict[str, list[int | None]] = {}

    def _cycles(self, i: int, time: int) -> list[int]:
        taken = min(self.operations[i].taken, self.interval)
        return [(time + c) % self.interval for c in range(taken)]

    def free(self, i: int, time: int) -> bool:
        """Whether an instruction could issue then."""
        return self.slots[time % self.interval] is None and self._pipe(i, time) is not None

    def _pipe(self, i: int, time: int) -> str | None:
        op = self.operations[i]
        # a queue takes what comes as long as it is served in time
        if op.pipes == MEMORY_QUEUE:
            return op.pipes[0]
        cycles = self._cycles(i, time)
        rows = ((pipe, self.pipes.setdefault(pipe, [None] * self.interval)) for pipe in op.pipes)
        return next((pipe for pipe, row in rows if all(row[c] is None for c in cycles)), None)

    def take(self, i: int, time: int) -> None:
        self.slots[time % self.interval] = i
        pipe = self._pipe(i, time)
        assert pipe is not None
        if pipe != MEMORY_QUEUE[0]:
            for c in self._cycles(i, time):
                self.pipes[pipe][c] = i

    def leave(self, i: int) -> None:
        for row in (self.slots, *self.pipes.values()):
            row[:] = [None if other == i else other for other in row]

    def in_the_way(self, i: int, time: int) -> set[int]:
        """Who must leave for an instruction to issue then."""
        op = self.operations[i]
        found = {self.slots[time % self.interval]}
        if self._pipe(i, time) is None:
            found |= {self.pipes[op.pipes[0]][c] for c in self._cycles(i, time)}
        return {other for other in found if other is not None}


def times(operations: Sequence[Operation], found: Sequence[Edge], interval: int) -> list[int] | None:
    """Issue times of one iteration that repeat at the interval; None where none was found."""
    count = len(operations)
    heights = _heights(count, found, interval)
    if heights is None:
        return None
    before: list[list[Edge]] = [[] for _ in operations]
    after: list[list[Edge]] = [[] for _ in operations]
    for edge in found:
        before[edge.second].append(edge)
        after[edge.first].append(edge)
    table = _Reservation(operations, interval)
    issued: dict[int, int] = {}
    last: dict[int, int] = {}
    patience = _PATIENCE * count
    waiting = set(range(count))
    while waiting and patience:
        patience -= 1
        i = max(waiting, key=lambda n: (heights[n], -n))
        waiting.remove(i)
        early = max(
            (issued[e.first] + e.cycles - interval * e.distance for e in before[i] if e.first in issued), default=0
        )
        early = max(early, 0)
        choice = next((t for t in range(early, early + interval) if table.free(i, t)), None)
        if choice is None:
            # the place it had did not last: one later
            choice = max(early, last.get(i, -1) + 1)
        gone = table.in_the_way(i, choice)
        gone |= {
            e.second for e in after[i] if issued.get(e.second, 1 << 30) < choice + e.cycles - interval * e.distance
        } - {i}
        for other in gone:
            table.leave(other)
            del issued[other]
            waiting.add(other)
        table.take(i, choice)
        issued[i] = last[i] = choice
    return None if waiting else [issued[i] for i in range(count)]


def staged(body: Body, memory: int) -> Stages | None:
    """The stages of the shortest interval at which loads may take so long."""
    operations, found = body.operations, edges(body, memory)
    # a whole round of the memory queue
    queue = sum(op.pipes == MEMORY_QUEUE for op in operations) * QUEUE_CYCLES
    least = max(resource_interval(operations), recurrence_interval(len(operations), found), queue)
    for interval in range(least, _SLACK * least + 1):
        issued = times(operations, found, interval)
        if issued is not None:
            begin = min(issued)
            issued = [time - begin for time in issued]
            return Stages(
                tuple(sorted(range(len(issued)), key=lambda i: issued[i] % interval)),
                tuple(time // interval for time in issued),
            )
    return None


def in_stages(body: Body, most: int) -> Stages | None:
    """The stages, at most so many, in which loads may take longest."""
    low, high = 1, max(MEMORY_CYCLES)
    best = None
    while low <= high:
        middle = (low + high) // 2
        made = staged(body, middle)
        if made is not None and made.count <= most:
            best, low = made, middle + 1
        else:
            high = middle - 1
    return best


def by_loads(body: Body, count: int) -> Stages:
    """So many stages, spread over the loads that an instruction waits for, one behind the other."""
    depth = [0] * len(body.rows)
    for first, second, cycles, distance in sorted(edges(body, MEMORY_CYCLES[-1]), key=lambda e: e.second):
        if not distance:
            depth[second] = max(depth[second], depth[first] + int(cycles >= MEMORY_CYCLES[-1]))
    deepest = max(depth)
    return by_youth([d * (count - 1) // max(1, deepest) for d in depth])


def refusal(body: Body, stages: Stages) -> str:
    """Why these stages change what the loop computes; nothing if they do not."""
    for first, second, _, distance in edges(body, MEMORY_CYCLES[0]):
        if stages.between(first, second) > distance:
            which = "the next iteration's " if distance else ""
            names = f"{stem(body.rows[first])} (instruction {first}, stage {stages.stage[first]})"
            other = f"{which}{stem(body.rows[second])} (instruction {second}, stage {stages.stage[second]})"
            return f"{names} would come after {other}, which must follow it"
    return ""


def by_age(stage: Sequence[int]) -> Stages:
    """These stages, the oldest iteration first: few copies, for a stage's registers are free before the next is in."""
    return Stages(tuple(sorted(range(len(stage)), key=lambda i: (-stage[i], i))), tuple(stage))


def by_youth(stage: Sequence[int]) -> Stages:
    """These stages, the youngest iteration first: loads go out soonest."""
    return Stages(tuple(sorted(range(len(stage)), key=lambda i: (stage[i], i))), tuple(stage))


def candidates(body: Body, stages: int | None, marks: Sequence[int] = ()) -> list[Stages]:
    """Stages worth trying, all of them right.

    stages: exactly so many; None: up to `MOST_STAGES`, and the loop as it is written.  marks: the stage of each
    instruction; refused by name where they would change what the loop computes.
    """
    ways = (by_age, by_youth)
    if marks:
        made = [way(marks) for way in ways]
        if all(problems := [refusal(body, one) for one in made]):
            raise Refusal(problems[0])
    else:
        counts = range(2, MOST_STAGES + 1) if stages is None else [stages]
        computed = [made for count in counts for made in (in_stages(body, count), by_loads(body, count)) if made]
        made = [in_turn(len(body.rows))] if stages in (None, 1) else []
        for one in computed:
            made += [one, *(way(one.stage) for way in ways)]
    right = [one for one in dict.fromkeys(made) if not refusal(body, one)]
    return [one for one in right if stages is None or one.count == stages]
