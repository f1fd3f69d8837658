"""No misses: every single loosening of every image and of every compiled test kernel is named or harmless.

    python tests/bench/bench_mutations.py [share of an image's] [share of a kernel's] [runs an image] [runs a kernel]

A share below 1 is a seeded sample of the loosenings; images above 1,500 instructions are sampled in any case.
Images in both half formats; kernels compiled at -O0 and -O3, by two toolkits and under register pressure.  Harm is
judged by the twin of tests/schedule_twin.py.  Loosenings that checkers and twin both let pass are then run strictly
in the emulator, on a few blocks of the image's real grid or as tests/emulator launches the kernel, where none may be
found out; of kernels as many that are named, to see how many a run shows.
"""

import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "kernels"))

import harness
from cuda_launches import CUBINS, cubin_of, launches
from mutations import SAMPLE, STRICT_RULES, Strict, Tally, loosened
from schedule_twin import loosenings
from test_strict import memory_after

from coppelius import catalog
from coppelius.container.reader import read_kernels
from coppelius.emulator.faults import Fault
from coppelius.isa.refusal import Refusal
from coppelius.program.program import Program

SEED = 20261130


def most_of(program: Program, share: float) -> int | None:
    """How many loosenings of a program to try: about the share, None for all that its length permits."""
    if share >= 1:
        return None
    return max(1, round(share * min(SAMPLE, len(loosenings(program)))))


def images(dice: random.Random, share: float, runs: int) -> tuple[Tally, dict[str, int], list[str]]:
    """All images in both formats; how strict runs ended, and those that found what was let pass."""
    tally, ends, found = Tally(), {"clean": 0, "found": 0, "other fault": 0}, []
    for half in harness.HALVES:
        for image in catalog.IMAGES:
            program = Program.decode(harness.material(image.identity, half))
            tally.add(f"{image.identity}-{half}", program, dice, most=most_of(program, share))
            some = dice.sample(tally.unnamed, min(runs, len(tally.unnamed)))
            for loosening in some if half == "bf16" and image.identity != "adamw" else ():
                try:
                    memory_after(image, half, "strict", material=loosened(program, loosening))
                    ends["clean"] += 1
                except Fault as fault:
                    hit = fault.finding.rule in STRICT_RULES
                    ends["found" if hit else "other fault"] += 1
                    found.append(f"{image.identity}: {loosening}: {fault}")
    return tally, ends, found


def compiled(dice: random.Random, share: float, variants: Sequence[str], runs: int) -> tuple[Tally, Strict]:
    """The kernels of tests/data of these variants, each code once; `runs`: of either kind a kernel."""
    tally, strict, seen = Tally(), Strict(), set()
    for path in (p for variant in variants for p in sorted((CUBINS / variant).glob("*.cubin"))):
        for kernel in read_kernels(path):
            if kernel.code in seen:
                continue
            seen.add(kernel.code)
            try:
                program = Program.decode(kernel.code)
            except Refusal:
                continue
            targets = {b.offset // 16: [t // 16 for t in b.targets] for b in kernel.indirect_branches}
            tally.add(
                f"{path.parent.name} {path.name} {kernel.name}",
                program,
                dice,
                most=most_of(program, share),
                targets=targets,
                whole=True,
            )
            for launch in launches().get((path.stem, kernel.name), [])[:1] if runs else ():
                some = (dice.sample(kind, min(runs, len(kind))) for kind in (tally.unnamed, tally.named))
                strict.add(launch, cubin_of(path.parent.name, path.stem), program, *some)
    return tally, strict


def main() -> int:
    """Prints figures; 1 if something was missed."""
    given = [float(text) for text in sys.argv[1:]]
    of_images, of_kernels, runs, kernel_runs = [*given, *(1.0, 1.0, 3.0, 5.0)[len(given) :]]
    start = time.process_time()
    dice = random.Random(SEED)
    tally, ends, found = images(dice, of_images, int(runs))
    print(f"images, both formats: {tally.line()}", flush=True)
    print(f"  strict runs of loosenings let pass: {ends}", flush=True)
    missed = [*tally.missed, *tally.alarms, *found]
    for title, variants in (("optimised", ("O3", "newer", "spill")), ("-O0", ("O0",))):
        tally, strict = compiled(dice, of_kernels, variants, int(kernel_runs))
        print(f"compiled kernels, {title}: {tally.line()}", flush=True)
        print(f"  {strict.line()}", flush=True)
        missed += [*tally.missed, *tally.alarms, *strict.wrong]
    print("\n".join(missed[:40]))
    print(f"seed {SEED}, shares {of_images} and {of_kernels}, {time.process_time() - start:.0f} s of processor time")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
