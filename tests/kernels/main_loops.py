"""Main loops of products, ours and nvcc's: what they issue, and what that takes in the cycle model.

nvcc's are those of tests/data/cuda/products, the same tile, stage ring and places in plain CUDA, by nvcc -O3.  Their
blocks of C and turns of the ring are `CASE`'s, so that one launch serves both.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import tiled_cases
from numpy.typing import NDArray
from tiled_cases import Case

from coppelius.container.cubin import Kernel
from coppelius.container.reader import read_kernels
from coppelius.emulator.traffic import Traffic
from coppelius.products import cost
from coppelius.products.admission import registers
from coppelius.program.cycles import MEMORY_CYCLES, modelled_cycles, resident_warps
from coppelius.program.program import Program, branch_target

CUBIN = Path(__file__).resolve().parents[1] / "data" / "cuda" / "products" / "tiled.cubin"
COMPILED = (0, 2, 4, 6)  # candidates that nvcc's versions have
LAYOUTS = ("rr", "rc", "cc")
LEAST = 32  # HMMAs of a loop that counts
_ROUNDS = 4


class Loop(NamedTuple):
    """A main loop: its program, its instructions, its HMMAs.16816.F32 and LDSMs, and its groups of copies."""

    program: Program
    body: list[int]
    products: int
    loads: int
    groups: int

    @property
    def share(self) -> float:
        """Of issue slots that HMMAs take."""
        return self.products / len(self.body)

    @property
    def flying(self) -> tuple[int, int]:
        """Groups of copies on their way when a wait for them ends, and once the next one follows."""
        rows = [self.program[i] for i in self.body]
        waits = [row["count"] for row in rows if row.encoding.mnemonic == "DEPBAR" and "count" in row.encoding.column]
        return (least := min(waits, default=0)), least + bool(self.groups)

    def product_cycles(self, warps: int, memory: int) -> float:
        """An HMMA in the steady state, of one sub-core's tensor pipe."""
        few, many = (
            modelled_cycles(self.program, self.body * n, memory=memory, warps=warps) for n in (_ROUNDS, 2 * _ROUNDS)
        )
        return (many - few) / _ROUNDS / warps / self.products

    def load_bytes(self, product_cycles: int) -> float:
        """LDSM bytes a cycle of an SM whose four tensor pipes take so many cycles an HMMA and never wait."""
        return self.loads * 512 * cost.SUB_CORES / (self.products * product_cycles)


def multiplies(code: bytes) -> NDArray[np.bool_]:
    """Which of these words are HMMA.16816.F32: opcode 0x23c, bits 75 and 76 set, 78 clear."""
    words = np.frombuffer(code, "<u8").reshape(-1, 2)
    found: NDArray[np.bool_] = (words[:, 0] & 0xFFF == 0x23C) & (words[:, 1] >> 11 & 0b1011 == 0b0011)
    return found


def main_loop(code: bytes) -> Loop | None:
    """The loop with the most HMMAs and none inside that holds any; None where no loop has enough.

    Of a branch forward inside it that way is taken which leaves no HMMA out, and then the shorter one.
    """
    program = Program.decode(code)
    targets = {i: t for i, row in enumerate(program) if (t := branch_target(row, i)) is not None}
    counted = multiplies(code)
    held = np.concatenate([[0], np.cumsum(counted)])  # before each instruction
    back = [(t, i) for i, t in targets.items() if t < i and held[i] > held[t]]
    inner = [(t, i) for t, i in back if not any(t <= u and v < i for u, v in back)]
    if not inner:
        return None
    at, last = max(inner, key=lambda ends: int(held[ends[1]] - held[ends[0]]))
    body = []
    while at <= last:
        body.append(at)
        target = targets.get(at, 0)
        at = target if at < target <= last and held[target] == held[at] else at + 1
    names = [program[i].encoding.mnemonic.split(".")[0] for i in body]
    products = int(counted[body].sum())
    loop = Loop(program, body, products, names.count("LDSM"), names.count("LDGDEPBAR"))
    return loop if products >= LEAST else None


def case_of(candidate: int, layouts: str) -> Case:
    """The product that nvcc's versions were compiled for."""
    return tiled_cases.small(layouts, candidate, rounds=4)


@cache
def kernels() -> Mapping[str, Kernel]:
    """nvcc's by name: tiled_<candidate>_<layouts>."""
    return {kernel.name: kernel for kernel in read_kernels(CUBIN)}


class Version(NamedTuple):
    """One of both: its code, its main loop, its registers, and how many of its warps a sub-core holds."""

    code: bytes
    loop: Loop
    registers: int
    warps: int

    def cycles(self) -> tuple[list[float], list[float]]:
        """An HMMA, for one warp and for all that fit, at each memory latency."""
        alone, held = ([self.loop.product_cycles(w, m) for m in MEMORY_CYCLES] for w in (1, self.warps))
        return alone, held


def version(candidate: int, layouts: str, *, compiled: bool = False) -> Version:
    """Ours, or nvcc's."""
    case = case_of(candidate, layouts)
    if compiled:
        kernel = kernels()[f"tiled_{candidate}_{layouts}"]
        code, count = kernel.code, kernel.registers
    else:
        code, count = tiled_cases.material(case, "bf16"), registers(case.tile)
    loop = main_loop(code)
    assert loop is not None
    warps = resident_warps(count, block_x=case.tile.threads, shared_bytes=case.tile.shared_bytes)
    return Version(code, loop, count, warps)


def run(code: bytes, case: Case, **how: Any) -> Any:
    """C of one launch in bf16."""
    a, b, r = tiled_cases.operands(case.product, "bf16", seed=21)
    with patch.object(tiled_cases, "material", lambda *_: code):
        return tiled_cases.run(case, "bf16", a, b, r, **how)


def conflicts(made: Version, case: Case) -> tuple[int, int]:
    """(rounds that shared memory takes for one block's main loop, the fewest that hold so many bytes)."""
    traffic, inside = Traffic(), set(made.loop.body)
    run(made.code, case, blocks=[0], mma="fast", traffic=traffic)
    counted = [one for one in traffic.accesses if one.space == "shared" and one.ordinal in inside]
    return sum(one.taken for one in counted), sum(one.fewest for one in counted)
