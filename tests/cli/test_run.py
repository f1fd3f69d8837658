"""`coppelius run`: arrays in and out, scalars, findings by exit status, one line an error."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from coppelius.cli.commands import run

CUDA = Path(__file__).resolve().parents[1] / "data" / "cuda"
MODULES, FAULTY = CUDA / "modules" / "addresses.cubin", CUDA / "faulty"
N = 100


class Outcome(NamedTuple):
    status: int
    out: str
    err: str


@pytest.fixture
def outcome(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    def call(*arguments: object) -> Outcome:
        status = run([str(a) for a in ("run", *arguments)])
        return Outcome(status, *capsys.readouterr())

    return call


@pytest.fixture
def arrays(tmp_path: Path) -> Path:
    """out.npy of zeros, x.npy and y.npy of numbers, which.npy of 0, 1, 2."""
    i = np.arange(N, dtype=np.int32)
    for name, array in {"out": i * 0, "x": i * 7 - 300, "y": 50 - i, "which": i % 3}.items():
        np.save(tmp_path / f"{name}.npy", array)
    return tmp_path


def _table(arrays: Path, *more: object) -> list[object]:
    names = ("out", "which", "x", "y")
    given = [word for name in names for word in ("--param", arrays / f"{name}.npy")]
    return [MODULES, "--kernel", "function_table", "--grid", 1, "--block", 128, *given, "--param", f"s32:{N}", *more]


def _expected() -> np.ndarray:
    i = np.arange(N, dtype=np.int32)
    x, y, which = i * 7 - 300, 50 - i, i % 3
    return np.choose(which, [x + y, x - y, x * y ^ y]) + np.choose(which, [x * y ^ x, x + y, y - x])


@pytest.mark.parametrize("mode", ["fast", "strict"])
def test_arrays_are_written_back(outcome: Callable[..., Outcome], arrays: Path, mode: str) -> None:
    got = outcome(*_table(arrays, "--mode", mode))
    assert (got.status, got.err) == (0, "")
    assert got.out.startswith("function_table: 1 blocks of 128 threads, ")
    assert f"({mode}, MMA exact), 0 findings" in got.out
    assert f"wrote {arrays / 'out.npy'}" in got.out
    np.testing.assert_array_equal(np.load(arrays / "out.npy"), _expected())


def test_arrays_are_written_elsewhere(outcome: Callable[..., Outcome], arrays: Path, tmp_path: Path) -> None:
    got = outcome(*_table(arrays, "--out", tmp_path / "results", "--json"))
    data = json.loads(got.out)
    assert (got.status, data["kernel"], data["mode"], data["findings"]) == (0, "function_table", "fast", [])
    assert str(tmp_path / "results" / "out.npy") in data["wrote"]
    assert not np.load(arrays / "out.npy").any()
    np.testing.assert_array_equal(np.load(tmp_path / "results" / "out.npy"), _expected())


def test_fresh_arrays_and_dynamic_shared_memory(outcome: Callable[..., Outcome], arrays: Path, tmp_path: Path) -> None:
    got = outcome(
        MODULES, "--kernel", "shared_static_and_dynamic", "--block", 64, "--shared", 256, "--out", tmp_path / "r",
        "--param", "zeros:s32[64]", "--param", arrays / "x.npy", "--param", "s32:64",
    )  # fmt: skip
    assert got.status == 0
    expected = np.arange(63, -1, -1) * 7 - 300 + 100 + np.arange(64) % 32
    np.testing.assert_array_equal(np.load(tmp_path / "r" / "0.npy"), expected)


@pytest.mark.parametrize(
    ("source", "kernel", "given", "finding"),
    [
        ("memory", "past_the_end", ("zeros:f32[128]", "zeros:f32[100]", "u32:100"), "memcheck: address "),
        ("memory", "sums_what_it_was_given", ("zeros:f32[128]", "undefined:f32[128]"), "initcheck: block (0, 0, 0)"),
        ("threads", "reverse_without_barrier", ("zeros:s32[128]", "zeros:s32[128]"), "racecheck: address 0x1fc"),
        ("threads", "all_write_one", ("zeros:s32[128]",), "racecheck: address 0x0"),
        ("threads", "some_leave_first", ("zeros:s32[128]", "s32:64"), "synccheck: "),
        ("threads", "never_ends", ("zeros:s32[2]",), "endless: "),
        ("threads", "each_waits_for_the_other", ("zeros:s32[128]",), "deadlock: "),
    ],
)
def test_findings(
    outcome: Callable[..., Outcome], source: str, kernel: str, given: tuple[str, ...], finding: str
) -> None:
    block = 64 if kernel.startswith("each") else 128
    request = [FAULTY / f"{source}.cubin", "--kernel", kernel, "--block", block, "--steps", 3000]
    got = outcome(*request, *(word for text in given for word in ("--param", text)))
    assert got.status == 1
    assert got.err.startswith(f"{kernel}+0x0")
    assert finding in got.err
    assert got.err.count("\n") == 1
    data = json.loads(outcome(*request, "--json", *(w for text in given for w in ("--param", text))).out)
    assert data["findings"][0]["rule"] == finding.partition(":")[0]


def test_sanitizers_by_name_and_all_findings(outcome: Callable[..., Outcome]) -> None:
    request = [FAULTY / "threads.cubin", "--kernel", "all_write_one", "--block", 128, "--param", "zeros:s32[128]"]
    assert outcome(*request, "--check", "none").status == 0
    assert outcome(*request, "--check", "initcheck").status == 0
    got = outcome(*request, "--check", "racecheck", "--collect")
    assert (got.status, "1 findings" in got.out, "racecheck" in got.err) == (1, True, True)


def test_time_limit(outcome: Callable[..., Outcome]) -> None:
    request = [FAULTY / "threads.cubin", "--kernel", "never_ends", "--seconds", 0.05, "--param", "zeros:s32[2]"]
    got = outcome(*request)
    assert (got.status, "no end after 0.05 seconds and " in got.err) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((MODULES,), "say which --kernel; the file holds "),
        ((MODULES, "--kernel", "virtual_call"), "no kernel 'virtual_call'; nearest: virtual_calls"),
        ((MODULES, "--kernel", "virtual_calls", "--grid", "0"), "'0': write one to three positive numbers"),
        ((MODULES, "--kernel", "virtual_calls", "--param", "u32:x"), "--param u32:x: x is no u32"),
        ((MODULES, "--kernel", "virtual_calls", "--param", "u8:256"), "--param u8:256: 256 is no u8"),
        ((MODULES, "--kernel", "virtual_calls", "--param", "int:1"), "--param int:1: no type int; known: u8,"),
        ((MODULES, "--kernel", "virtual_calls", "--param", "5"), "--param 5: write FILE.npy, zeros:f32[300]"),
        ((MODULES, "--kernel", "virtual_calls", "--param", "none.npy"), "none.npy: No such file or directory"),
        ((MODULES, "--kernel", "virtual_calls", "--param", "u32:1"), "virtual_calls: 1 values for 3 parameters"),
        (
            (FAULTY / "threads.cubin", "--kernel", "all_write_one", "--block", "2048", "--param", "u64:0"),
            "at most 1024",
        ),
        (
            (
                FAULTY / "threads.cubin",
                "--kernel",
                "some_leave_first",
                "--param",
                "zeros:u32[256]",
                "--param",
                "zeros:u32[99]",
            ),
            "parameter 1 has 4 bytes; an array's address has 8",
        ),
        ((Path(__file__), "--kernel", "k"), "test_run.py: holds no cubin for sm_86"),
        ((CUDA / "relocatable" / "linkage.cubin", "--param", "zeros:s32[32]"), "link it first"),
    ],
)
def test_requests_that_make_no_launch(outcome: Callable[..., Outcome], arguments: tuple[object, ...], why: str) -> None:
    got = outcome(*arguments)
    assert got.status == 2, got
    assert why in got.err
    assert got.err.count("\n") == 1
    assert got.out == ""


def test_progress_on_a_terminal(outcome: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch) -> None:
    from coppelius.cli import run as command

    monkeypatch.setattr(command, "_AFTER", -1.0)
    monkeypatch.setattr(command, "_EVERY", 0.0)
    monkeypatch.setattr(command, "is_plain", lambda: False)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    request = [FAULTY / "threads.cubin", "--kernel", "never_ends", "--steps", 3000, "--param", "zeros:s32[2]"]
    got = outcome(*request)
    assert "\r0 of 1 blocks, " in got.err
    assert " steps of the next" in got.err
    assert outcome(*request, "--json").err == ""
