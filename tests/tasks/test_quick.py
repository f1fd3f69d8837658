"""A build of nothing new costs little more than doit itself."""

import resource
import subprocess
import sys

import pytest

IMAGES = 48
REPEATS = 9
# the bound: doit on an empty dodo.py, measured beside it
FACTOR, MORE = 1.6, 0.010


def seconds(folder):
    """Processor time of one doit; steadier than the clock where others work too."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "doit"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.slow
def test_a_build_of_nothing_new_is_quick(mini, tmp_path):
    kernels = '("plain:plain", "halves:halves", "shares:shares")'
    rows = f'(Image(f"image-{{n}}", "coppelius.kernels." + {kernels}[n % 3], {{"count": 9 * n + 9}})'
    catalogue = mini.root / "coppelius/catalog.py"
    head = catalogue.read_text().partition("IMAGES = (")[0]
    catalogue.write_text(f"{head}IMAGES = tuple{rows} for n in range({IMAGES}))\n")
    assert "steps: 289 run" in mini.doit().output
    mini.doit()
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty/dodo.py").touch()
    ours, empty = zip(*((seconds(mini.root), seconds(tmp_path / "empty")) for _ in range(REPEATS)), strict=True)
    assert min(ours) <= FACTOR * min(empty) + MORE, f"{min(ours):.3f} s, an empty doit {min(empty):.3f} s"
