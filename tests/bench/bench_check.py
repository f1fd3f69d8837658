"""The checkers over a corpus of shipped kernels: no alarm, and how many instructions a second.

    COPPELIUS_CORPUS=folder python tests/bench/bench_check.py

The folder holds cubins (any depth).  Figures are one process's own time; decoding is part of it.
"""

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from coppelius.check.verdict import describe, judge
from coppelius.container.cubin import Kernel
from coppelius.container.reader import read_kernels
from coppelius.isa.refusal import Refusal

# goal on one core  # assumed: a whole build checks 48 images in well under a second
GOAL = 50_000


def kernels(folder: Path) -> Iterator[Kernel]:
    """Every kernel of every cubin below a folder, each code once."""
    seen = set()
    for path in sorted(folder.rglob("*.cubin")):
        try:
            found = read_kernels(path)
        except Refusal:
            continue
        for kernel in found:
            if kernel.code not in seen:
                seen.add(kernel.code)
                yield kernel


def main() -> int:
    """Prints alarms and figures; 1 if there is an alarm."""
    alarms = instructions = judged = undecoded = 0
    spent = 0.0
    for kernel in kernels(Path(os.environ["COPPELIUS_CORPUS"])):
        targets = {branch.offset: branch.targets for branch in kernel.indirect_branches}
        start = time.process_time()
        verdict = judge(kernel.code, {"registers": kernel.registers or None}, targets=targets)
        spent += time.process_time() - start
        judged += 1
        instructions += verdict["instructions"]
        if verdict["checks"]["words"] == "refused":
            undecoded += 1
        elif not verdict["accepted"]:
            alarms += 1
            print("\n".join(describe(f"{kernel.origin} {kernel.name}", verdict)[:6]))
    print(f"{judged} kernels, {instructions} instructions: {alarms} alarms, {undecoded} with words outside the table")
    print(f"{instructions / spent:,.0f} instructions a second (goal {GOAL:,})")
    return 1 if alarms else 0


if __name__ == "__main__":
    sys.exit(main())
