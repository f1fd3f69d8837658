"""`coppelius check` as a user meets it: files of every kind, output, exit status."""

import json
from pathlib import Path

import pytest

from coppelius.cli.commands import run
from coppelius.program.encoding import encode_listing

CUBIN = Path(__file__).resolve().parents[1] / "data" / "cuda" / "cubins" / "O3" / "elementwise.cubin"
LISTING = """.target sm86
[B------:R-:W-:-:S02] FADD R4, R1, R2
[B------:R-:W-:-:S02] FADD R5, R4, R2
[B------:R-:W-:Y:S05] EXIT
"""
LINES = [
    "bad: 0x0010 FADD R5, R4, R2 after 0x0000 FADD R4, R1, R2",
    "  read after write: R4 of FADD needs 4 cycles (fma to fma), has 2",
    "  remedy: add 2 to the stalls between them",
    "1 kernels, 3 instructions, 1 hazards, 1 kernels refused",
]


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    path = tmp_path / "bad.sass"
    path.write_text(LISTING)
    return path


def test_a_listing_with_a_hazard(bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", str(bad)]) == 1
    assert capsys.readouterr().out.splitlines() == LINES


def test_raw_words_with_a_hazard(bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raw = bad.with_suffix(".bin")
    raw.write_bytes(encode_listing(LISTING))
    assert run(["check", "--raw", str(raw)]) == 1
    assert capsys.readouterr().out.splitlines() == LINES


def test_a_cubin_without_hazards(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", str(CUBIN), "--kernel", "copy_vector128"]) == 0
    assert capsys.readouterr().out == "1 kernels, 40 instructions, 0 hazards, 0 kernels refused\n"


def test_json(bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "--json", str(bad)]) == 1
    (kernel,) = json.loads(capsys.readouterr().out)["kernels"]
    assert (kernel["kernel"], kernel["accepted"], kernel["hazards"][0]["register"]) == ("bad", False, "R4")


def test_declared_registers(bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "--registers", "7", str(bad)]) == 1
    assert "8 registers are needed; 7 are declared" in capsys.readouterr().out


def test_an_unknown_kernel_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", str(CUBIN), "--kernel", "copy_vector"]) == 2
    assert "copy_vector128" in capsys.readouterr().err


def test_notes_on_demand(bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad.write_text(LISTING.replace("[B------:R-:W-:-:S02] FADD R4", "[B-----5:R-:W-:-:S04] FADD R4"))
    assert run(["check", "--notes", str(bad)]) == 0
    assert "note, idle wait: SB5 is waited for and set by nothing" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "options"),
    [(b"", ()), (b"no code", ()), (b"no code", ("--raw",)), (CUBIN.read_bytes()[:5000], ())],
    ids=["empty", "text", "broken words", "truncated"],
)
def test_a_file_that_is_no_machine_code_is_unusable(
    content: bytes, options: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.cubin"
    path.write_bytes(content)
    assert run(["check", *options, str(path)]) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("\n")) == ("", 1)
    assert shown.err.startswith("coppelius: bad.cubin: ")
