"""The products' main loops by the cycle model, beside nvcc's for the same tile and the vendor's of a corpus.

    [COPPELIUS_CORPUS=folder] PYTHONPATH=. python tests/bench/bench_products.py [all]

Without `all`, the loops that the record chooses and all that nvcc has (tests/data/cuda/products: plain CUDA, cp.async
and mma.sync, the same tile, ring and places).  A line: HMMAs in a turn of the loop and their share of its issue slots;
modelled cycles an HMMA with memory at 32 and 400 cycles, of one warp alone and of the resident ones of a sub-core;
LDSM bytes a cycle of an SM, whose shared memory gives 128, over the time of the products on each card; rounds of
shared memory that one block's loop takes and the fewest; groups of copies on their way as a wait ends and after the
next one.

Goals: 8.5 cycles an HMMA (the densest shipped loops: 8.05 to 8.50) for one warp and the resident ones with memory at
32, for resident ones of large tiles at 400 too.  At 400 small tiles wait here for copies that on a card come in the
time of its slower pipe (16 or 32 cycles an HMMA, not the 8 of issue).  Nothing more than nvcc's.  The cost model's
instructions a stage are the loop's own.  No bank twice.

With a corpus (sm86_corpus's: index.json, cubins/), the main loops of the tensor kernels of lmdeploy and auto-gptq.
"""

import json
import os
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "kernels")]

import main_loops  # noqa: E402
from main_loops import Loop, Version  # noqa: E402

from coppelius.container.reader import read_kernels  # noqa: E402
from coppelius.products import cost  # noqa: E402
from coppelius.products.record import CHOICES  # noqa: E402
from coppelius.products.shape import PRODUCTS  # noqa: E402
from coppelius.products.tile import CANDIDATES  # noqa: E402
from coppelius.program.cycles import MEMORY_CYCLES  # noqa: E402

DENSE = 8.5
LARGE = 64  # HMMAs of a warp in a stage
VENDORS = ("lmdeploy", "auto-gptq")


def row(name: str, made: Version, taken: int, fewest: int) -> str:
    """One version's figures."""
    loop = made.loop
    alone, held = (" ".join(f"{c:5.2f}" for c in cycles) for cycles in made.cycles())
    loads = " ".join(f"{loop.load_bytes(card.product_cycles):4.1f}" for card in cost.CARDS)
    return (
        f"| {name} | {loop.products} of {len(loop.body)} | {loop.share:.1%} | {alone} | {made.warps} | {held} | {loads}"
        f" | {taken} of {fewest} | {loop.flying[0]} to {loop.flying[1]} | {made.registers} |"
    )


def report(candidate: int, layouts: str) -> list[str]:
    """Prints ours, and nvcc's where it has one; the goals that are missed."""
    tile, case = CANDIDATES[candidate], main_loops.case_of(candidate, layouts)
    name = f"{candidate} {layouts}"
    ours = main_loops.version(candidate, layouts)
    taken, fewest = main_loops.conflicts(ours, case)
    print(row(f"{name} ours", ours, taken, fewest))
    alone, held = ours.cycles()
    missed = []
    if (worst := max([alone[0], held[0], *(held if tile.products >= LARGE else [])])) > DENSE:
        missed.append(f"{worst:.2f} cycles an HMMA, goal {DENSE}")
    if (stage := len(ours.loop.body) / tile.stages) != cost.instructions(tile, layouts):
        missed.append(f"{stage} instructions a stage, the model {cost.instructions(tile, layouts)}")
    if abs(alone[0] * tile.products - cost.issue_cycles(tile, layouts)) > 0.05 * cost.issue_cycles(tile, layouts):
        missed.append(f"{alone[0] * tile.products:.1f} cycles a stage, the model's issue differs")
    if taken > fewest:
        missed.append(f"{taken - fewest} rounds of shared memory too many")
    if candidate in main_loops.COMPILED:
        theirs = main_loops.version(candidate, layouts, compiled=True)
        print(row(f"{name} nvcc", theirs, *main_loops.conflicts(theirs, case)))
        pairs = zip([*alone, *held], [c for cycles in theirs.cycles() for c in cycles], strict=True)
        if any(a > b for a, b in pairs) or ours.loop.share < theirs.loop.share or ours.loop.loads > theirs.loop.loads:
            missed.append("more than nvcc's")
    return [f"{name}: {text}" for text in missed]


def vendor(folder: Path, wheel: str) -> None:
    """Prints what the main loops of one library's distinct kernels take, and how many those are."""
    entries = json.loads((folder / "index.json").read_text())["kernels"]
    files = sorted({e["cubin"] for e in entries if e["wheel"].startswith(wheel)})
    codes = {k.code: k.name for f in files for k in read_kernels(folder / "cubins" / f, data_only=True)}
    tensor = {code: name for code, name in codes.items() if main_loops.multiplies(code).any()}
    found: list[tuple[float, float, Loop, str]] = []
    for code, name in tensor.items():
        if (loop := main_loops.main_loop(code)) is not None:
            near, far = (loop.product_cycles(1, memory) for memory in MEMORY_CYCLES)
            found.append((near, far, loop, name))
    print(
        f"\n{wheel}: {len(codes)} distinct kernels, {len(tensor)} with HMMA.16816.F32, {len(found)} with a loop of at"
        f" least {main_loops.LEAST}; of each kernel the loop with the most; one warp\n"
    )
    print(
        "| HMMAs in a turn | kernels | cycles an HMMA at 32: least, median | at 400 | HMMA share: most, median"
        " | LDSM bytes of the densest, 3090 A6000 | under way | the densest |"
    )
    print("|---|---:|---|---|---|---|---|---|")
    sizes = defaultdict(list)
    for one in found:
        sizes[one[2].products].append(one)
    for size, ones in sorted(sizes.items()):
        near, far, shares = ([f(one) for one in ones] for f in (lambda o: o[0], lambda o: o[1], lambda o: o[2].share))
        _, _, loop, name = min(ones, key=lambda one: one[0])
        loads = " ".join(f"{loop.load_bytes(card.product_cycles):.1f}" for card in cost.CARDS)
        under_way = "{} to {}".format(*loop.flying)
        print(
            f"| {size} | {len(ones)} | {min(near):.2f}, {median(near):.2f} | {min(far):.2f}, {median(far):.2f}"
            f" | {max(shares):.1%}, {median(shares):.1%} | {loads} | {under_way} | {name[:40]} |"
        )


def main() -> int:
    """1 if a goal is missed."""
    chosen = {(CHOICES[p.identity].candidate, p.layouts) for p in PRODUCTS}
    chosen |= {(n, layouts) for n in main_loops.COMPILED for layouts in main_loops.LAYOUTS}
    if "all" in sys.argv[1:]:
        chosen = {(n, layouts) for n in range(len(CANDIDATES)) for layouts in main_loops.LAYOUTS}
    print(
        "| tile | HMMAs of instructions | share | alone, 32 400 | resident | they, 32 400 | LDSM bytes, 3090 A6000"
        " | shared rounds | under way | registers |\n|---|---|---:|---|---:|---|---|---|---|---:|"
    )
    missed = [line for candidate, layouts in sorted(chosen) for line in report(candidate, layouts)]
    if corpus := os.environ.get("COPPELIUS_CORPUS"):
        for wheel in VENDORS:
            vendor(Path(corpus), wheel)
    print("\n" + ("\n".join(missed) or "no goal missed"))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
