"""The build against ninja on the same graph, in one run: nothing new, one edit, cold, restored, more images.

    python tests/bench/bench_build.py [--large]      (--large: 480 and 4,800 images as well; minutes)

The graph is that of a checkout of 48 images with kernels of three words (tests/tasks/miniature.py); ninja gets
the same steps and edges, its commands being a shell's cat, grep and cmp.  A time is the best of REPEATS
processes, in ms of processor time (its commands' too), which other work on the machine disturbs less than the
clock; ratios are of one run.  Nothing here fails: what the goals ask for is printed
beside what was measured.
"""

import importlib.util
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
REPEATS = 7
EDITS = {
    "comment": ("def ", "# a comment\ndef "),
    "same size": ('"w24w"', '"x24x"'),
    "grown": ("* count", "* (count + 32)"),
}
NINJA_EMIT = "grep -v '^#' $in > $out.t; cmp -s $out.t $out || cp $out.t $out"
NINJA_STEP = "cat $in > $out.t; cmp -s $out.t $out || cp $out.t $out"


def miniature(root: Path, images: int) -> Any:
    """A checkout of this many images, each of a kernel module of its own."""
    spec = importlib.util.spec_from_file_location("miniature_checkout", ROOT / "tests/tasks/miniature.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["miniature_checkout"] = module
    spec.loader.exec_module(module)
    made = module.Miniature(root)
    catalogue = root / "coppelius/catalog.py"
    head = catalogue.read_text().partition("IMAGES = (")[0]
    row = 'Image(f"image-{n}", f"coppelius.kernels.k{n}:k", {"count": 9 + n % 40})'
    catalogue.write_text(f"{head}IMAGES = tuple({row} for n in range({images}))\n")
    for n in range(images):
        (root / f"coppelius/kernels/k{n}.py").write_text(f'def k(count):\n    return ["w{n}w"] * count\n')
    return made


def ninja_file(images: int) -> str:
    """The same steps and edges; `restat` is ninja's early cutoff."""
    lines = [f"rule emit\n  command = {NINJA_EMIT}\n  restat = 1", f"rule step\n  command = {NINJA_STEP}\n  restat = 1"]
    ends = []
    for n in range(images):
        lines.append(f"build out/{n}.emit: emit coppelius/kernels/k{n}.py")
        for before, after in (("emit", "halve"), ("halve", "guard"), ("guard", "encode"), ("encode", "check")):
            lines.append(f"build out/{n}.{after}: step out/{n}.{before}")
        previous = f" out/{n - 1}.place" if n else ""
        lines.append(f"build out/{n}.place: step out/{n}.encode{previous}")
        ends += [f"out/{n}.check", f"out/{n}.place"]
    # thousands of names are too many for a command line
    arena = "rule arena\n  command = xargs cat < $out.rsp > $out\n  rspfile = $out.rsp\n  rspfile_content = $in"
    return "\n".join([*lines, arena, f"build out/arena: arena {' '.join(ends)}", "build out/cubin: step out/arena", ""])


def run(command: list[str], folder: Path) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, env=environment(folder))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3


def environment(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("COPPELIUS_")}
    return {**kept, "PYTHONPATH": str(folder)}


def best(command: list[str], folder: Path, before: Callable[[], None] | None = None, repeats: int = REPEATS) -> float:
    times = []
    for _ in range(repeats):
        if before is not None:
            before()
        times.append(run(command, folder))
    return min(times)


class Bench:
    def __init__(self, folder: Path, images: int) -> None:
        self.images, self.root = images, folder / f"checkout-{images}"
        miniature(self.root, images)
        self.kernel = self.root / "coppelius/kernels/k24.py"
        self.original = self.kernel.read_text()
        (self.root / "entry.py").write_text("import sys\nfrom coppelius.cli.main import main\nsys.exit(main())\n")
        (self.root / "build.ninja").write_text(ninja_file(images))
        self.doit = [sys.executable, "-m", "doit"]
        self.front = [sys.executable, str(self.root / "entry.py"), "build"]
        found = shutil.which("ninja")
        self.ninja = [found] if found else None

    def figures(self, repeats: int = REPEATS) -> dict[str, float]:
        found = {"cold": run(self.doit, self.root)}
        time.sleep(0.1)
        run(self.doit, self.root)
        found["no-op doit"] = best(self.doit, self.root, repeats=repeats)
        found["no-op coppelius build"] = best(self.front, self.root, repeats=repeats)
        if repeats == REPEATS:
            for name, change in EDITS.items():
                found[f"edit, {name}"] = self.edited(self.doit, change)
                self.kernel.write_text(self.original)
                run(self.doit, self.root)
                found[f"edit undone, {name}"] = self.undone(self.doit, change)
        shutil.rmtree(self.root / "build")
        found["restored"] = run(self.doit, self.root)
        return found

    def edited(self, command: list[str], change: tuple[str, str]) -> float:
        """Each time new text, so that no store has it."""
        number = 0

        def edit() -> None:
            nonlocal number
            number += 1
            text = self.original.replace(*change)
            if change[0] == '"w24w"':
                text = self.original.replace("w24w", f"{number:04d}")
            elif change[0] == "* count":
                text = self.original.replace("* count", f"* (count + {32 * number})")
            else:
                text = "# another comment\n" * number + self.original
            self.kernel.write_text(text)

        return best(command, self.root, edit)

    def undone(self, command: list[str], change: tuple[str, str]) -> float:
        texts = [self.original.replace(*change), self.original]
        for text in texts:
            self.kernel.write_text(text)
            run(command, self.root)

        def flip() -> None:
            texts.reverse()
            self.kernel.write_text(texts[0])

        return best(command, self.root, flip)

    def ninja_figures(self, repeats: int = REPEATS) -> dict[str, float]:
        if self.ninja is None:
            return {}
        self.kernel.write_text(self.original)
        shutil.rmtree(self.root / "out", ignore_errors=True)
        found = {"cold": run(self.ninja, self.root), "no-op doit": best(self.ninja, self.root, repeats=repeats)}
        found["no-op coppelius build"] = found["no-op doit"]
        if repeats == REPEATS:
            for name, change in EDITS.items():
                found[f"edit, {name}"] = self.edited(self.ninja, change)
        return found


def floors(folder: Path) -> dict[str, float]:
    (folder / "empty").mkdir()
    (folder / "empty/dodo.py").touch()
    (folder / "empty/entry.py").write_text("import sys\nsys.exit(0)\n")
    return {
        "script": best([sys.executable, str(folder / "empty/entry.py")], folder / "empty"),
        "doit": best([sys.executable, "-m", "doit"], folder / "empty"),
    }


def goal(what: str, measured: float, bound: float, unit: str = "ms") -> None:
    print(f"  {'met    ' if measured <= bound else 'not met'}  {what}: {measured:.1f} {unit}, goal {bound:.1f}")


def main() -> None:
    large = "--large" in sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        least = floors(folder)
        print(f"a script that exits at once {least['script']:.1f} ms, doit on an empty dodo.py {least['doit']:.1f} ms")
        ours: dict[int, dict[str, float]] = {}
        for images in (48, 480, 4800) if large else (48,):
            bench, repeats = Bench(folder, images), REPEATS if images == 48 else 2
            ours[images], theirs = bench.figures(repeats), bench.ninja_figures(repeats)
            print(f"\n{images} images, {6 * images + 2} steps        ours      ninja   ratio")
            for row, value in ours[images].items():
                other = f"{theirs[row]:9.1f}  {value / theirs[row]:6.1f}" if row in theirs else ""
                print(f"  {row:<26}{value:9.1f}  {other}")
            shutil.rmtree(bench.root)
        small = ours[48]
        print("\ngoals")
        goal("no-op coppelius build over a script that exits", small["no-op coppelius build"] - least["script"], 10)
        goal("no-op doit", small["no-op doit"], 1.6 * least["doit"] + 10)
        goal("one edit", small["edit, same size"], 2 * small["no-op doit"] + (small["cold"] - small["no-op doit"]) / 48)
        if large:
            share = (ours[4800]["no-op doit"] - least["doit"]) / (small["no-op doit"] - least["doit"])
            goal("checking 4,800 images over 48", share, 110, "times")


if __name__ == "__main__":
    main()
