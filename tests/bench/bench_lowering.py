"""What lowering costs: for each target images, words, words changed, growth in registers and in modelled cycles.

    python tests/bench/bench_lowering.py [target ...]

Images are read from build/sm86 (`doit` makes it).  A word is changed where the target's is not SM86's, control
bits apart; words that lowering adds count as changed.  Registers are general ones, uniform ones beside them.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from coppelius.check.resources import register_demand
from coppelius.isa.targets.chips import DIFFERENCES
from coppelius.isa.word import from_bytes
from coppelius.lowering.lower import lower
from coppelius.program.cycles import modelled_cycles
from coppelius.program.listing import parse_listing
from coppelius.program.program import Program
from coppelius.program.trace import walk

ROOT = Path(__file__).resolve().parents[2]
# bits 105 to 125: the control word and the reuse flags
_CONTROL = np.array([0, ((1 << 21) - 1) << 41], np.uint64)


class Row(NamedTuple):
    """One image on one target."""

    words: int
    changed: int
    registers: int
    uniform: int
    cycles: float


def changed_words(native: Program, lowered: Program, origin: list[int]) -> int:
    """Words of the target that are not those of the SM86 instruction they come from."""
    old, new = (from_bytes(p.encode()) & ~_CONTROL for p in (native, lowered))
    return int(np.count_nonzero((old[origin] != new).any(axis=1)))


def measure(native: Program, target: str) -> Row:
    """One image lowered."""
    made = lower(native, target)
    before, after = register_demand(native.decoded), register_demand(made.program.decoded)
    ratio = modelled_cycles(made.program, walk(made.program)) / modelled_cycles(native, walk(native))
    changed = changed_words(native, made.program, made.origin)
    return Row(len(made.program), changed, after.general - before.general, after.uniform - before.uniform, ratio)


def main() -> int:
    """Prints the table."""
    listings = sorted((ROOT / "build" / "sm86").glob("*/guard.sass"))
    if not listings:
        print("build/sm86 holds no listings; run doit first")
        return 2
    programs = [parse_listing(path.read_text()) for path in listings]
    print(f"{'target':8}{'images':>8}{'words':>8}{'changed':>9}{'registers':>11}{'uniform':>9}{'cycles':>22}")
    for target in sys.argv[1:] or sorted(DIFFERENCES):
        rows = [measure(program, target) for program in programs]
        ratios = [row.cycles for row in rows]
        growth = f"+{max(r.registers for r in rows)}", f"+{max(r.uniform for r in rows)}"
        cycles = f"median {statistics.median(ratios):.3f}, most {max(ratios):.3f}"
        words, changed = sum(r.words for r in rows), sum(r.changed for r in rows)
        print(f"{target:8}{len(rows):8}{words:8}{changed:9}{growth[0]:>11}{growth[1]:>9}{cycles:>26}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
