"""A cold build of sm86's images beside nvcc -O3 of the same kernels in plain CUDA, in one run.

    python tests/bench/bench_compilers.py [--repeats N] [--processes N]

Ours: `doit targets=sm86` in a fresh copy of the tree with an empty store: emit, halve, guard, encode, check, place,
arena.  Theirs: a file a kernel module (tests/data/cuda), each through `nvcc -O3 -arch=sm_86 -cubin`, as many at a time
as doit has processes; then `ptxas -O3` alone on the PTX of the same files.  Products are 16 instances of one template,
a tile and layouts each as the record has them, without the residual.  Processor time is of all processes that took
part; turns alternate, the best of each counts.  Goal: at most half of nvcc's.
"""

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from coppelius import catalog  # noqa: E402
from coppelius.products.record import CHOICES  # noqa: E402
from coppelius.products.shape import PRODUCTS  # noqa: E402
from coppelius.products.tile import CANDIDATES  # noqa: E402

CUDA = ROOT / "tests/data/cuda"
GOAL = 0.5
TOOLKIT = os.environ.get("CUDA_BIN", "/usr/local/cuda/bin")
# a kernel of one line, or to the first brace that stands alone
_KERNEL = re.compile(r"^IMAGE\(\w+\) (\w+)\((?:[^\n]*\}\n|.*?^\}\n)", re.DOTALL | re.MULTILINE)


class Cost(NamedTuple):
    """Seconds: of processors, and by the clock."""

    processor: float
    clock: float


def measured(work: Callable[[], None]) -> Cost:
    """What the processes that `work` starts take."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    work()
    clock, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, clock)


def sources() -> dict[str, str]:
    """Kernel module -> its kernels in plain CUDA; refuses where a kernel is missing."""
    modules: dict[str, list[str]] = {}
    for image in catalog.IMAGES:
        modules.setdefault(image.kernel.partition(":")[0], []).append(image.identity.replace("-", "_"))
    texts = [path.read_text() for folder in ("images", "attention") for path in sorted((CUDA / folder).glob("*.cu"))]
    made = {}
    for module, kernels in modules.items():
        name = module.removeprefix("coppelius.kernels.")
        if kernels[0].startswith("tiled"):
            made[name] = _products()
            continue
        (text,) = (text for text in texts if any(m[1] == kernels[0] for m in _KERNEL.finditer(text)))
        made[name] = _KERNEL.sub(lambda m, wanted=frozenset(kernels): m[0] if m[1] in wanted else "", text)
        if missing := [kernel for kernel in kernels if f" {kernel}(" not in made[name]]:
            raise SystemExit(f"no plain CUDA of {', '.join(missing)}")
    return made


def _products() -> str:
    """The template's text, its instances replaced by the record's."""
    text = (CUDA / "products/tiled.cu").read_text()
    head, _, _ = text.partition("\n// the candidates")
    rows = []
    for number, product in enumerate(PRODUCTS):
        tile = CANDIDATES[CHOICES[product.identity].candidate]
        figures = (tile.warps_m, tile.warps_n, tile.fragments_m, tile.fragments_n, tile.stages)
        columns = ("true" if letter == "c" else "false" for letter in product.layouts)
        rows.append(f"KERNEL({number}, {', '.join(map(str, figures))}, {', '.join(columns)})")
    return "\n".join([head, *rows, ""])


def each(commands: Sequence[Sequence[str]], processes: int) -> None:
    """Runs them, so many at a time."""

    def run(command: Sequence[str]) -> None:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    with ThreadPoolExecutor(processes) as pool:
        list(pool.map(run, commands))


def compilers(folder: Path, processes: int) -> dict[str, Callable[[], None]]:
    """nvcc on every file, and ptxas on what it makes of them on the way."""
    options = ["-O3", "-w", "-arch=sm_86", f"-I{CUDA / 'images'}"]
    files = []
    for name, text in sources().items():
        files.append(folder / f"{name}.cu")
        files[-1].write_text(text.replace('"../images/plain.cuh"', '"plain.cuh"'))
    nvcc = [[f"{TOOLKIT}/nvcc", *options, "-cubin", "-o", f"{file}.cubin", str(file)] for file in files]
    each([[f"{TOOLKIT}/nvcc", *options, "-ptx", "-o", f"{file}.ptx", str(file)] for file in files], processes)
    ptxas = [[f"{TOOLKIT}/ptxas", "-O3", "-arch=sm_86", "-o", f"{file}.cubin", f"{file}.ptx"] for file in files]
    print(f"{len(files)} files, {len(catalog.IMAGES)} kernels")
    return {"nvcc -O3": lambda: each(nvcc, processes), "ptxas -O3 alone": lambda: each(ptxas, processes)}


def checkout(folder: Path) -> Path:
    """What git tracks or would, as it lies in the tree."""
    made = folder / "checkout"
    tracked = subprocess.run(
        ["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True
    ).stdout
    for name in tracked.decode().split("\0"):
        if name and not name.startswith("tests/") and (ROOT / name).is_file():
            (made / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, made / name)
    return made


def cold(root: Path, processes: int) -> None:
    """Everything anew: no outputs, no store, no state."""
    for path in (root / "build", root / "cache/objects", *(root / "cache").glob("state*")):
        path.unlink() if path.is_file() else shutil.rmtree(path, ignore_errors=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COPPELIUS_")}
    more = ["-n", str(processes)] if processes > 1 else []
    command = [sys.executable, "-m", "doit", "run", *more, "targets=sm86"]
    subprocess.run(
        command, cwd=root, check=True, stdout=subprocess.DEVNULL, env=environment | {"PYTHONPATH": str(root)}
    )


def main() -> int:
    """1 where the goal is missed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    asked = parser.parse_args()
    missed = False
    for processes in asked.processes:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            root = checkout(folder)
            works = {"doit": lambda root=root, n=processes: cold(root, n), **compilers(folder, processes)}
            costs: dict[str, list[Cost]] = {name: [] for name in works}
            for _ in range(asked.repeats):
                for name, work in works.items():
                    costs[name].append(measured(work))
        best = {name: Cost(min(c.processor for c in cs), min(c.clock for c in cs)) for name, cs in costs.items()}
        print(f"\n{processes} processes             processor s  clock s   doit over it")
        for name, cost in best.items():
            ratios = [ours / theirs for ours, theirs in zip(best["doit"], cost, strict=True)]
            print(f"  {name:<22}{cost.processor:9.2f}{cost.clock:9.2f}   {ratios[0]:5.2f} {ratios[1]:5.2f}")
        missed |= best["doit"].processor > GOAL * best["nvcc -O3"].processor
    print(f"\ngoal: at most {GOAL} of nvcc's processor time: {'not met' if missed else 'met'}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
