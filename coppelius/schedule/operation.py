"""What the passes need of one instruction, as plain tuples of integers, computed once for each distinct one.

Registers of all spaces share one numbering.  Classes of the latency grid become indices, so that the inner
loops of the passes only look numbers up.  Control fields are not looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from coppelius.isa import access, latency
from coppelius.isa.access import Touch
from coppelius.isa.control import CONTROL_COLUMNS
from coppelius.isa.form import FIXED, FP64, MEMORY, SHARED, VARIABLE, XU, Encoding
from coppelius.isa.latency import stem
from coppelius.isa.values import Immediate
from coppelius.program.cycles import LOADS, operand_cycles, pipe_of, result_cycles

# key of a register: its space's base and its number, which may be a virtual one
SPACES = {"R": 0 << 24, "UR": 1 << 24, "P": 2 << 24, "UP": 3 << 24, "B": 4 << 24}
# BAR writes it, and all that is not of fixed latency reads it
_BARRIER = 5 << 24

ROWS = [*sorted({row for row, _ in latency.RAW}), "barrier"]
COLUMNS = [*sorted({column for _, column in latency.RAW}), "unfixed"]
WAW_COLUMNS = sorted({column for _, column in latency.WAW})
WAR_ROWS = sorted({row for row, _ in latency.WAR})
WAR_COLUMNS = sorted({column for _, column in latency.WAR})

# cycles needed, by row and column
RAW_NEED = [[latency.raw_cell(row, column).cycles for column in COLUMNS] for row in ROWS]
# mined: from BAR to whatever is not of fixed latency
RAW_NEED[-1][-1] = 6
WAW_NEED = [
    [[latency.waw_cell(row, column, predicated=p).cycles for column in WAW_COLUMNS] for row in ROWS]
    for p in (False, True)
]
WAR_NEED = [[latency.war_cell(row, column).cycles for column in WAR_COLUMNS] for row in WAR_ROWS]
# an ordinary read asks so much of a writer, which only the next instruction can miss
PROMPT_NEED = [latency.war_cell("fixed", column).cycles for column in WAR_COLUMNS]
# the longest need of each row, and of all
ROW_NEED = [max(*raw, *waw) for raw, waw in zip(RAW_NEED, WAW_NEED[0], strict=True)]
WAR_ROW_NEED = [max(row) for row in WAR_NEED]
HORIZON = max(*ROW_NEED, *WAR_ROW_NEED)

# queues whose results come back in order; queues whose operands are read in order
NO_QUEUE, SHARED_RESULTS, XU_RESULTS, FP64_RESULTS = range(4)
MEMORY_OPERANDS, XU_OPERANDS, FP64_OPERANDS = 4, 5, 6
_IN_ORDER = frozenset(("SHFL", "LDS", "LDSM", "STS", "MOVM"))

# compiled code always drains after these (mined)
_DRAINS = ("ERRBAR",)


class Operation(NamedTuple):
    """One instruction.  Keys are registers.

    reads: (key, RAW column or -1).  writes: (key, RAW row or -1 where a scoreboard signals it, WAW column or -1,
    WAR column or -1).  timed: (key, WAR row) of reads that hold up more than the next instruction.
    prompt: keys of the other reads at a fixed time.  late: keys read late.  results: keys that a scoreboard signals.
    guard: its predicate's key, negative where inverted, 0 for none.  never: its guard is `!PT`.
    floor: its stall, whatever follows.  pipes, taken: which of these it keeps busy, and for how many cycles.
    arrival: cycles until its signalled results are there, `loads`: memory's come to them; left: until its late operands
    are read; 0 where it has none.
    """

    reads: tuple[tuple[int, int], ...]
    writes: tuple[tuple[int, int, int, int], ...]
    timed: tuple[tuple[int, int], ...]
    prompt: frozenset[int]
    late: tuple[int, ...]
    results: tuple[int, ...]
    queue: int
    late_queue: int
    kind: str
    guard: int
    never: bool
    floor: int
    pipes: tuple[str, ...]
    taken: int
    arrival: int
    loads: bool
    left: int

    def result(self, memory: int) -> int:
        """Cycles until its signalled results are there, where a load takes so many; 0 where it has none."""
        return self.arrival + memory if self.loads else self.arrival


_CACHE: dict[tuple[int, tuple[int, ...]], Operation] = {}
_CACHE_LIMIT = 100_000


def operation_of(encoding: Encoding, values: Sequence[int]) -> Operation:
    """The facts of one instruction."""
    key = (id(encoding), (*values[: CONTROL_COLUMNS.start], *values[CONTROL_COLUMNS.stop :]))
    found = _CACHE.get(key)
    if found is None:
        if len(_CACHE) > _CACHE_LIMIT:
            _CACHE.clear()
        found = _CACHE[key] = _operation(encoding, values)
    return found


def exclusive(operations: Sequence[Operation], first: int, second: int) -> bool:
    """Whether opposite guards keep a thread from executing both of two instructions of one straight run."""
    guard = operations[first].guard
    if not guard or operations[second].guard != -guard or second <= first:
        return False
    between = operations[first:second]
    return not any(op.kind in ("BRA", "EXIT") or any(w[0] == abs(guard) for w in op.writes) for op in between)


def floor(encoding: Encoding) -> int:
    """The least stall this instruction gets whatever follows; 0 drains."""
    if stem(encoding) in _DRAINS:
        return 0
    return latency.minimum_stall(encoding)


def _operation(encoding: Encoding, values: Sequence[int]) -> Operation:
    number, inverted = values[encoding.column["guard"]], values[encoding.column["guard.not"]]
    key = SPACES[encoding.guard.space] + number
    never = (number, inverted) == (7, 1)
    variable = latency.is_variable(encoding, values)
    reads = [] if never else _masked(encoding, values, access.reads(encoding, values))
    writes = [] if never else _masked(encoding, values, access.writes(encoding, values))
    late = [t for t in reads if latency.reads_late(encoding, values, t)]
    timed, prompt = [], []
    for t in reads:
        row = latency.reader_class(encoding, values, t)
        if t in late or row not in WAR_ROWS:
            continue
        if row == "fixed":
            prompt.append(_key(t))
        else:
            timed.append((_key(t), WAR_ROWS.index(row)))
    read = [(_key(t), _index(COLUMNS, latency.consumer_class(encoding, values, t))) for t in reads]
    written = [_written(encoding, values, t, variable) for t in writes]
    if encoding.latency != FIXED:
        read.append((_BARRIER, len(COLUMNS) - 1))
    if stem(encoding) == "BAR":
        written.append((_BARRIER, len(ROWS) - 1, -1, -1))
    signalled = any(variable and t.space != "B" for t in writes)
    return Operation(
        tuple(dict.fromkeys(read)),
        tuple(dict.fromkeys(written)),
        tuple(dict.fromkeys(timed)),
        frozenset(prompt),
        tuple(dict.fromkeys(_key(t) for t in late)),
        tuple(dict.fromkeys(_key(t) for t in writes if variable and t.space != "B")),
        _queue(encoding),
        _late_queue(encoding),
        stem(encoding),
        0 if number == 7 else -key if inverted else key,
        never,
        floor(encoding),
        *pipe_of(encoding, latency.full_name(encoding, values)),
        result_cycles(encoding, values, 0) if signalled else 0,
        signalled and stem(encoding) in LOADS,
        operand_cycles(encoding, values) if late else 0,
    )


def _key(touch: Touch) -> int:
    return SPACES[touch.space] + touch.number


def _index(names: list[str], name: str) -> int:
    return names.index(name) if name in names else -1


def _written(encoding: Encoding, values: Sequence[int], touch: Touch, variable: bool) -> tuple[int, int, int, int]:
    kind = latency.producer_class(encoding, values, touch)
    row = -1 if variable else _index(ROWS, kind)
    war = _index(WAR_COLUMNS, latency.writer_class(encoding, values, touch))
    return _key(touch), row, _index(WAW_COLUMNS, kind), war


def _masked(encoding: Encoding, values: Sequence[int], touches: list[Touch]) -> list[Touch]:
    """P2R and R2P touch only the predicates that their mask names."""
    if stem(encoding) not in ("P2R", "R2P"):
        return touches
    mask = next((values[encoding.column[s.name]] for s in encoding.operands if isinstance(s, Immediate)), 0x7F)
    return [t for t in touches if t.space != "P" or t.slot == "guard" or mask >> t.number & 1]


def _queue(encoding: Encoding) -> int:
    if stem(encoding) in _IN_ORDER:
        return SHARED_RESULTS
    if encoding.latency != VARIABLE:
        return NO_QUEUE
    return {XU: XU_RESULTS, FP64: FP64_RESULTS}.get(encoding.pipe, NO_QUEUE)


def _late_queue(encoding: Encoding) -> int:
    if encoding.pipe in (MEMORY, SHARED) or stem(encoding) in _IN_ORDER:
        return MEMORY_OPERANDS
    if encoding.latency != VARIABLE:
        return NO_QUEUE
    return {XU: XU_OPERANDS, FP64: FP64_OPERANDS}.get(encoding.pipe, NO_QUEUE)
