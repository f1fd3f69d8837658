"""The checkers over shipped kernels and over CUDA compiled at every level: no alarm, and how fast.

    COPPELIUS_CORPUS=folder python tests/bench/bench_check.py [--compile]

The folder holds cubins (any depth).  `--compile` also builds the sources of tests/data/cuda at -O0 to -O3 with each
ptxas that is found (NVCC, PTXAS, NEWER_PTXAS or PATH).  Figures are processor time; decoding is part of it.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from coppelius.check.verdict import describe, judge
from coppelius.container.cubin import Kernel
from coppelius.container.reader import read_kernels
from coppelius.isa.refusal import Refusal

# goal on one core  # assumed: a whole build checks 48 images in well under a second
GOAL = 50_000
CUDA = Path(__file__).resolve().parents[1] / "data" / "cuda"
LEVELS = ("-O0", "-O1", "-O2", "-O3")


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


def compile_levels(folder: Path) -> None:
    """Cubins of every source, by each ptxas at each level, in one folder a toolkit and level."""
    nvcc = os.environ.get("NVCC", "nvcc")
    for source in sorted(CUDA.glob("*.cu")):
        ptx = folder / f"{source.stem}.ptx"
        subprocess.run([nvcc, "-O3", "-ptx", "-arch=compute_86", "-o", ptx, source], check=True)
        for variable in ("PTXAS", "NEWER_PTXAS"):
            for level in LEVELS:
                out = folder / f"{variable}{level}"
                out.mkdir(exist_ok=True)
                command = [os.environ.get(variable, "ptxas"), "-arch=sm_86", "-suppress-stack-size-warning", level]
                subprocess.run([*command, "-o", out / f"{source.stem}.cubin", ptx], check=True)


def check(title: str, folder: Path) -> int:
    """Prints alarms and figures of a folder; how many kernels have one."""
    alarms = instructions = judged = undecoded = 0
    spent = 0.0
    for kernel in kernels(folder):
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
    print(
        f"{title}: {judged} kernels, {instructions} instructions: {alarms} alarms, {undecoded} with words outside the "
        f"table; {instructions / spent:,.0f} instructions a second (goal {GOAL:,} over a corpus)",
        flush=True,
    )
    return alarms


def main() -> int:
    """1 if there is an alarm."""
    alarms = 0
    if "COPPELIUS_CORPUS" in os.environ:
        alarms += check("corpus", Path(os.environ["COPPELIUS_CORPUS"]))
    for variant in sorted((CUDA / "cubins").iterdir()):
        alarms += check(f"tests/data, {variant.name}", variant)
    if "--compile" in sys.argv:
        with tempfile.TemporaryDirectory() as scratch:
            compile_levels(Path(scratch))
            for folder in sorted(p for p in Path(scratch).iterdir() if p.is_dir()):
                alarms += check(f"compiled, {folder.name}", folder)
    return 1 if alarms else 0


if __name__ == "__main__":
    sys.exit(main())
