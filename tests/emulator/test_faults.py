"""Each way a launch goes wrong is found and named: rule, place, block, thread, address."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from coppelius.emulator.faults import Fault, Finding
from coppelius.emulator.launch import launch
from coppelius.emulator.memory import Memory
from coppelius.emulator.parameters import pack_naturally
from coppelius.isa.refusal import Refusal

Assemble = Callable[..., bytes]
# R2:R3 = out + 4 * the thread's index in the grid
ADDRESS = (
    "S2R R0, SR_TID.X",
    "S2R R1, SR_CTAID.X",
    "IMAD R0, R1, c[0x0][0x0], R0",
    "MOV R4, 0x4",
    "IMAD.WIDE.U32 R2, R0, R4, c[0x0][0x160]",
)


def _launch(code: bytes, *values: Any, grid: int = 2, block: int = 64, **options: Any) -> Any:
    memory = Memory()
    parameters = pack_naturally(values, memory)
    sizes = {"grid": (grid, 1, 1), "block": (block, 1, 1)}
    return launch(code, parameters=parameters, memory=memory, kernel="bad", **sizes, **options)


def _finding(code: bytes, *values: Any, **options: Any) -> Finding:
    with pytest.raises(Fault) as raised:
        _launch(code, *values, **options)
    return raised.value.finding


def test_store_past_the_end(assembled: Assemble) -> None:
    out = np.zeros(100, np.uint32)
    found = _finding(assembled(*ADDRESS, "STG.E [R2], R0", "EXIT"), out)
    assert (found.rule, found.offset, found.block, found.thread) == ("memcheck", 0x50, (1, 0, 0), (36, 0, 0))
    assert found.lanes == 28
    assert "STG.E [R2], R0" in str(found)
    assert "out of bounds: 4 bytes 0 bytes past the end of buffer #0" in found.detail


def test_all_findings_are_collected_and_good_lanes_still_store(assembled: Assemble) -> None:
    out = np.zeros(100, np.uint32)
    report = _launch(assembled(*ADDRESS, "STG.E [R2], R0", "EXIT"), out, collect=True)
    assert [f.rule for f in report.findings] == ["memcheck"]
    np.testing.assert_array_equal(out, np.arange(100))


def test_load_before_the_start(assembled: Assemble) -> None:
    found = _finding(assembled(*ADDRESS, "LDG.E R5, [R2+-0x4]", "EXIT"), np.zeros(128, np.uint32))
    assert (found.thread, found.lanes) == ((0, 0, 0), 1)


def test_load_across_the_end(assembled: Assemble) -> None:
    found = _finding(assembled(*ADDRESS, "LDG.E.64 R6, [R2]", "EXIT"), np.zeros(65, np.uint32), grid=1)
    assert "misaligned: 8 bytes must start at a multiple of 8" in found.detail
    assert found.thread == (1, 0, 0)


@pytest.mark.parametrize(("size", "thread"), [(".64", 1), (".128", 1), ("", None)])
def test_misaligned_by_width(assembled: Assemble, size: str, thread: int | None) -> None:
    code = assembled(*ADDRESS, f"LDG.E{size} R8, [R2]", "EXIT")
    buffer = np.zeros(4096, np.uint32)
    if thread is None:
        assert _launch(code, buffer).findings == []
    else:
        assert _finding(code, buffer).thread == (thread, 0, 0)


def test_store_into_a_read_only_buffer(assembled: Assemble) -> None:
    out = np.zeros(128, np.uint32)
    out.flags.writeable = False
    assert "read-only" in _finding(assembled(*ADDRESS, "STG.E [R2], R0", "EXIT"), out).detail


def test_shared_memory_past_its_end(assembled: Assemble) -> None:
    code = assembled("S2R R0, SR_TID.X", "STS [R0.X4+0x10], R0", "EXIT")
    found = _finding(code, grid=1, shared_bytes=256)
    assert (found.thread, found.address) == ((60, 0, 0), 0x100)
    assert "256 bytes of shared memory" in found.detail


def test_local_memory_past_its_end(assembled: Assemble) -> None:
    code = assembled("MOV R1, c[0x0][0x28]", "STL [R1+-0x80], R1", "LDL R2, [R1+-0x84]", "EXIT")
    assert _finding(code, local_bytes=128).offset == 0x20


def test_parameter_that_was_not_passed(assembled: Assemble) -> None:
    found = _finding(assembled("MOV R1, c[0x0][0x170]", "EXIT"), np.zeros(1, np.uint32))
    assert "c[0x0][0x170] is outside its bank" in found.detail


def test_endless_loop(assembled: Assemble) -> None:
    code = assembled("MOV R1, 0x0", "IADD3 R1, R1, 0x1, RZ", "BRA 0x10", "EXIT")
    found = _finding(code, limit=1000)
    assert (found.rule, found.lanes) == ("endless", 128)
    assert "no end after 1000 steps; 128 threads here; last branches at 0x20" in found.detail


def test_barrier_that_one_warp_never_reaches(assembled: Assemble) -> None:
    code = assembled(
        "S2R R0, SR_TID.X",
        "ISETP.GE.AND P0, PT, R0, 0x20, PT",
        "@P0 BRA 0x50",
        "BAR.SYNC 0x0, 0x80",
        "EXIT",
        "BAR.SYNC 0x1",
        "EXIT",
    )
    found = _finding(code, grid=1, block=96, checks=())
    assert found.rule == "deadlock"
    assert "32 threads at 0x30 BAR.SYNC 0x0, 0x80; 64 threads at 0x50 BAR.SYNC 0x1" in found.detail
    assert "96 threads are alive" in found.detail


def test_lanes_that_never_converge(assembled: Assemble) -> None:
    code = assembled(
        "BSSY B0, 0x60",
        "S2R R0, SR_LANEID",
        "ISETP.GE.AND P0, PT, R0, 0x8, PT",
        "@P0 BRA 0x50",
        "BSYNC B0",
        "BSYNC B1",
        "EXIT",
    )
    # B1 was never set, so that those lanes pass it, leave, and free the others
    assert _launch(code, grid=1, block=32).findings == []
    stuck = assembled("WARPSYNC 0xffffffff", "S2R R0, SR_LANEID", "ISETP.GE.AND P0, PT, R0, 0x8, PT", "@P0 BRA 0x60",
                      "WARPSYNC 0xffffffff", "EXIT", "BAR.SYNC 0x0", "EXIT")  # fmt: skip
    found = _finding(stuck, grid=1, block=32, checks=())
    assert (found.rule, found.lanes) == ("deadlock", 8)


def test_a_trap(assembled: Assemble) -> None:
    code = assembled("S2R R0, SR_TID.X", "ISETP.EQ.AND P0, PT, R0, 0x7, PT", "@P0 BPT.TRAP", "EXIT")
    found = _finding(code, grid=1)
    assert (found.rule, found.thread, found.lanes) == ("trap", (7, 0, 0), 1)


def test_running_off_the_end(assembled: Assemble) -> None:
    with pytest.raises(Refusal, match="execution leaves the program at 0x10"):
        _launch(assembled("NOP"))


def test_a_mnemonic_without_meaning_is_named(assembled: Assemble, monkeypatch: pytest.MonkeyPatch) -> None:
    from coppelius.emulator import engine

    monkeypatch.delitem(engine.BINDERS, "IABS")
    with pytest.raises(Refusal, match=r"bad\+0x0000 IABS R1, R2: the emulator has no meaning for IABS"):
        _launch(assembled("IABS R1, R2", "EXIT"))


@pytest.mark.parametrize(
    ("sizes", "why"),
    [
        ({"grid": (0, 1, 1), "block": (32, 1, 1)}, "three positive numbers"),
        ({"grid": (1, 1, 1), "block": (1025, 1, 1)}, "at most 1024"),
        ({"grid": (1, 1, 1), "block": (32, 1, 1), "mode": "quick"}, "known: fast, strict"),
        ({"grid": (1, 1, 1), "block": (32, 1, 1), "mma": "rough"}, "known: exact, fast"),
        ({"grid": (1, 1, 1), "block": (32, 1, 1), "checks": ["guess"]}, "known: initcheck, racecheck, synccheck"),
        ({"grid": (4, 1, 1), "block": (32, 1, 1), "blocks": [4]}, "each below the grid's 4"),
    ],
)
def test_launches_that_no_card_makes(assembled: Assemble, sizes: dict[str, Any], why: str) -> None:
    with pytest.raises(Refusal, match=why):
        launch(assembled("EXIT"), memory=Memory(), **sizes)


def test_source_lines_are_named(assembled: Assemble) -> None:
    code = assembled("S2R R0, SR_TID.X", "BPT.TRAP", "EXIT")
    found = _finding(code, lines=["k.py:1", "k.py:2", "k.py:3"])
    assert "(k.py:2)" in str(found)


def test_progress_is_told_by_blocks_and_steps(assembled: Assemble) -> None:
    told: list[tuple[int, int, int]] = []
    turns = ("MOV R1, 0x0", "IADD3 R1, R1, 0x1, RZ", "ISETP.GE.AND P0, PT, R1, 0x64, PT", "@!P0 BRA 0x10", "EXIT")
    _launch(assembled(*turns), grid=4, batch_threads=128, progress=lambda *seen: told.append(seen))
    assert [t for t in told if t[2] == 0] == [(2, 4, 0), (4, 4, 0)]
    assert [t[:2] for t in told if t[2]] == [(0, 4), (2, 4)]


def test_a_launch_that_takes_too_long(assembled: Assemble) -> None:
    found = _finding(assembled("BRA 0x0"), seconds=0.01, limit=10**9)
    assert found.rule == "endless"
    assert found.detail.startswith("no end after 0.01 seconds and ")
