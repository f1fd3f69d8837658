"""`audit`, `disasm` and `asm` on our own compiled kernels: output, exit status, one line an error."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from coppelius.cli.commands import run
from coppelius.container.reader import read_kernels

ROOT = Path(__file__).resolve().parents[1]
REDUCE = ROOT / "data" / "cuda" / "cubins" / "O3" / "reduce.cubin"
NO_OPCODE = bytes.fromhex("ff7f05020400000000191e0c00a20e00")


class Outcome(NamedTuple):
    status: int
    out: str
    err: str


@pytest.fixture
def outcome(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    def call(*arguments: object) -> Outcome:
        status = run([str(a) for a in arguments])
        return Outcome(status, *capsys.readouterr())

    return call


def test_audit_of_a_cubin(outcome: Callable[..., Outcome]) -> None:
    got = outcome("audit", REDUCE, "--json")
    data = json.loads(got.out)
    total = sum(len(kernel.code) // 16 for kernel in read_kernels(REDUCE))
    assert (got.status, data["words"], data["handled"], data["refused"], data["wrong"]) == (0, total, total, 0, 0)
    assert "handled 100.0000 %" in outcome("audit", REDUCE).out


def test_audit_names_what_is_refused(outcome: Callable[..., Outcome], tmp_path: Path) -> None:
    file = tmp_path / "odd.bin"
    file.write_bytes(NO_OPCODE)
    got = outcome("audit", file, "--raw")
    assert got.status == 1
    assert "opcode 0xfff" in got.out


@pytest.mark.parametrize("command", ["audit", "disasm"])
def test_input_that_is_no_machine_code(outcome: Callable[..., Outcome], tmp_path: Path, command: str) -> None:
    file = tmp_path / "text.txt"
    file.write_text("no code")
    for path in (file, tmp_path / "missing.cubin"):
        got = outcome(command, path)
        assert got.status == 2
        assert got.err.count("\n") == 1
        assert path.name in got.err


def test_a_listing_is_the_same_bytes_again(outcome: Callable[..., Outcome], tmp_path: Path) -> None:
    for kernel in read_kernels(REDUCE):
        listing = tmp_path / "kernel.sass"
        got = outcome("disasm", REDUCE, "--kernel", kernel.name)
        assert got.status == 0
        listing.write_text(got.out)
        assert outcome("asm", listing).status == 0
        assert (tmp_path / "kernel.bin").read_bytes() == kernel.code


def test_disasm_of_many_kernels_and_of_one_that_is_not_there(outcome: Callable[..., Outcome]) -> None:
    names = [kernel.name for kernel in read_kernels(REDUCE)]
    got = outcome("disasm", REDUCE)
    assert [line[2:] for line in got.out.splitlines() if line.startswith("# ")] == names
    data = json.loads(outcome("disasm", REDUCE, "--json").out)
    assert [row["name"] for row in data["kernels"]] == names
    got = outcome("disasm", REDUCE, "--kernel", "nothing_like_it")
    assert got.status == 2
    assert "nothing_like_it" in got.err


def test_asm_refuses_by_line(outcome: Callable[..., Outcome], tmp_path: Path) -> None:
    listing = tmp_path / "bad.sass"
    listing.write_text(".target sm86\n[B------:R-:W-:-:S01] FADDD R0, R1, R2\n")
    got = outcome("asm", listing)
    assert (got.status, got.err.count("\n")) == (1, 1)
    assert "line 2" in got.err
    assert outcome("asm", listing, "-o", listing).status == 2
    assert listing.read_text().startswith(".target")


def test_audit_counts_a_cubin_without_kernels_as_no_words(outcome: Callable[..., Outcome]) -> None:
    data_only = ROOT / "data" / "cuda" / "data" / "numbers.cubin"
    got = outcome("audit", data_only, REDUCE, "--json")
    assert got.status == 0
    alone = json.loads(outcome("audit", REDUCE, "--json").out)
    both = json.loads(got.out)
    assert both["words"] == alone["words"]
    assert both["files"][0]["kernels"] == 0
