"""What an image asks of the machine, from its words, its declaration, and the accesses of a sampled block.

Bytes are a thread's along one path: guarded instructions count, a forward branch that may fall through
does, and each loop runs once.  Warps are what an SM of compute capability 8.6 holds of such blocks, and
what would have to be smaller for more.  Cycles are modelled for one warp on that path, with loads that
take 32 and 400 cycles.

A register bank has one read port, and registers alternate between two banks: an instruction that reads
three registers of one bank waits for the third.  What a reuse flag kept is not read again.  Tensor instructions,
which read about ten registers over several cycles, are not judged.

The memory roofline is the time in which the card's memory moves those bytes for all lanes.  What share of it the
schedule allows: the bytes that an SM's warps ask for in the modelled cycles of the path, loads taking 400 cycles,
against the SM's part of the bandwidth.  From 1 on memory alone bounds the kernel; what caches save is not counted,
nor SMs that a small grid leaves idle.

Of each access to memory that the sampled block came to: sectors of global memory touched and needed; of shared memory
its conflict degree, the cycles it takes for each that it needs (1: no conflict), the worst of any warp.

Left out: accesses that the sampled block has no use for, tails of a count for one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coppelius.check.resources import launch_registers, register_demand
from coppelius.emulator.traffic import Access
from coppelius.isa.form import FIXED, TENSOR
from coppelius.isa.latency import full_name, stem
from coppelius.program.cycles import MEMORY_CYCLES, modelled_cycles, resident_warps
from coppelius.program.program import Instruction, Program
from coppelius.program.trace import walk

# published: what an SM of compute capability 8.6 has and holds
SUB_CORES, MOST_WARPS, MOST_BLOCKS = 4, 48, 16
# published: GeForce RTX 3090 (GA102 whitepaper): memory 936 GB/s, boost clock 1.695 GHz, 82 SMs
MEMORY_BANDWIDTH, BOOST_CLOCK, SMS = 936e9, 1.695e9, 82
SM_BYTES_A_CYCLE = MEMORY_BANDWIDTH / BOOST_CLOCK / SMS  # 6.73
LANES, WORD_BYTES = 32, 16
_BYTES = {"128": 16, "64": 8, "U16": 2, "S16": 2, "U8": 1, "S8": 1}
# mnemonic -> what it moves
_TRAFFIC = {
    "LDG": ("global loaded",), "LD": ("global loaded",), "STG": ("global stored",), "ST": ("global stored",),
    "RED": ("global atomic",), "ATOM": ("global atomic",), "ATOMG": ("global atomic",),
    "LDGSTS": ("global loaded", "shared stored"),
    "LDS": ("shared loaded",), "LDSM": ("shared loaded",), "STS": ("shared stored",), "ATOMS": ("shared atomic",),
    "LDL": ("local loaded",), "STL": ("local stored",),
}  # fmt: skip


@dataclass(frozen=True)
class SharedAccess:
    """One instruction's accesses to shared memory; degree 1: no bank is asked twice."""

    offset: int
    instruction: str
    degree: float


@dataclass(frozen=True)
class Statistics:
    """`limit`: what keeps further warps away: registers, shared bytes, blocks or threads.

    occupancy: warps of those that an SM can hold.  roofline: the share of the memory's bandwidth that
    the schedule can ask for (above 1: memory alone bounds it); None where nothing is moved.  sectors: touched,
    and the fewest that would hold what was needed.  shared_accesses: offset, text and conflict degree of each.
    """

    instructions: int
    pipes: dict[str, int]
    traffic: dict[str, int]
    registers: int
    demand: int
    warps: int
    limit: str
    occupancy: float
    bank_conflicts: int
    cycles: dict[int, int]
    roofline: float | None
    sectors: tuple[int, int]
    shared_accesses: tuple[SharedAccess, ...]

    @property
    def global_efficiency(self) -> float | None:
        """Sectors touched over sectors needed; None where global memory is left alone."""
        touched, needed = self.sectors
        return touched / needed if needed else None

    @property
    def conflict_degree(self) -> float | None:
        """The worst of any access to shared memory; None where it is left alone."""
        return max((access.degree for access in self.shared_accesses), default=None)


def statistics_of(program: Program, declaration: Mapping[str, Any], accesses: Sequence[Access] = ()) -> Statistics:
    """Everything at once; `declaration` as the catalogue gives it (registers None: the demand)."""
    rows = list(program)
    path = walk(program, rounds=1)
    demand = launch_registers(register_demand(program.decoded))
    registers = demand if declaration["registers"] is None else declaration["registers"]
    warps, limit = _warps(registers, declaration["block_x"], declaration["shared_bytes"])
    moved = traffic([rows[i] for i in path])
    return Statistics(
        instructions=len(rows),
        pipes=dict(sorted(Counter(row.encoding.pipe for row in rows).items())),
        traffic=moved,
        registers=registers,
        demand=demand,
        warps=warps,
        limit=limit,
        occupancy=warps / MOST_WARPS,
        bank_conflicts=bank_conflicts(rows),
        cycles={memory: modelled_cycles(program, path, memory=memory) for memory in MEMORY_CYCLES},
        roofline=roofline(program, path, warps, moved),
        sectors=_sectors(accesses),
        shared_accesses=tuple(
            SharedAccess(WORD_BYTES * a.ordinal, full_name(rows[a.ordinal].encoding, rows[a.ordinal].values), a.worst)
            for a in accesses
            if a.space == "shared"
        ),
    )


def _sectors(accesses: Sequence[Access]) -> tuple[int, int]:
    """(touched, needed) of global memory."""
    found = [a for a in accesses if a.space == "global"]
    return sum(a.taken for a in found), sum(a.fewest for a in found)


def roofline(program: Program, path: Sequence[int], warps: int, moved: Mapping[str, int]) -> float | None:
    """The share of the memory's bandwidth that `warps` warps of an SM can ask for along the path."""
    bytes_a_warp = LANES * sum(count for kind, count in moved.items() if kind.startswith(("global", "local")))
    if not bytes_a_warp or not warps:
        return None
    in_sub_core = -(-warps // SUB_CORES)
    cycles = modelled_cycles(program, path, memory=max(MEMORY_CYCLES), warps=in_sub_core)
    return warps * bytes_a_warp / cycles / SM_BYTES_A_CYCLE


def _warps(registers: int, block_x: int, shared_bytes: int) -> tuple[int, str]:
    """Warps of an SM and what limits them."""
    in_block = -(-block_x // 32)

    def held(registers: int, shared_bytes: int) -> int:
        return resident_warps(registers, block_x=block_x, shared_bytes=shared_bytes) * SUB_CORES // in_block * in_block

    warps = held(registers, shared_bytes)
    if held(1, shared_bytes) > warps:
        return warps, "registers"
    if held(registers, 0) > warps:
        return warps, "shared bytes"
    return warps, "blocks" if warps // in_block == MOST_BLOCKS and warps < MOST_WARPS else "threads"


def traffic(rows: Sequence[Instruction]) -> dict[str, int]:
    """Bytes a thread moves, by space and direction."""
    moved: Counter[str] = Counter()
    for row in rows:
        for kind in _TRAFFIC.get(stem(row.encoding), ()):
            moved[kind] += _width(full_name(row.encoding, row.values).split("."))
    return dict(sorted(moved.items()))


def _width(name: Sequence[str]) -> int:
    """Bytes that one lane moves; a matrix load gives a lane four bytes of each matrix."""
    if name[0] == "LDSM":
        return 4 * int(name[-1]) if name[-1].isdecimal() else 4
    return next((_BYTES[part] for part in name[1:] if part in _BYTES), 4)


def bank_conflicts(rows: Sequence[Instruction]) -> int:
    """How many instructions wait for a register bank."""
    kept: dict[tuple[int, int], int] = {}
    conflicts = 0
    for row in rows:
        if row.encoding.latency != FIXED:
            continue
        read: dict[int, set[int]] = {0: set(), 1: set()}
        after: dict[tuple[int, int], int | None] = {}
        for place, flag, numbers in _operands(row):
            for number in numbers:
                key = number % 2, place
                if kept.get(key) != number:
                    read[number % 2].add(number)
                after[key] = number if flag else None
        for key, value in after.items():
            if value is None:
                kept.pop(key, None)
            else:
                kept[key] = value
        for touch in row.writes:
            kept = {key: value for key, value in kept.items() if touch.space != "R" or value != touch.number}
        conflicts += row.encoding.pipe != TENSOR and max(map(len, read.values())) > 2
    return conflicts


def _operands(row: Instruction) -> list[tuple[int, int, list[int]]]:
    """(slot A, B or C by where its reuse flag lies, the flag, registers) of each register operand."""
    found = []
    for field in row.encoding.fields:
        slot, dot, kind = field.name.rpartition(".")
        if dot and kind == "reuse":
            numbers = [t.number for t in row.reads if t.space == "R" and t.slot == slot]
            found.append((field.bits.parts[0][0], row[field.name], numbers))
    return found


def as_rows(statistics: Statistics) -> list[tuple[str, str]]:
    """Name and value of each figure, for a table."""
    s = statistics
    pipes = ", ".join(f"{name} {count}" for name, count in s.pipes.items())
    return [
        ("instructions", f"{s.instructions} ({pipes})"),
        *((f"{kind}, bytes a thread", str(count)) for kind, count in s.traffic.items()),
        ("registers", f"{s.registers} (demand {s.demand})"),
        ("warps an SM", f"{s.warps} (limit: {s.limit})"),
        ("occupancy", f"{s.occupancy:.0%} of {MOST_WARPS} warps"),
        ("global sectors touched over needed", _efficiency(s)),
        ("register bank conflicts", str(s.bank_conflicts)),
        *_conflicts(s.shared_accesses),
        *((f"cycles of a warp, loads {memory}", str(cycles)) for memory, cycles in s.cycles.items()),
        ("memory roofline that the schedule allows", _share(s.roofline)),
    ]


def _share(roofline: float | None) -> str:
    if roofline is None:
        return "moves nothing"
    return f"{roofline:.0%}" if roofline <= 1 else f"100% (asks for {roofline:.1f} times what memory gives)"


def _efficiency(s: Statistics) -> str:
    if s.global_efficiency is None:
        return "touches nothing"
    touched, needed = s.sectors
    return f"{s.global_efficiency:.2f} ({touched} for {needed})"


def _conflicts(accesses: Sequence[SharedAccess]) -> list[tuple[str, str]]:
    """A row for each kind of access without conflicts, then one for each access with one."""
    calm = Counter(access.instruction for access in accesses if access.degree == 1)
    rows = [(f"shared bank conflict degree, {name}", f"1 ({count} places)") for name, count in sorted(calm.items())]
    worse = (a for a in accesses if a.degree != 1)
    rows += [(f"shared bank conflict degree, {a.offset:#06x} {a.instruction}", f"{a.degree:.3g}") for a in worse]
    return rows or [("shared bank conflict degree", "touches nothing")]
