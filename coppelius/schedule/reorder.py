"""Order within basic blocks: what others wait for longest goes first, as far as dependences allow.

An instruction keeps its place after every earlier one of its block that it depends on: through a register or
predicate; through memory, where either writes and the spaces may be the same; through a fence (barriers of a block
or warp, counted waits, clocks, control flow, whatever the kernel pinned).  A fence is passed by no access to memory,
by nothing whose result depends on the other threads of the warp (uniform registers, too), and by no other fence.
Blocks keep their places and a block's last branch stays last, so that targets stay right.

Classical list scheduling, once for each of the cycle model's memory figures; a block takes the order that the
estimate likes best, its own included.  With placed registers their number cannot change; before they are placed, a
`Budget` bounds how many are live at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from coppelius.isa.control import CONTROL_COLUMNS, NO_CONTROL
from coppelius.isa.form import CONTROL, MEMORY, SHARED, SYSTEM, TENSOR, Encoding
from coppelius.isa.latency import full_name
from coppelius.isa.values import Named
from coppelius.program.cycles import MEMORY_CYCLES, Pipes
from coppelius.program.flow import Block
from coppelius.program.program import Instruction
from coppelius.schedule.likeness import Memory, pins_of, shape_of
from coppelius.schedule.operation import PROMPT_NEED, RAW_NEED, WAR_NEED, WAW_NEED, Operation
from coppelius.schedule.pressure import Budget, Pressure

# spaces of memory that an access may touch; WARP is what depends on which threads run together
GLOBAL, SHARED_SPACE, LOCAL, WARP = 1, 2, 4, 8
_GENERIC = GLOBAL | SHARED_SPACE | LOCAL
_READS = {
    "LDG": GLOBAL, "LD": _GENERIC, "LDL": LOCAL, "LDS": SHARED_SPACE, "LDSM": SHARED_SPACE, "LDGSTS": GLOBAL,
    "TEX": GLOBAL, "TLD": GLOBAL, "TLD4": GLOBAL, "SULD": GLOBAL, "ATOM": _GENERIC, "ATOMG": GLOBAL,
    "ATOMS": SHARED_SPACE, "SUATOM": GLOBAL, "LDGDEPBAR": 0,
}  # fmt: skip
_WRITES = {
    "STG": GLOBAL, "ST": _GENERIC, "STL": LOCAL, "STS": SHARED_SPACE, "LDGSTS": SHARED_SPACE, "RED": GLOBAL,
    "ATOM": _GENERIC, "ATOMG": GLOBAL, "ATOMS": SHARED_SPACE, "SUST": GLOBAL, "SURED": GLOBAL, "SUATOM": GLOBAL,
}  # fmt: skip
_FENCES = frozenset(("LDGDEPBAR", "CCTL", "CCTLL", "CCTLT", "QSPC"))
# of the system's pipe, these alone are no fences
_PLAIN = frozenset(("S2R", "S2UR", "R2UR", "MATCH", "REDUX"))
# its value is its own place
_POSITIONS = frozenset(("LEPC",))
# what one thread does depends on the others of its warp that run with it; so do uniform registers
_CROSS_LANE = frozenset(("SHFL", "VOTE", "VOTEU", "MATCH", "REDUX", "MOVM", "ELECT", "LDSM"))
_ORDERED = (".STRONG", ".MMIO", "SR_CLOCK", "SR_GLOBALTIMER")


@dataclass(frozen=True)
class Access:
    """Spaces of memory read and written; a fence orders everything that touches memory."""

    reads: int = 0
    writes: int = 0
    fence: bool = False

    def before(self, other: Access) -> bool:
        """Whether a later access must stay after this one."""
        if self.fence or other.fence:
            return (self.fence or bool(self.reads | self.writes)) and (other.fence or bool(other.reads | other.writes))
        return bool(self.writes & (other.reads | other.writes) or self.reads & other.writes)


def access_of(row: Instruction, pin: Mapping[str, int]) -> Access:
    """What one instruction does to memory and to order."""
    values = row.values
    own = (*values[: CONTROL_COLUMNS.start], *NO_CONTROL, *values[CONTROL_COLUMNS.stop :])
    return _access(row.encoding, own, bool(pin))


@lru_cache(maxsize=1 << 14)
def _access(encoding: Encoding, values: tuple[int, ...], pinned: bool) -> Access:
    row = Instruction(encoding, values)
    name = full_name(encoding, values)
    kind = name.split(".")[0]
    named = [s.render({s.name: [row[s.name]]})[0] for s in encoding.operands if isinstance(s, Named)]
    ordered = any(mark in text for mark in _ORDERED for text in (name, *named))
    fence = encoding.pipe == CONTROL or (encoding.pipe == SYSTEM and kind not in _PLAIN) or kind in _FENCES
    reads, writes = _READS.get(kind, 0), _WRITES.get(kind, 0)
    known = kind in _READS or kind in _WRITES or kind in _CROSS_LANE or kind == "LDC"
    if kind in _CROSS_LANE or encoding.pipe == TENSOR or any(t.space in ("UR", "UP") for t in row.writes):
        reads |= WARP
    unknown = encoding.pipe in (MEMORY, SHARED) and not known
    return Access(reads, writes, fence or ordered or unknown or pinned)


@dataclass
class Graph:
    """A block's dependences: `after[j]` maps each earlier instruction that j must follow to the cycles between."""

    first: int
    after: list[dict[int, int]]
    before: list[list[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.before = [[] for _ in self.after]
        for j, earlier in enumerate(self.after):
            for i in earlier:
                self.before[i].append(j)


_ORDERS: Memory[list[int]] = Memory()
# a rank that any instruction beats: registers over the budget, time, height turned round, place
_WORST = (1 << 60, 0, 0, 0)
# whom an instruction must follow, cycles between, and whether a result of variable latency must have come, too
_Need = tuple[int, int, bool]


class Blocks:
    """The blocks of a program and what ordering them needs."""

    def __init__(
        self,
        rows: Sequence[Instruction],
        operations: Sequence[Operation],
        pins: Sequence[Mapping[str, int]],
        budget: Budget | None,
    ) -> None:
        self.rows, self.operations, self.budget = rows, operations, budget
        self.results = {memory: self.results_at(memory) for memory in MEMORY_CYCLES}
        self.access = [access_of(row, pin) for row, pin in zip(rows, pins, strict=True)]
        self._known: dict[tuple[int, int], list[list[_Need]]] = {}
        self.operands = [op.left for op in operations]

    def results_at(self, memory: int) -> list[int]:
        """Cycles until each variable-latency result, 0 for the others."""
        return [op.result(memory) for op in self.operations]

    def order(self, block: Block) -> list[int]:
        """The block's instructions in their best order."""
        original = list(range(block.start, block.end))
        if len(original) < 3 or any(self.operations[i].kind in _POSITIONS for i in original):
            return original
        orders = [original]
        graphs = self._graphs(block)
        for graph in graphs:
            if (listed := self._listed(block, graph)) not in orders:
                orders.append(listed)
        if len(orders) == 1:
            return original
        base = [self._length(block, graph, original) for graph in graphs]

        def cost(order: list[int]) -> float:
            if order is original:
                return sum(own / max(own, 1) for own in base)
            lengths = (self._length(block, graph, order) for graph in graphs)
            return sum(length / max(own, 1) for length, own in zip(lengths, base, strict=True))

        return min((order for order in orders if self._fits(block, order, original)), key=cost)

    def _graphs(self, block: Block) -> list[Graph]:
        """The block's dependences at each memory figure; one, where nothing in it waits for memory."""
        near, far = (self.results[memory][block.start : block.end] for memory in MEMORY_CYCLES)
        return [self.graph(block, self.results[memory]) for memory in MEMORY_CYCLES[: 1 if near == far else 2]]

    def _fits(self, block: Block, order: list[int], original: list[int]) -> bool:
        """Whether no more registers are live than the budget allows, or than in the block's own order."""
        if self.budget is None or order is original:
            return True
        return self._peak(block, order) <= max(self.budget.registers, self._peak(block, original))

    def _peak(self, block: Block, order: list[int]) -> int:
        assert self.budget is not None
        pressure = Pressure(self.operations, block, self.budget)
        return max(pressure.issue(i) for i in order)

    def graph(self, block: Block, results: Sequence[int]) -> Graph:
        """Dependences with their cycles; the last instruction of a block that ends in a branch follows all."""
        first = block.start
        if (first, block.end) not in self._known:
            self._known[first, block.end] = self._needs(block)
        after: list[dict[int, int]] = []
        for needs in self._known[first, block.end]:
            need: dict[int, int] = {}
            for i, cycles, awaited in needs:
                if awaited and results[i] > cycles:
                    cycles = results[i]
                i -= first
                if i not in need or cycles > need[i]:
                    need[i] = cycles
            after.append(need)
        return Graph(first, after)

    def _needs(self, block: Block) -> list[list[_Need]]:
        """Of each instruction, whom it must follow: cycles, and whether a result of variable latency is awaited."""
        found = []
        writers: dict[int, list[int]] = {}
        readers: dict[int, list[int]] = {}
        accesses: list[tuple[int, Access]] = []
        for j in range(block.start, block.end):
            needs = list(self._register_needs(j, writers, readers))
            mine = self.access[j]
            if mine.reads or mine.writes or mine.fence:
                needs += [(i, 1, False) for i, access in accesses if access.before(mine)]
                accesses.append((j, mine))
            if j == block.end - 1 and self.rows[j].encoding.pipe == CONTROL:
                needs += [(i, 0, False) for i in range(block.start, j)]
            found.append(needs)
            self._enter(j, writers, readers)
        return found

    def _register_needs(self, j: int, writers: dict[int, list[int]], readers: dict[int, list[int]]) -> Iterator[_Need]:
        op = self.operations[j]
        for key, column in op.reads:
            for i in writers.get(key, ()):
                yield i, self._fixed(i, key, RAW_NEED, column), True
        for key, _, column, war in op.writes:
            for i in writers.get(key, ()):
                yield i, self._fixed(i, key, WAW_NEED[self.operations[i].guard != 0], column), True
            for i in readers.get(key, ()):
                yield i, self._overwrite(i, key, war), False

    def _fixed(self, i: int, key: int, need: Sequence[Sequence[int]], column: int) -> int:
        """Cycles that a result of fixed latency needs, at least one."""
        found = 1
        if column >= 0:
            for other, row, *_ in self.operations[i].writes:
                if other == key and row >= 0 and need[row][column] > found:
                    found = need[row][column]
        return found

    def _overwrite(self, i: int, key: int, war: int) -> int:
        """Cycles between a read and the next write of a register."""
        op = self.operations[i]
        if key in op.late:
            return self.operands[i]
        if war < 0:
            return 1
        rows = [row for other, row in op.timed if other == key]
        return max((WAR_NEED[row][war] for row in rows), default=PROMPT_NEED[war] if key in op.prompt else 1)

    def _enter(self, j: int, writers: dict[int, list[int]], readers: dict[int, list[int]]) -> None:
        op = self.operations[j]
        for key, *_ in op.writes:
            # a guarded write keeps what was there before
            writers[key] = [*writers.get(key, ()), j] if op.guard else [j]
            if not op.guard:
                readers[key] = []
        for key, _ in op.reads:
            readers.setdefault(key, []).append(j)

    def _heights(self, graph: Graph) -> list[int]:
        """Cycles from each instruction to the last that waits for it."""
        heights = [0] * len(graph.after)
        for i in range(len(heights) - 1, -1, -1):
            heights[i] = max([heights[j] + graph.after[j][i] for j in graph.before[i]], default=1)
        return heights

    def _listed(self, block: Block, graph: Graph) -> list[int]:
        """The order of a list scheduler: of those that may issue soonest, the one that others wait for longest."""
        heights = self._heights(graph)
        missing = [len(earlier) for earlier in graph.after]
        ready_at = [0] * len(missing)
        ready = [i for i, count in enumerate(missing) if not count]
        pipes = Pipes()
        pressure = None if self.budget is None else Pressure(self.operations, block, self.budget)
        time = 0
        order = []
        wanted = [op.pipes for op in self.operations[block.start : block.end]]

        def choose() -> tuple[int, int]:
            """(when, which): fewest registers over the budget, then soonest, then highest."""
            free: dict[tuple[str, ...], int] = {}
            tight = pressure is not None and pressure.tight()
            best = _WORST
            for i in ready:
                over = pressure.over(block.start + i) if tight and pressure is not None else 0
                if over > best[0]:
                    continue
                pipe = wanted[i]
                when = free.get(pipe, -1)
                if when < 0:
                    when = free[pipe] = max(time, pipes.earliest(pipe))
                if ready_at[i] > when:
                    when = ready_at[i]
                rank = (over, when, -heights[i], i)
                if rank < best:
                    best = rank
            return best[1], best[3]

        while ready:
            time, choice = choose()
            op = self.operations[block.start + choice]
            pipes.issue(op.pipes, op.taken, time)
            ready.remove(choice)
            if pressure is not None:
                pressure.issue(block.start + choice)
            order.append(block.start + choice)
            for j in graph.before[choice]:
                at = time + graph.after[j][choice]
                if at > ready_at[j]:
                    ready_at[j] = at
                missing[j] -= 1
                if not missing[j]:
                    ready.append(j)
            time += max(op.floor, 1)
        return order

    def _length(self, block: Block, graph: Graph, order: Sequence[int]) -> int:
        """Cycles in which the block issues in that order, results not waited for in it counted to its end."""
        issued = [0] * len(order)
        pipes = Pipes()
        time = 0
        for ordinal in order:
            i = ordinal - block.start
            op = self.operations[ordinal]
            time = max(time, pipes.earliest(op.pipes))
            for earlier, cycles in graph.after[i].items():
                if issued[earlier] + cycles > time:
                    time = issued[earlier] + cycles
            issued[i] = time
            pipes.issue(op.pipes, op.taken, time)
            time += max(op.floor, 1)
        return time


def ordered(
    rows: Sequence[Instruction],
    operations: Sequence[Operation],
    blocks: Sequence[Block],
    pins: Sequence[Mapping[str, int]],
    budget: Budget | None = None,
) -> list[int]:
    """The old ordinals in their new order, blocks in place; registers may be placed ones or virtual."""
    bounds = None if budget is None else budget.bounds
    question = (shape_of(rows), tuple((b.start, b.end) for b in blocks), pins_of(pins), bounds)
    known = _ORDERS.get(question)
    if known is None:
        all_blocks = Blocks(rows, operations, pins, budget)
        known = _ORDERS.keep(question, [i for block in blocks for i in all_blocks.order(block)])
    return list(known)
