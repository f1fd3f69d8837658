"""A reader that goes away ends every command quietly; a full disk is named as the output's."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CLOSED = 141
FULL = Path("/dev/full")
COMMANDS = ["--help", "affected coppelius/emit.py", "graph", "build"]


def run(folder, module, arguments, stdout):
    return subprocess.run(
        [sys.executable, "-m", module, *arguments.split()],
        cwd=folder, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False,
        env={**{n: v for n, v in os.environ.items() if not n.startswith("COPPELIUS_")}, "PYTHONPATH": str(folder)},
    )  # fmt: skip


def closed_pipe():
    reading, writing = os.pipe()
    os.close(reading)
    return writing


@pytest.fixture
def main(built):
    (built.root / "coppelius/__main__.py").write_text(
        "import sys\n\nfrom coppelius.cli.main import main\n\nsys.exit(main())\n"
    )
    return built


@pytest.mark.parametrize("command", COMMANDS)
def test_a_closed_pipe_ends_a_command_quietly(main, command):
    made = run(main.root, "coppelius", command, closed_pipe())
    assert (made.returncode, made.stderr) == (CLOSED, "")


@pytest.mark.parametrize("command", ["list --all", "info encode:first", "run", "run -n 2", "clean --dry-run"])
def test_a_closed_pipe_ends_doit_quietly(main, command):
    made = run(main.root, "doit", command, closed_pipe())
    assert made.returncode in (CLOSED, -13)  # -13: by the signal itself
    assert made.stderr == ""


def test_a_build_whose_reader_went_away_is_taken_up_again(main):
    main.edit("coppelius/kernels/halves.py", "move half", "hazard")  # so that it prints
    for arguments in ("run", "run -n 2"):
        assert run(main.root, "doit", arguments, closed_pipe()).returncode == CLOSED
    main.edit("coppelius/kernels/halves.py", "hazard", "move half")
    assert main.doit().status == 0
    assert main.release_is_whole()


@pytest.mark.skipif(not FULL.exists(), reason="no device that is always full")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk_is_the_outputs(main, command):
    with FULL.open("w") as full:
        made = run(main.root, "coppelius", command, full)
    assert (made.returncode, made.stderr) == (2, "coppelius: standard output: No space left on device\n")


@pytest.mark.parametrize(("module", "command"), [("coppelius", "build"), ("coppelius", "graph"), ("doit", "run -n 2")])
def test_without_standard_output_it_goes_nowhere(main, module, command):
    main.edit("coppelius/kernels/halves.py", "move half", "copy half")
    shell = f'exec "{sys.executable}" -m {module} {command} >&-'
    made = subprocess.run(
        ["sh", "-c", shell], cwd=main.root, stderr=subprocess.PIPE, text=True, check=False,
        env={**{n: v for n, v in os.environ.items() if not n.startswith("COPPELIUS_")}, "PYTHONPATH": str(main.root)},
    )  # fmt: skip
    assert (made.returncode, made.stderr) == (0, "")


@pytest.mark.skipif(not FULL.exists(), reason="no device that is always full")
def test_a_file_that_does_not_fit_is_the_outputs(main):
    made = run(main.root, "coppelius", f"graph -o {FULL}", None)
    assert made.returncode == 2
    assert made.stderr.endswith("output: No space left on device\n")
