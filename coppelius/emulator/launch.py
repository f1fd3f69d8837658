"""Launches encoded words: decode, constant banks as the driver fills them, batches of blocks, a report.

    out = np.zeros(n, np.float32)
    launch(material, grid=(n // 1024, 1, 1), block=(256, 1, 1), parameters=pack_naturally([out, ...], memory),
           memory=memory)

Buffers are C-contiguous numpy arrays of any dtype, placed in `memory`; the kernel reads and writes them in
place.  Blocks run in batches of about `BATCH_THREADS` threads, one batch after another.  A finding
raises `Fault`, unless `collect` asks for all of them in the report.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt

from coppelius.emulator.engine import DEFAULT_LIMIT, Ended, Engine
from coppelius.emulator.faults import Finding, Triple
from coppelius.emulator.initcheck import InitCheck
from coppelius.emulator.machine import LOCAL_WINDOW, SHARED_WINDOW, STACK_TOP, Machine
from coppelius.emulator.memory import Memory
from coppelius.emulator.racecheck import RaceCheck
from coppelius.emulator.strict import StrictEngine
from coppelius.emulator.synccheck import SyncCheck
from coppelius.emulator.traffic import Traffic
from coppelius.isa.refusal import Refusal
from coppelius.isa.table import Table, sm86
from coppelius.isa.targets.layout import DOUBLE_WORDS, Layout, layout_of
from coppelius.program.program import Program

# measured: rows of 128 KiB stay in the second cache level and still drown numpy's cost of a call
BATCH_THREADS = 32_768
BATCH_BYTES = 1 << 30
MODES = frozenset(("fast", "strict"))
MMA = frozenset(("exact", "fast"))
# beside memcheck, which is always on
CHECKS = frozenset(("initcheck", "racecheck", "synccheck"))
MOST_THREADS = 1024  # published: of a block

Progress = Callable[[int, int, int], None]


class Defaults:
    """What a launch that does not say watches for: nothing; the tests' conftest says everything, for all tests."""

    checks: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Report:
    """What a launch did: `steps` instructions executed by groups, `issued` by warps, and what was found."""

    kernel: str
    mode: str
    mma: str
    blocks: int
    threads: int
    batches: int
    steps: int
    issued: int
    seconds: float
    findings: list[Finding] = field(default_factory=list)


def launch(
    material: bytes,
    *,
    grid: Triple,
    block: Triple,
    parameters: bytes = b"",
    memory: Memory,
    shared_bytes: int = 0,
    local_bytes: int = 4096,
    constants: Mapping[int, bytes] | None = None,
    table: Table | None = None,
    blocks: Sequence[int] | None = None,
    limit: int = DEFAULT_LIMIT,
    mode: str = "fast",
    mma: str = "exact",
    kernel: str = "kernel",
    entry: int = 0,
    sections: Mapping[int, str] | None = None,
    lines: Sequence[str] | None = None,
    collect: bool = False,
    checks: Collection[str] | None = None,
    batch_threads: int = BATCH_THREADS,
    seconds: float | None = None,
    progress: Progress | None = None,
    traffic: Traffic | None = None,
) -> Report:
    """Runs a kernel; `blocks` names linear indices to run alone at the real grid, `lines` each instruction's source.

    mode: "fast", or "strict" to honour the schedule.  mma: "exact" as Ampere accumulates, or "fast".  checks:
    sanitizers beside memcheck (None: `Defaults.checks`).  limit: steps a batch may take before it counts as
    endless, seconds: time the launch may take.  entry: the byte of `material` where the kernel begins, `sections`
    the names of the device functions that lie before it.  progress: told now and then of
    (blocks done, blocks, steps of the batch that runs).  traffic: counts the accesses to memory.
    """
    _refuse_unknown("mode", mode, MODES)
    _refuse_unknown("mma", mma, MMA)
    checks = Defaults.checks if checks is None else checks
    for check in checks:
        _refuse_unknown("check", check, CHECKS)
    started = time.perf_counter()
    table = table or sm86()
    layout = layout_of(table.target)
    program, registers = _decoded(bytes(material), table)
    threads = _checked(grid, block)
    chosen = _chosen(grid, blocks)
    machine = Machine(
        kernel=kernel,
        grid=grid,
        block=block,
        capacity=_capacity(threads, registers, shared_bytes, batch_threads, len(chosen)),
        registers=registers,
        memory=memory,
        constants=constant_banks(grid, block, parameters, constants or {}, layout),
        shared_bytes=shared_bytes,
        local_bytes=local_bytes,
        collect=collect,
        lines=lines,
        mma=mma,
        entry=entry // 16,
        sections=sections,
        shared_start=layout.reserved,
        uniform_registers=layout.urz,
    )
    machine.traffic = traffic
    engine = (StrictEngine if mode == "strict" else Engine)(machine, program, limit)
    engine.seconds, engine.deadline = seconds, None if seconds is None else started + seconds
    batches, steps = _run(engine, machine, chosen, checks, progress)
    seconds = time.perf_counter() - started
    issued, found = engine.issued, machine.findings
    return Report(kernel, mode, mma, len(chosen), threads, batches, steps, issued, seconds, found)


def _run(
    engine: Engine,
    machine: Machine,
    chosen: npt.NDArray[np.int64],
    checks: Collection[str],
    progress: Progress | None,
) -> tuple[int, int]:
    """Batch after batch; (batches, steps)."""
    starts = range(0, len(chosen), machine.capacity)
    steps = 0
    for first in starts:
        engine.steps = 0
        start = machine.begin(chosen[first : first + machine.capacity])
        engine.watch = InitCheck(machine) if "initcheck" in checks else None
        engine.sync = SyncCheck(machine) if "synccheck" in checks else None
        machine.races = RaceCheck(machine, engine.program) if "racecheck" in checks and machine.shared_bytes else None
        if progress is not None:
            engine.beat = partial(progress, first, len(chosen))
        try:
            engine.run(start)
        except Ended:
            return len(starts), steps + engine.steps
        steps += engine.steps
        if progress is not None:
            progress(min(first + machine.capacity, len(chosen)), len(chosen), 0)
    return len(starts), steps


def _capacity(threads: int, registers: int, shared_bytes: int, batch_threads: int, blocks: int) -> int:
    """Blocks of a batch: about as many threads as asked for, as far as memory goes."""
    per_block = -(-threads // 32) * 32
    bytes_per_block = shared_bytes + per_block * 4 * (registers + 24)
    return max(1, min(blocks, batch_threads // per_block, BATCH_BYTES // bytes_per_block))


def _chosen(grid: Triple, blocks: Sequence[int] | None) -> npt.NDArray[np.int64]:
    """Linear indices of the blocks to run."""
    total = grid[0] * grid[1] * grid[2]
    if blocks is None:
        return np.arange(total, dtype=np.int64)
    chosen = np.asarray(blocks, dtype=np.int64)
    if not len(chosen) or chosen.min() < 0 or chosen.max() >= total:
        raise Refusal(f"blocks {list(blocks)[:8]}: name at least one, each below the grid's {total}")
    return chosen


def _refuse_unknown(what: str, name: str, known: frozenset[str]) -> None:
    if name not in known:
        raise Refusal(f"no {what} {name!r}; known: {', '.join(sorted(known))}")


@lru_cache(maxsize=64)
def _decoded(material: bytes, table: Table) -> tuple[Program, int]:
    program = Program.decode(material, table)
    return program, register_count(program)


def _checked(grid: Triple, block: Triple) -> int:
    """Threads of a block; refuses a grid or block that no card launches."""
    if len(grid) != 3 or len(block) != 3 or min(*grid, *block) < 1:
        raise Refusal(f"grid {grid} of blocks {block}: three positive numbers each; an empty launch is no launch")
    threads = block[0] * block[1] * block[2]
    if threads > MOST_THREADS:
        raise Refusal(f"block {block} has {threads} threads; a block has at most {MOST_THREADS}")
    return threads


def register_count(program: Program) -> int:
    """Highest general register touched + 1, at least 2."""
    most = 1
    for i in program:
        most = max([most, *(t.number for t in (*i.reads, *i.writes) if t.space == "R" and t.number < 255)])
    return most + 1


def constant_banks(
    grid: Triple, block: Triple, parameters: bytes, more: Mapping[int, bytes], layout: Layout
) -> dict[int, npt.NDArray[np.uint8]]:
    """Constant banks: bank 0 as the driver of that target lays it out, others as given."""
    bank = bytearray(layout.parameters + len(parameters))
    known = {"shared window": SHARED_WINDOW, "local window": LOCAL_WINDOW, "stack": STACK_TOP, "descriptor": 0}
    known |= {f"ntid.{axis}": size for axis, size in zip("xyz", block, strict=True)}
    known |= {f"nctaid.{axis}": size for axis, size in zip("xyz", grid, strict=True)}
    for meaning, place in layout.words.items():
        struct.pack_into("<Q" if meaning in DOUBLE_WORDS else "<I", bank, place, known[meaning])
    bank[layout.parameters :] = parameters
    # loads of 64 bits may start at the last word
    bank.extend(bytes(-len(bank) % 8))
    banks = {number: np.frombuffer(data, dtype=np.uint8) for number, data in more.items()}
    return {0: np.frombuffer(bytes(bank), dtype=np.uint8), **banks}
