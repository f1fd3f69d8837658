"""Our schedules against the vendor's: the same instructions, control words stripped and assigned anew.

Both are judged by one cycle model, on every instruction that some path reaches, front to back, and on one path
through the loops; memory at both of the model's figures.  Programs with calls, indirect branches or words outside
the table are left out and counted.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from cuda_launches import Launch, cubin_of

from coppelius.check.facts import facts_of
from coppelius.check.flow import graph_of
from coppelius.check.hazard import Hazard
from coppelius.check.verdict import schedule_hazards
from coppelius.container.cubin import Kernel
from coppelius.emulator.faults import Fault
from coppelius.isa.control import NO_BARRIER
from coppelius.isa.refusal import Refusal
from coppelius.isa.word import from_bytes
from coppelius.program.cycles import MEMORY_CYCLES, modelled_cycles
from coppelius.program.listing import listing_text
from coppelius.program.program import Program
from coppelius.program.trace import reachable, walk
from coppelius.schedule.schedule import schedule

_STRIPPED = {"stall": 1, "keep": 1, "write_barrier": NO_BARRIER, "read_barrier": NO_BARRIER, "wait": 0}


def stripped(program: Program) -> Program:
    """The program without anything that a scheduler decided."""
    rows = []
    for row in program:
        reuse = {f.name: 0 for f in row.encoding.fields if f.name.endswith(".reuse")}
        rows.append(row.with_fields(_STRIPPED | reuse))
    return Program.of(rows, program.table)


def hazards(program: Program) -> list[Hazard]:
    """What both schedule checks object to."""
    facts = facts_of(program.decoded, from_bytes(program.encode()))
    return schedule_hazards(facts, graph_of(facts))


def cycles(program: Program) -> list[int]:
    """Modelled cycles: (all reachable, one path) for each memory figure."""
    traces = (reachable(program), walk(program))
    return [modelled_cycles(program, trace, memory=memory) for memory in MEMORY_CYCLES for trace in traces]


@dataclass
class Comparison:
    """`ratios[case]`: ours over the vendor's, a figure a kernel; `refused`: kernels that our checks refuse."""

    kernels: int = 0
    instructions: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    refused: list[str] = field(default_factory=list)
    ratios: list[tuple[float, str]] = field(default_factory=list)

    def median(self) -> float:
        return statistics.median(ratio for ratio, _ in self.ratios)

    def worst(self, count: int = 1) -> Sequence[tuple[float, str]]:
        return sorted(self.ratios, reverse=True)[:count]


def compare(kernels: Iterable[Kernel], *, reorder: bool = False) -> Comparison:
    """Schedule each kernel anew; a kernel's ratio is its worst over traces and memory figures."""
    found = Comparison()
    seen = set()
    for kernel in kernels:
        if kernel.code in seen:
            continue
        seen.add(kernel.code)
        try:
            vendor = Program.decode(kernel.code)
        except Refusal:
            found.left_out["words outside the table"] += 1
            continue
        try:
            ours, _ = schedule(stripped(vendor), [{}] * len(vendor), reorder=reorder)
        except Refusal as refusal:
            found.left_out[str(refusal).partition(": ")[2].partition(" ")[0]] += 1
            continue
        name = f"{kernel.origin}: {kernel.name}"
        found.kernels += 1
        found.instructions += len(vendor)
        if hazards(ours):
            found.refused.append(f"{name}: {hazards(ours)[0]}")
        ratio = max(a / b for a, b in zip(cycles(ours), cycles(vendor), strict=True))
        found.ratios.append((ratio, name))
    return found


@dataclass
class Launched:
    """Our schedules of compiled kernels in the strict emulator, as tests/emulator launches them."""

    launches: int = 0
    kernels: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    different: list[str] = field(default_factory=list)


def run_launches(known: Mapping[tuple[str, str], Sequence[Launch]], variant: str, *, reorder: bool) -> Launched:
    """Each kernel scheduled anew and run strictly: no finding, and the memory that the vendor's schedule leaves."""
    found = Launched()
    for (source, name), launches in sorted(known.items()):
        cubin = cubin_of(variant, source)
        kernel = next(k for k in cubin.kernels if k.name == name)
        try:
            vendor = Program.decode(kernel.code)
            ours, _ = schedule(stripped(vendor), [{}] * len(vendor), reorder=reorder)
        except Refusal as refusal:
            found.left_out[str(refusal).partition(": ")[2].partition(" ")[0]] += 1
            continue
        if kernel.relocations:
            # their places are offsets into the vendor's order
            found.left_out["relocated words"] += 1
            continue
        # times that it writes down are not another schedule's
        clocks = "SR_CLOCK" in listing_text(vendor)
        found.kernels += 1
        for launch in launches:
            found.launches += 1
            try:
                pair = launch.after(cubin, mode="fast"), launch.after(cubin, ours.encode())
            except Fault as fault:
                found.different.append(f"{source} {name}: {fault}")
                continue
            if not clocks and any(a.tobytes() != b.tobytes() for a, b in zip(*pair, strict=True)):
                found.different.append(f"{source} {name}: other memory")
    return found
