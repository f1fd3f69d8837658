"""The products' main loops by the cycle model: how densely they issue HMMAs, and what they ask of shared memory.

    [COPPELIUS_CORPUS=folder] python tests/bench/bench_products.py [all]

Without `all`, the loops that the record chooses.  Goals: at most 8.5 modelled cycles an HMMA (the densest shipped
loops: 8.05 to 8.50), alone and at the `resident` warps of a sub-core, memory at 32 cycles; for tiles of 64 x 64 a warp
at 400, too.  At 400 small tiles wait here for copies that on a card come in the time of its slower pipe (16 or 32
cycles an HMMA, not the 8 of issue).  The cost model's instructions a stage are the loop's own; no bank twice.  Bytes a
cycle: LDSMs of all resident warps over the time of their products on each card; shared memory gives 128.

With a corpus (a folder of cubins), the densest loops of its kernels follow, by the same model.
"""

import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "kernels")]

import numpy as np  # noqa: E402
import tiled_cases  # noqa: E402
from test_access import Counts, _spy, rounds  # noqa: E402

from coppelius.container.reader import read_kernels  # noqa: E402
from coppelius.emulator import spaces  # noqa: E402
from coppelius.products import cost  # noqa: E402
from coppelius.products.admission import registers  # noqa: E402
from coppelius.products.record import CHOICES  # noqa: E402
from coppelius.products.shape import PRODUCTS  # noqa: E402
from coppelius.products.tile import CANDIDATES, Tile  # noqa: E402
from coppelius.program.cycles import MEMORY_CYCLES, modelled_cycles, resident_warps  # noqa: E402
from coppelius.program.flow import blocks  # noqa: E402
from coppelius.program.listing import parse_listing  # noqa: E402
from coppelius.program.program import Program, branch_target  # noqa: E402

DENSE = 8.5
LARGE = 64  # HMMAs of a warp in a stage
ROUNDS = 4
LEAST, MOST_KERNELS = 32, 150  # HMMAs of a loop that counts; kernels of the corpus that are looked at, evenly spread


class Loop(NamedTuple):
    """A main loop: its program, its instructions, its HMMAs and LDSMs."""

    program: Program
    body: list[int]
    products: int
    loads: int

    def cycles(self, warps: int, memory: int) -> float:
        """Of a round, one warp's share, in the steady state."""
        few, many = (
            modelled_cycles(self.program, self.body * n, memory=memory, warps=warps) for n in (ROUNDS, 2 * ROUNDS)
        )
        return (many - few) / ROUNDS / warps


def loop_of(candidate: int, layouts: str) -> Loop:
    """The loop as it is scheduled."""
    program = parse_listing(tiled_cases.listing(tiled_cases.small(layouts, candidate, rounds=4)))
    block = next(b for b in blocks(program) if any(t <= b.start for t in b.following) and b.end - b.start > 1)
    body = list(range(block.start, block.end))
    names = [program[i].encoding.mnemonic.split(".")[0] for i in body]
    return Loop(program, body, names.count("HMMA"), names.count("LDSM"))


def conflicts(candidate: int, layouts: str) -> tuple[int, int]:
    """(rounds that shared memory takes for one block, the fewest that hold so many bytes)."""
    found: Counts = defaultdict(lambda: [0, 0])
    kept = [(table, table["shared"]) for table in (spaces._LOADERS, spaces._STORERS)]
    for table, real in kept:
        table["shared"] = _spy(real, found, "shared", rounds)
    try:
        case = tiled_cases.small(layouts, candidate, rounds=2, blocks=(1, 1))
        a, b, r = tiled_cases.operands(case.product, "f16", seed=1)
        tiled_cases.run(case, "f16", a, b, r, mma="fast")
    finally:
        for table, real in kept:
            table["shared"] = real
    return sum(taken for taken, _ in found.values()), sum(fewest for _, fewest in found.values())


def report(candidate: int, layouts: str) -> list[str]:
    """Prints one loop's figures; the goals that it misses."""
    tile: Tile = CANDIDATES[candidate]
    loop = loop_of(candidate, layouts)
    warps = resident_warps(registers(tile), block_x=tile.threads, shared_bytes=tile.shared_bytes)
    alone, held = ([loop.cycles(w, m) / loop.products for m in MEMORY_CYCLES] for w in (1, warps))
    loads = [loop.loads * 512 * 4 / (loop.products * card.product_cycles) for card in cost.CARDS]
    taken, fewest = conflicts(candidate, layouts)
    per_stage, share = len(loop.body) / tile.stages, loop.products / len(loop.body)
    print(
        f"{candidate} {tile!s:14} {layouts}  {loop.products:4} of {len(loop.body):4} = {share:.0%}"
        f"  alone {alone[0]:5.2f} {alone[1]:5.2f}  {warps} resident {held[0]:5.2f} {held[1]:5.2f}"
        f"  LDSM {loads[0]:4.1f} {loads[1]:4.1f}  {tile.stages - 1} to {tile.stages} stages in flight"
        f"  shared rounds {taken} of at least {fewest}"
    )
    missed = []
    worst = max([held[0], alone[0], *(held if tile.products >= LARGE else [])])
    if worst > DENSE:
        missed.append(f"{candidate} {layouts}: {worst:.2f} cycles an HMMA, goal {DENSE}")
    if per_stage != cost.instructions(tile, layouts):
        missed.append(
            f"{candidate} {layouts}: {per_stage} instructions a stage, the model {cost.instructions(tile, layouts)}"
        )
    if abs(alone[0] * tile.products - cost.issue_cycles(tile, layouts)) > 0.05 * cost.issue_cycles(tile, layouts):
        missed.append(
            f"{candidate} {layouts}: {alone[0] * tile.products:.1f} cycles a stage, the model's issue differs"
        )
    if taken > fewest:
        missed.append(f"{candidate} {layouts}: {taken - fewest} rounds of shared memory too many")
    return missed


def vendor_loops(folder: Path) -> Iterator[tuple[float, str]]:
    """(cycles an HMMA for one warp, its line) of each innermost loop with enough HMMAs of 16 x 8 x 16 into f32."""
    paths = sorted(folder.rglob("*.cubin"))
    kernels = [k for path in paths for k in read_kernels(path, data_only=True) if mmas(k.code) >= LEAST]
    step = -(-len(kernels) // MOST_KERNELS)
    for kernel in kernels[::step]:
        program = Program.decode(kernel.code)
        back = [(t, i) for i, row in enumerate(program) if (t := branch_target(row, i)) is not None and t < i]
        for first, last in back:
            body = list(range(first, last + 1))
            products = mmas(kernel.code[16 * first : 16 * last])
            if products < LEAST or any(first <= t and i < last for t, i in back):
                continue
            loop = Loop(program, body, products, 0)
            alone = [loop.cycles(1, memory) / products for memory in MEMORY_CYCLES]
            share = products / len(body)
            figures = f"alone {alone[0]:5.2f} {alone[1]:5.2f}"
            yield alone[0], f"{products:4} of {len(body):4} = {share:.0%}  {figures}  {kernel.name[:60]}"


def mmas(code: bytes) -> int:
    """HMMA.16816.F32 among these words: opcode 0x23c, bits 75 and 76 set, 78 clear."""
    words = np.frombuffer(code, "<u8").reshape(-1, 2)
    return int(((words[:, 0] & 0xFFF == 0x23C) & (words[:, 1] >> 11 & 0b1011 == 0b0011)).sum())


def main() -> int:
    """1 if a goal is missed."""
    chosen = sorted({(CHOICES[p.identity].candidate, p.layouts) for p in PRODUCTS})
    if "all" in sys.argv[1:]:
        chosen = [(n, layouts) for n in range(len(CANDIDATES)) for layouts in ("rr", "rc", "cc")]
    print(
        "tile            HMMAs of instructions   cycles an HMMA at memory 32 and 400   LDSM bytes a cycle (3090, A6000)"
    )
    missed = [line for candidate, layouts in chosen for line in report(candidate, layouts)]
    if corpus := os.environ.get("COPPELIUS_CORPUS"):
        found = sorted(vendor_loops(Path(corpus)))
        print(f"compiled kernels: the densest of {len(found)} loops, and the median {found[len(found) // 2][0]:.2f}")
        print("\n".join(line for _, line in found[:10]))
    print("\n".join(missed) or "no goal missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
