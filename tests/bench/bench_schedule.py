"""Our schedules against the vendor's over a corpus of shipped kernels, and how fast they are made.

    COPPELIUS_CORPUS=folder python tests/bench/bench_schedule.py [most instructions a kernel]

The folder holds cubins (any depth).  Goals: median ratio of modelled cycles at most 1.00, none above 1.10, no
schedule that the checks refuse.  Before the corpus, the kernels of tests/data/cuda run under our schedules in the
strict emulator, as tests/emulator launches them, and leave the memory that they leave under the vendor's.
"""

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cuda_launches import launches
from vendor_schedule import compare, run_launches

from coppelius.container.cubin import Kernel
from coppelius.container.reader import read_kernels
from coppelius.isa.refusal import Refusal

# goals of the comparison
MEDIAN, WORST = 1.00, 1.10


def kernels(folder: Path, most: int) -> Iterator[Kernel]:
    """Every kernel of every cubin below a folder that has at most so many instructions."""
    for path in sorted(folder.rglob("*.cubin")):
        try:
            found = read_kernels(path)
        except Refusal:
            continue
        yield from (kernel for kernel in found if kernel.instructions <= most)


def launched() -> bool:
    """Prints how many kernels ran equal; whether one did not."""
    wrong = []
    for variant in ("O3", "newer", "spill", "O0"):
        for reorder in (False, True):
            found = run_launches(launches(), variant, reorder=reorder)
            wrong += found.different
            title = f"tests/data/cuda {variant}{', reordered' if reorder else ''}"
            print(
                f"{title}: strict emulator, {found.launches} launches of {found.kernels} kernels, "
                f"different {len(found.different)}; left out {dict(found.left_out)}",
                flush=True,
            )
    print("\n".join(wrong[:10]))
    return bool(wrong)


def main() -> int:
    """Prints figures with their denominators; 1 if a goal is missed."""
    missed = launched()
    folder = os.environ.get("COPPELIUS_CORPUS")
    if folder is None:
        print("COPPELIUS_CORPUS names no folder")
        return 1 if missed else 2
    most = int(sys.argv[1]) if len(sys.argv) > 1 else 1 << 30
    for reorder in (False, True):
        start = time.process_time()
        found = compare(kernels(Path(folder), most), reorder=reorder)
        spent = time.process_time() - start
        way = "with" if reorder else "without"
        print(f"\n{way} reordering: {found.kernels} kernels, {found.instructions} instructions")
        print(f"  left out: {dict(found.left_out)}")
        print(f"  refused by the checks: {len(found.refused)} of {found.kernels}")
        for line in found.refused[:10]:
            print(f"    {line}")
        over = sum(ratio > 1.0 for ratio, _ in found.ratios)
        above = sum(ratio > WORST for ratio, _ in found.ratios)
        print(
            f"  ratio: median {found.median():.4f}; above 1.00: {over}, above {WORST:.2f}: {above}, of {found.kernels}"
        )
        for ratio, name in found.worst(5):
            print(f"    {ratio:.4f} {name}")
        print(
            f"  {spent:.0f} s with decoding, checks and model: {found.instructions / spent:.0f} instructions/s",
            flush=True,
        )
        missed |= bool(found.refused) or found.median() > MEDIAN or above > 0
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
