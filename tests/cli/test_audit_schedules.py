"""`audit` judges schedules as well, unless it is told not to."""

import json
from pathlib import Path

import pytest

from coppelius.cli.commands import run
from coppelius.container.reader import read_kernels
from coppelius.program.program import Program

REDUCE = Path(__file__).resolve().parents[1] / "data" / "cuda" / "cubins" / "O3" / "reduce.cubin"


def audit(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    status = run(["audit", *[str(a) for a in arguments]])
    return status, capsys.readouterr().out


def broken(folder: Path) -> Path:
    """The words of one kernel with every wait cleared."""
    program = Program.decode(read_kernels(REDUCE)[0].code)
    file = folder / "broken.bin"
    file.write_bytes(Program.of([row.with_fields({"wait": 0}) for row in program]).encode())
    return file


def test_a_compilers_schedules_have_no_hazards(capsys: pytest.CaptureFixture[str]) -> None:
    status, out = audit(capsys, REDUCE)
    kernels = len(read_kernels(REDUCE))
    assert (status, f"schedules: 0 hazards in {kernels} kernels, 0 unchecked" in out) == (0, True)


def test_hazards_are_counted_and_the_first_ones_shown(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = broken(tmp_path)
    status, out = audit(capsys, "--raw", file)
    assert status == 1
    assert "handled 100.0000 %" in out
    assert "read after write" in out
    status, out = audit(capsys, "--raw", "--json", file)
    found = json.loads(out)["schedules"]
    assert (status, found["checked"], found["unchecked"]) == (1, 1, 0)
    assert found["hazards"] > 3
    assert len(found["first"]) == 3 * min(10, found["hazards"])


def test_schedules_can_be_left_out(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = broken(tmp_path)
    status, out = audit(capsys, "--raw", "--no-schedule", file)
    assert (status, "schedules:" in out) == (0, False)
    assert json.loads(audit(capsys, "--raw", "--no-schedule", "--json", file)[1])["schedules"] is None


def test_a_kernel_with_unknown_words_is_not_checked(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "odd.bin"
    file.write_bytes(bytes.fromhex("ff7f05020400000000191e0c00a20e00"))
    status, out = audit(capsys, "--raw", file)
    assert (status, "0 hazards in 0 kernels, 1 unchecked" in out) == (1, True)
