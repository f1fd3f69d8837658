"""Re-derives the latency grid from the vendor's code, and holds every cell to it.

    COPPELIUS_CORPUS=folder python tests/bench/derive_grid.py [every nth kernel]

The folder holds cubins (any depth); without it, only kernels of tests/data are read.
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from grid_witnesses import ENOUGH, compiled, derive, expected, shipped

from coppelius.isa.latency_reasons import REASONS


def main() -> int:
    """Prints every cell; 1 if one disagrees."""
    folder = os.environ.get("COPPELIUS_CORPUS")
    step = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    kernels = [*compiled(), *(list(shipped(Path(folder)))[::step] if folder else ())]
    derived = derive(kernels)
    print(f"{derived.kernels} kernels, {derived.instructions} instructions")
    for cell, seen in sorted(derived.cells.items()):
        mark = "" if seen.least == expected(cell) else REASONS.get(cell, "DIFFERS")
        print(
            f"{' '.join(cell):36} holds {expected(cell):3} least {seen.least:4} x{seen.at_least} of {seen.count} {mark}"
        )
    print("\nMMA shapes, read after write")
    for (shape, column), seen in sorted(derived.shapes.items()):
        print(f"{shape:36} {column:10} least {seen.least:4} x{seen.at_least} of {seen.count}")
    wrong = derived.disagreements()
    enough = sum(seen.count >= ENOUGH for seen in derived.cells.values())
    print(f"\n{enough} cells with {ENOUGH} or more witnesses, {len(wrong)} disagree without a reason")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
