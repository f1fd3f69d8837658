"""Modelled cycles: how long one warp, or a sub-core's warps, take to issue a trace of a program.

A warp issues in order, its stall apart from the instruction before.  An instruction also waits for its
scoreboards, for its pipe, and for operands of fixed latency (hardware would not: a schedule that stalls
too little must not look faster).  A sub-core issues one instruction a cycle; its warps share the pipes,
and the one that issued last goes first, then the youngest.

The time is from the first issue to the last, in cycles of a sub-core whose neighbours are idle.

Left out: register bank conflicts, caches and bandwidth, instruction fetch, other sub-cores; each trace is
given, and barriers between warps (BAR) take no time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from coppelius.isa import access
from coppelius.isa.control import CONTROL_COLUMNS, NO_BARRIER, NO_CONTROL
from coppelius.isa.form import (
    ALU,
    CONTROL,
    FMA,
    FP64,
    HALF,
    MEMORY,
    SHARED,
    SYSTEM,
    TENSOR,
    UNIFORM,
    WIDE,
    XU,
    Encoding,
)
from coppelius.isa.latency import RAW, consumer_class, full_name, is_variable, producer_class, stem
from coppelius.program.program import Instruction, Program

# both are reported wherever cycles are: a load that hits the first cache (published), one that misses all (assumed)
MEMORY_CYCLES = (32, 400)

# stall 0 waits about so long (published)
DRAIN = 45
# the memory queue takes five instructions back to back, then one in four cycles (published): one served, four waiting
QUEUE_PLACES, QUEUE_CYCLES = 4, 4
MEMORY_QUEUE = ("memory",)

# cycles that a pipe is taken by one instruction
_PIPE_CYCLES = {
    ALU: 2,  # mined: compiled code leaves 2 between two of a kind; 16 lanes
    FMA: 2,  # published: two halves of 16 lanes; FFMA takes either, IMAD the first (mined: 1 and 2)
    WIDE: 2,  # assumed: like IMAD
    HALF: 2,  # mined
    XU: 8,  # mined: MUFU, POPC, F2I; 4 lanes
    FP64: 16,  # published: two lanes an SM, here of one busy sub-core
    UNIFORM: 2,  # assumed: like the vector pipe of the same operations
    SYSTEM: 2,  # assumed
    CONTROL: 1,  # assumed
}
# mined: the least stall that compiled code leaves between two MMAs of one shape
_TENSOR_CYCLES = 8
_TENSOR_HALF_CYCLES = 4
_TENSOR_SHORT = ("HMMA.1688.F32", "HMMA.1688.F16", "IMMA.16816", "IMMA.8816")
_EITHER_HALF = ("FFMA", "FADD", "FMUL")

# cycles from issue until the write barrier falls, less what the width adds
_RESULT_CYCLES = {
    "LDS": 24,  # published
    "LDSM": 24,  # assumed: like LDS
    "ATOMS": 48,  # assumed: an LDS and an STS
    "LDC": 26,  # published
    "SHFL": 24,  # assumed: like LDS, whose queue it uses
    "MOVM": 24,  # assumed
    "MUFU": 22,  # assumed
    "S2R": 24,  # assumed
    "R2UR": 12,  # assumed
}
_XU_CYCLES = 22  # assumed
_FP64_CYCLES = 48  # assumed
_OTHER_CYCLES = 24  # assumed
# published: what 64 and 128 bits add to a load
_LOAD_EXTRA = {1: 0, 2: 2, 3: 6, 4: 6}
_SHARED_EXTRA = {1: 0, 2: 0, 3: 2, 4: 2}
# loads from memory take `memory` cycles; a copy into shared memory a little longer (published: 39 for 32)
LOADS = frozenset(("LDG", "LD", "LDL", "ATOM", "ATOMG", "LDGSTS", "TEX", "TLD", "TLD4", "TXQ", "SULD", "SUATOM"))
_COPY_EXTRA = 7
# published: cycles from issue until the read barrier falls, for 32, 64 and 128 bits of data
_OPERAND_CYCLES = {
    "LDG": (11, 11, 11),
    "STG": (14, 16, 20),
    "LDS": (9, 9, 9),
    "STS": (12, 14, 18),
    "LDC": (29, 29, 29),
    "LDGSTS": (13, 13, 13),
}
_OTHER_OPERANDS = (11, 11, 11)  # assumed


@lru_cache(maxsize=8192)
def pipe_of(encoding: Encoding, name: str) -> tuple[tuple[str, ...], int]:
    """The pipes any of which an instruction of this full name may take, and for how many cycles."""
    kind = name.split(".")[0]
    if encoding.pipe in (MEMORY, SHARED):
        return MEMORY_QUEUE, QUEUE_CYCLES
    if encoding.pipe == TENSOR:
        return ("tensor",), _TENSOR_HALF_CYCLES if name.startswith(_TENSOR_SHORT) else _TENSOR_CYCLES
    if encoding.pipe in (FMA, WIDE):
        return (("fma", "fma lite") if kind in _EITHER_HALF else ("fma",)), _PIPE_CYCLES[encoding.pipe]
    return (encoding.pipe,), _PIPE_CYCLES[encoding.pipe]


def result_cycles(encoding: Encoding, values: Sequence[int], memory: int) -> int:
    """Cycles until the write barrier of a variable-latency instruction falls."""
    kind = stem(encoding)
    width = sum(t.space == "R" for t in access.writes(encoding, values))
    if kind in LOADS:
        return memory + (_COPY_EXTRA if kind == "LDGSTS" else _LOAD_EXTRA.get(width, 0))
    if kind in ("LDS", "LDSM"):
        return _RESULT_CYCLES[kind] + _SHARED_EXTRA.get(width, 0)
    if encoding.pipe == FP64:
        return _FP64_CYCLES
    return _RESULT_CYCLES.get(kind, _XU_CYCLES if encoding.pipe == XU else _OTHER_CYCLES)


def operand_cycles(encoding: Encoding, values: Sequence[int]) -> int:
    """Cycles until the read barrier falls."""
    name = full_name(encoding, values)
    place = 2 if ".128" in name else 1 if ".64" in name.removesuffix(".64]") else 0
    return _OPERAND_CYCLES.get(stem(encoding), _OTHER_OPERANDS)[place]


class _Kind(NamedTuple):
    """What the model needs of one instruction, its control word apart; registers with their classes.

    reads: a register and, by the class of who wrote it, the cycles between.  result: but for memory's cycles.
    """

    reads: tuple[tuple[tuple[str, int], Mapping[str, int]], ...]
    writes: tuple[tuple[tuple[str, int], str], ...]
    pipes: tuple[str, ...]
    taken: int
    loads: bool
    result: int
    operands: int
    kind: str
    counted: tuple[int, int]


class _Step(NamedTuple):
    """One instruction under its control word; waits: the scoreboards that it waits for."""

    kind: _Kind
    pipes: tuple[str, ...]
    stall: int
    waits: tuple[int, ...]
    write_barrier: int
    read_barrier: int


# by the reader's class, by the writer's: cycles between
_NEEDS: dict[str, dict[str, int]] = {}
for (_row, _column), _cell in RAW.items():
    _NEEDS.setdefault(_column, {})[_row] = _cell.cycles
_NO_NEEDS: Mapping[str, int] = {}
_WAITS = tuple(tuple(board for board in range(6) if mask >> board & 1) for mask in range(64))


def _steps(program: Program) -> list[_Step]:
    """All instructions of a program, found once for all its traces."""
    if "steps" not in program.memo:
        program.memo["steps"] = [_step(row) for row in program.rows]
    found: list[_Step] = program.memo["steps"]
    return found


def _step(row: Instruction) -> _Step:
    values = row.values
    stall, _, write_barrier, read_barrier, wait = values[CONTROL_COLUMNS]
    kind = _kind(row.encoding, (*values[: CONTROL_COLUMNS.start], *NO_CONTROL, *values[CONTROL_COLUMNS.stop :]))
    return _Step(kind, kind.pipes, stall or DRAIN, _WAITS[wait], write_barrier, read_barrier)


@lru_cache(maxsize=1 << 15)
def _kind(encoding: Encoding, values: tuple[int, ...]) -> _Kind:
    row = Instruction(encoding, values)
    kind = stem(encoding)
    variable = is_variable(encoding, values)
    reads = tuple(
        [((t.space, t.number), _NEEDS.get(consumer_class(encoding, values, t), _NO_NEEDS)) for t in row.reads]
    )
    writes = tuple(((t.space, t.number), "" if variable else producer_class(encoding, values, t)) for t in row.writes)
    pipes, taken = pipe_of(encoding, full_name(encoding, values))
    signals = variable or kind == "LDGSTS"
    return _Kind(
        reads,
        writes,
        pipes,
        taken,
        signals and kind in LOADS,
        result_cycles(encoding, values, 0) if signals else 0,
        operand_cycles(encoding, values),
        kind,
        (row.get("scoreboard"), row.get("count")) if kind == "DEPBAR" and "scoreboard" in encoding.column else (0, -1),
    )


@dataclass
class _Warp:
    """One warp on its way through the trace; `memory`: cycles of a load."""

    memory: int
    ready: int = 0
    place: int = 0
    boards: list[list[int]] = field(default_factory=lambda: [[] for _ in range(6)])
    made: dict[tuple[str, int], tuple[int, str]] = field(default_factory=dict)
    copies: int = 0

    def earliest(self, step: _Step) -> int:
        """When its next instruction may issue, pipes apart."""
        time = self.ready
        for board in step.waits:
            time = max(time, *self.boards[board]) if self.boards[board] else time
        board, count = step.kind.counted
        if count >= 0 and len(self.boards[board]) > count:
            time = max(time, sorted(self.boards[board])[-count - 1])
        made = self.made
        for key, needs in step.kind.reads:
            if key in made:
                issued, row = made[key]
                ready = issued + needs.get(row, 0)
                if ready > time:
                    time = ready
        return time

    def issue(self, step: _Step, time: int) -> None:
        """Go on to the next instruction."""
        kind = step.kind
        result = kind.result + self.memory if kind.loads else kind.result
        for key, row in kind.writes:
            if row:
                self.made[key] = (time, row)
            else:
                self.made.pop(key, None)
        if kind.kind == "LDGSTS":
            self.copies = max(self.copies, time + result)
        for board in step.waits:
            self.boards[board] = []
        if step.write_barrier != NO_BARRIER:
            done = max(self.copies, time + 1) if kind.kind == "LDGDEPBAR" else time + result
            self._raise(step.write_barrier, done, time)
        if step.read_barrier != NO_BARRIER:
            self._raise(step.read_barrier, time + kind.operands, time)
        self.ready = time + step.stall
        self.place += 1

    def _raise(self, board: int, done: int, now: int) -> None:
        self.boards[board] = [*(t for t in self.boards[board] if t > now), done]


class Pipes:
    """The pipes of a sub-core: when each is free."""

    def __init__(self) -> None:
        self.free: dict[str, int] = {}
        self.queue: deque[int] = deque(maxlen=QUEUE_PLACES)

    def earliest(self, pipes: tuple[str, ...]) -> int:
        """When one of these pipes can take an instruction."""
        if pipes == MEMORY_QUEUE:
            return self.queue[0] if len(self.queue) == QUEUE_PLACES else 0
        if len(pipes) == 1:
            return self.free.get(pipes[0], 0)
        return min([self.free.get(pipe, 0) for pipe in pipes])

    def issue(self, pipes: tuple[str, ...], taken: int, time: int) -> None:
        """An instruction has issued into one of them."""
        if pipes == MEMORY_QUEUE:
            last = self.queue[-1] if self.queue else 0
            self.queue.append(max(time, last) + taken)
            return
        free = self.free
        pipe = pipes[0] if len(pipes) == 1 else min(pipes, key=lambda name: free.get(name, 0))
        free[pipe] = time + taken


def modelled_cycles(program: Program, trace: Sequence[int] | None = None, *, memory: int = 32, warps: int = 1) -> int:
    """Cycles in which `warps` warps of one sub-core issue the instructions of the trace (None: all, front to back).

    memory: cycles of a load; `MEMORY_CYCLES` are the two that reports give.
    """
    places = range(len(program)) if trace is None else trace
    known = _steps(program)
    steps = [known[i] for i in places]
    if not steps:
        return 0
    return _alone(steps, memory) if warps == 1 else _run(steps, memory, warps)


def _alone(steps: Sequence[_Step], memory: int) -> int:
    """`_run` of one warp, which needs no choice."""
    warp, pipes, now = _Warp(memory), Pipes(), -1
    for step in steps:
        now = max(warp.earliest(step), pipes.earliest(step.pipes), now + 1)
        pipes.issue(step.pipes, step.kind.taken, now)
        warp.issue(step, now)
    return now + 1


def _run(steps: Sequence[_Step], memory: int, count: int) -> int:
    warps = [_Warp(memory) for _ in range(count)]
    pipes = Pipes()
    own = [w.earliest(steps[0]) for w in warps]
    running = list(range(count))
    now, last = -1, 0
    while running:
        # greedy, then youngest: of those that can go first, the one that went last, else the highest number
        best, chosen = -1, -1
        for w in running:
            step = steps[warps[w].place]
            time = max(own[w], pipes.earliest(step.pipes), now + 1)
            if chosen < 0 or time < best or (time == best and (w == last or chosen != last)):
                best, chosen = time, w
        now, last = best, chosen
        warp = warps[chosen]
        step = steps[warp.place]
        pipes.issue(step.pipes, step.kind.taken, now)
        warp.issue(step, now)
        if warp.place == len(steps):
            running.remove(chosen)
        else:
            own[chosen] = warp.earliest(steps[warp.place])
    return now + 1


# compute capability 8.6 (published): a sub-core's registers, an SM's warps, blocks and shared bytes
_REGISTERS, _WARPS, _BLOCKS, _SHARED = 16384, 48, 16, 102400
_SUB_CORES, _REGISTER_UNIT, _SHARED_RESERVED = 4, 8, 1024


def resident_warps(registers: int, *, block_x: int = 32, shared_bytes: int = 0) -> int:
    """Warps that a sub-core holds of blocks of `block_x` threads with so many declared registers a thread."""
    in_block = -(-block_x // 32)
    unit = -(-max(registers, 1) // _REGISTER_UNIT) * _REGISTER_UNIT
    by_registers = _REGISTERS // (unit * 32) * _SUB_CORES // in_block
    by_shared = _SHARED // (shared_bytes + _SHARED_RESERVED)
    blocks = min(by_registers, by_shared, _WARPS // in_block, _BLOCKS)
    return -(-blocks * in_block // _SUB_CORES)
