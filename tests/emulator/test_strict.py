"""Strict mode: the vendor's schedules pass; each way to break one is found, named, and computes what the card might."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from coppelius.emulator.faults import Finding
from coppelius.emulator.launch import launch
from coppelius.emulator.memory import Memory
from coppelius.emulator.parameters import pack_naturally
from coppelius.program.listing import parse_listing
from coppelius.program.program import Program

N = 64


def _run(lines: list[str], *values: Any, **options: Any) -> list[Finding]:
    """Launches one block of 64 threads strictly; the findings."""
    memory = Memory()
    code = parse_listing("\n".join([".target sm86", *lines])).encode()
    report = launch(
        code,
        grid=(1, 1, 1),
        block=(N, 1, 1),
        parameters=pack_naturally(values, memory),
        memory=memory,
        mode="strict",
        collect=True,
        **options,
    )
    return report.findings


# out[t] = x[t] + 1 and its parts, well timed
GOOD = [
    "[B------:R-:W0:-:S01] S2R R0, SR_TID.X",
    "[B------:R-:W-:-:S05] MOV R4, 0x4",
    "[B0-----:R-:W-:-:S04] IMAD.WIDE.U32 R2, R0, R4, c[0x0][0x160]",
    "[B------:R-:W-:-:S05] IMAD.WIDE.U32 R6, R0, R4, c[0x0][0x168]",
    "[B------:R0:W1:-:S02] LDG.E R5, [R6]",
    "[B-1----:R-:W-:-:S05] IADD3 R5, R5, 0x1, RZ",
    "[B0-----:R1:W-:-:S02] STG.E [R2], R5",
    "[B-1----:R-:W-:-:S01] MOV R5, RZ",
    "[B------:R-:W-:-:S05] EXIT",
]


def _changed(place: int, old: str, new: str) -> list[str]:
    assert old in GOOD[place]
    return [line.replace(old, new) if i == place else line for i, line in enumerate(GOOD)]


def _plus_one(lines: list[str], **options: Any) -> tuple[np.ndarray, list[str]]:
    x, out = np.arange(N, dtype=np.uint32) * 3, np.zeros(N, np.uint32)
    found = _run(lines, out, x, **options)
    return out, [f"{f.rule}: {f.instruction}: {f.detail}" for f in found]


def test_a_sound_schedule_passes() -> None:
    out, found = _plus_one(GOOD)
    assert found == []
    np.testing.assert_array_equal(out, np.arange(N) * 3 + 1)


def test_fixed_latency_read_too_early() -> None:
    out, found = _plus_one(_changed(5, "S05", "S04"))
    assert found == ["stale read: STG.E [R2], R5: R5 of 0x0050 IADD3 R5, R5, 0x1, RZ: 4 cycles after it, of 5 needed"]
    np.testing.assert_array_equal(out, np.arange(N) * 3)  # what LDG had put there


# out[t] = x[t] + x[t], the first operand kept for the second sum, which then is of another value
REUSED = [
    *GOOD[:5],
    "[B-1----:R-:W-:-:S02] FADD R8, R5.reuse, R5",
    "[B------:R-:W-:-:S05] MOV R5, RZ",
    "[B------:R-:W-:-:S05] FADD R8, R5, R8",
    "[B0-----:R1:W-:-:S02] STG.E [R2], R8",
    "[B------:R-:W-:-:S05] EXIT",
]


@pytest.mark.parametrize(
    ("place", "line", "kept"),
    [
        (6, "[B------:R-:W-:-:S05] MOV R5, RZ", True),
        (6, "[B------:R-:W-:Y:S05] MOV R5, RZ", False),  # another warp is let in
        (6, "[B-----5:R-:W-:-:S05] MOV R5, RZ", False),  # waits before it writes
        (5, "[B-1----:R-:W-:-:S02] FADD R8, R5, R5", False),
        (7, "[B------:R-:W-:-:S05] FADD R8, R8, R5", False),  # another slot
        (7, "[B-----5:R-:W-:-:S05] FADD R8, R5, R8", False),
        (6, "[B------:R-:W-:-:S05] FADD R5, R7, RZ", False),  # reads another of the bank through the slot
        (6, "[B------:R-:W-:-:S05] FADD R5, R6, RZ", True),  # of the other bank
        (6, "[B------:R-:W-:-:S05] @!PT MOV R5, RZ", False),
    ],
)
def test_operand_that_was_kept_and_overwritten(place: int, line: str, kept: bool) -> None:
    lines = [line if i == place else text for i, text in enumerate(REUSED)]
    x, out = np.arange(N, dtype=np.float32) + 1, np.zeros(N, np.float32)
    found = _run(lines, out, x)
    assert [f.rule for f in found] == ["stale reuse"] * kept
    if kept:
        assert found[0].detail == "R5 as 0x0050 FADD R8, R5.reuse, R5 read it, and written since"
        np.testing.assert_array_equal(out, 3 * x)


def test_result_that_nobody_waited_for() -> None:
    out, found = _plus_one(_changed(5, "B-1----", "B------"))
    assert found[0] == (
        "stale read: IADD3 R5, R5, 0x1, RZ: R5 of 0x0040 LDG.E R5, [R6]: 2 cycles after it, "
        "its scoreboard not waited on"
    )
    assert (out == out[0]).all()


def test_wait_one_cycle_after_the_set_is_no_wait() -> None:
    _, found = _plus_one(_changed(4, "S02", "S01"))
    assert found[0].startswith("stale read: IADD3 R5, R5, 0x1, RZ: R5 of 0x0040 LDG.E R5, [R6]: 1 cycles after it")


def test_wait_on_another_scoreboard_is_no_wait() -> None:
    _, found = _plus_one(_changed(5, "B-1----", "B--2---"))
    assert "stale read" in found[0]


def test_operand_overwritten_before_it_is_read() -> None:
    out, found = _plus_one(_changed(7, "B-1----", "B------"))
    assert found == [
        "overwritten before read: MOV R5, RZ: R5 of 0x0060 STG.E [R2], R5: 2 cycles after it, "
        "its scoreboard not waited on"
    ]
    np.testing.assert_array_equal(out, 0)


def test_late_result_overwrites_a_newer_one() -> None:
    lines = [*GOOD[:5], "[B------:R-:W-:-:S05] MOV R5, 0x7", "[B-1----:R-:W-:-:S01] STG.E [R2], R5", GOOD[8]]
    out, found = _plus_one(lines)
    assert [f.split(":")[0] for f in found] == ["early overwrite"]
    np.testing.assert_array_equal(out, np.arange(N) * 3)


@pytest.mark.parametrize("cover", ["own write barrier", "later load waited on", "barrier of the block"])
def test_covers_of_a_late_read(cover: str) -> None:
    """R6:R7 are addresses of a load; each of these makes it safe to overwrite them."""
    middle = {
        "own write barrier": ["[B-1----:R-:W-:-:S01] MOV R6, RZ"],
        "later load waited on": ["[B------:R2:W3:-:S02] LDG.E R9, [R2]", "[B--2---:R-:W-:-:S01] MOV R6, RZ"],
        "barrier of the block": ["[B------:R-:W-:-:S06] BAR.SYNC 0x0", "[B------:R-:W-:-:S01] MOV R6, RZ"],
    }[cover]
    load = "[B------:R-:W1:-:S02] LDG.E R5, [R6]"
    _, found = _plus_one([*GOOD[:4], load, *middle, GOOD[8]])
    assert found == []
    _, found = _plus_one([*GOOD[:4], load, "[B------:R-:W-:-:S01] MOV R6, RZ", GOOD[8]])
    # read again after that, the address is another one
    assert [f.split(":")[0] for f in found] == ["overwritten before read", "memcheck"]


def test_predicates_need_longer_as_a_guard() -> None:
    def lines(stall: int, use: str) -> list[str]:
        return [
            "[B------:R-:W-:-:S06] MOV R1, 0x1",
            f"[B------:R-:W-:Y:S{stall:02d}] ISETP.EQ.AND P0, PT, R1, 0x1, PT",
            f"[B------:R-:W-:-:S01] {use}",
            "[B------:R-:W-:-:S05] EXIT",
        ]

    assert _run(lines(13, "@P0 MOV R2, R1")) == []
    assert "of 13 needed" in _run(lines(12, "@P0 MOV R2, R1"))[0].detail
    assert _run(lines(4, "SEL R2, R1, RZ, P0")) == []
    assert "of 4 needed" in _run(lines(3, "SEL R2, R1, RZ, P0"))[0].detail


def test_copies_land_when_they_are_waited_for() -> None:
    def lines(wait: str) -> list[str]:
        return [
            *GOOD[:4],
            "[B------:R-:W-:-:S05] SHF.L.U32 R8, R0, 0x2, RZ",
            "[B------:R0:W-:-:S02] LDGSTS.E [R8], [R6.64] {ur=63}",
            "[B------:R-:W1:-:S04] LDGDEPBAR",
            f"[B------:R-:W-:Y:S04] {wait}",
            "[B------:R-:W-:-:S06] BAR.SYNC 0x0",
            "[B------:R-:W2:-:S02] LDS R5, [R8]",
            "[B--2---:R-:W-:-:S01] STG.E [R2], R5",
            GOOD[8],
        ]

    out, found = _plus_one(lines("DEPBAR.LE SB1, 0x0"), shared_bytes=256)
    assert found == []
    np.testing.assert_array_equal(out, np.arange(N) * 3)
    out, _ = _plus_one(lines("NOP"), shared_bytes=256)
    np.testing.assert_array_equal(out, 0)


def test_divergent_warps_keep_their_own_time() -> None:
    """One warp takes a longer way to the same use; only the other is too early."""
    lines = [
        "[B------:R-:W0:-:S02] S2R R0, SR_TID.X",
        "[B0-----:R-:W-:Y:S13] ISETP.GE.AND P0, PT, R0, 0x20, PT",
        "[B------:R-:W-:-:S01] IADD3 R1, R0, 0x5, RZ",
        "[B------:R-:W-:-:S01] @P0 BRA 0x50",
        "[B------:R-:W-:-:S05] NOP",
        "[B------:R-:W-:-:S01] IADD3 R2, R1, 0x1, RZ",
        "[B------:R-:W-:-:S05] EXIT",
    ]
    found = _run(lines)
    assert [(f.rule, f.lanes, f.thread) for f in found] == [("stale read", 32, (32, 0, 0))]


def test_time_is_kept_between_batches() -> None:
    assert _run(GOOD, np.zeros(N, np.uint32), np.zeros(N, np.uint32), batch_threads=64) == []


def _mutants(code: bytes) -> Iterator[tuple[str, bytes]]:
    """The program with one stall cut to a cycle, or one wait left out, for each there is."""
    instructions = list(Program.decode(code))
    for i, instruction in enumerate(instructions):
        control = instruction.control
        changed = [("wait", replace(control, wait=control.wait & ~(1 << b))) for b in range(6) if control.wait >> b & 1]
        if control.stall > 1:
            changed.append(("stall", replace(control, stall=1, keep=True)))
        for kind, mutant in changed:
            program = [*instructions[:i], instruction.with_control(mutant), *instructions[i + 1 :]]
            yield f"{kind} of {i * 16:#x}", Program.of(program).encode()


def test_no_broken_schedule_computes_wrong_values_unseen(vendor_module: Any, random: np.random.Generator) -> None:
    """Every mutant of a kernel with loads, stores, shared memory and a barrier; a good share of them is wrong."""
    module = vendor_module("newer", "reduce")
    kernel = module.kernel("transpose_f32")
    x = random.normal(size=(32, 64)).astype(np.float32)

    def run(code: bytes) -> tuple[bool, int]:
        out, memory = np.zeros((64, 32), np.float32), Memory()
        report = launch(
            code,
            grid=(2, 1, 1),
            block=(32, 8, 1),
            parameters=pack_naturally([out, x, np.int32(32), np.int32(64)], memory),
            memory=memory,
            shared_bytes=kernel.shared,
            constants=module.constants(kernel),
            mode="strict",
            collect=True,
        )
        return bool((out == x.T).all()), len(report.findings)

    assert run(kernel.code) == (True, 0)
    results = {name: run(code) for name, code in _mutants(kernel.code)}
    assert [name for name, (right, findings) in results.items() if not right and not findings] == []
    assert sum(not right for right, _ in results.values()) > 10
