"""What lowering costs: for each target images, words, words changed, growth in registers and in modelled cycles.

    python tests/bench/bench_lowering.py [target ...]

Images are read from build/sm86 (`doit` makes it).  A word is changed where the target's is not SM86's, control
bits apart; words that lowering adds count as changed.  Registers are general ones, uniform ones beside them.
Cycles are of one warp, loads of 32.  Forms: those of the lowered words, and how many of them ptxas writes for the
target (tests/compiled_forms.py).  Stalls: images in which the target's check names stalls that SM86 needs no longer.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import compiled_forms
from native_stalls import native_stalls

from coppelius.check.resources import register_demand
from coppelius.check.verdict import judge
from coppelius.isa.table import table_of
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
    forms: set[str]
    named: bool  # whether native stalls are


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
    forms = set(compiled_forms.forms(made.program.encode(), made.program.table))
    verdict = judge(native_stalls(native, made).encode(), {}, table=table_of(target))
    named = any(hazard["check"] == "fixed_latency" for hazard in verdict["hazards"])
    growth = after.general - before.general, after.uniform - before.uniform
    return Row(len(made.program), changed, *growth, ratio, forms, named)


def _growth(registers: list[int]) -> str:
    """The most that an image's registers grow, and how many images' do."""
    return f"+{max(registers)} ({sum(n > 0 for n in registers)})"


def main() -> int:
    """Prints the table."""
    listings = sorted((ROOT / "build" / "sm86").glob("*/guard.sass"))
    if not listings:
        print("build/sm86 holds no listings; run doit first")
        return 2
    programs = [parse_listing(path.read_text()) for path in listings]
    print(
        "| target | images | words | changed | general | uniform | cycles, median | most | forms | by ptxas | stalls |"
    )
    print(f"|---|{'---:|' * 10}")
    for target in sys.argv[1:] or sorted(DIFFERENCES):
        rows = [measure(program, target) for program in programs]
        ratios = [row.cycles for row in rows]
        forms = set().union(*(row.forms for row in rows))
        cells = [
            target, len(rows), sum(r.words for r in rows), sum(r.changed for r in rows),
            _growth([r.registers for r in rows]), _growth([r.uniform for r in rows]),
            f"{statistics.median(ratios):.3f}", f"{max(ratios):.3f}",
            len(forms), len(forms & compiled_forms.recorded()[target].keys()), sum(r.named for r in rows),
        ]  # fmt: skip
        print("|", " | ".join(map(str, cells)), "|")
    return 0


if __name__ == "__main__":
    sys.exit(main())
