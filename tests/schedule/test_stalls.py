"""Stalls, the bit that keeps issuing, and what compiled code always leaves, as exact control words."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from vendor_schedule import hazards

from coppelius.program.program import Program
from coppelius.schedule.schedule import schedule

Lines = Callable[..., list[str]]


def controls(lines: list[str]) -> list[str]:
    return [line[len("[B------:R-:W-:") : len("[B------:R-:W-:-:S00")] for line in lines]


# fmt: off
CASES = {
    "a chain waits for each result and lets others in": (
        "FADD R0, R1, R2\nFADD R3, R0, R2\nIADD3 R4, R3, R2, RZ\nEXIT", ["Y:S04", "Y:S05", "-:S01", "-:S05"]),
    "a half-rate pipe is left its two cycles": (
        "IADD3 R0, R1, R2, RZ\nIADD3 R3, R1, R2, RZ\nEXIT", ["-:S02", "-:S01", "-:S05"]),
    "other pipes take one each": (
        "IADD3 R0, R1, R2, RZ\nFADD R3, R1, R2\nHADD2 R4, R1, R2\nEXIT", ["-:S01", "-:S01", "-:S01", "-:S05"]),
    "five accesses go at once, then one in four cycles": (
        "\n".join([*(f"LDS R{n}, [R9+{4 * n + 4:#x}]" for n in range(7)), "EXIT"]),
        ["-:S01", "-:S01", "-:S01", "-:S01", "-:S04", "-:S04", "-:S01", "-:S05"]),
    "the quarter-rate unit takes eight": (
        "MUFU.RCP R0, R9\nMUFU.RCP R1, R9\nEXIT", ["-:S08", "-:S01", "-:S05"]),
    "a barrier is six cycles from what is not of fixed latency": (
        "BAR.SYNC.DEFER_BLOCKING 0x0\nIADD3 R0, R1, R2, RZ\nLDS R3, [R9]\nEXIT", ["-:S01", "Y:S05", "-:S01", "-:S05"]),
    "ERRBAR drains, and so does the program's end": (
        "MEMBAR.SC.GPU\nERRBAR\nCCTL.IVALL\nEXIT\nL:\nBRA L\nNOP",
        ["-:S06", "Y:S00", "-:S05", "-:S05", "Y:S00", "Y:S00"]),
    "a counted wait takes four and lets others in": (
        "LDGDEPBAR\nDEPBAR.LE SB0, 0x0\nEXIT", ["-:S01", "Y:S04", "-:S05"]),
}
# fmt: on


@pytest.mark.parametrize("name", CASES)
def test_control_words(name: str, scheduled_lines: Lines) -> None:
    text, expected = CASES[name]
    assert controls(scheduled_lines(text)) == expected


def test_a_young_value_from_two_sides_is_waited_for_on_the_side_that_lacks(scheduled_lines: Lines) -> None:
    text = """
        @P0 BRA far
        FADD R0, R1, R2
        BRA join
        far:
        IADD3 R3, R1, R2, RZ
        IADD3 R4, R1, R2, RZ
        IADD3 R0, R1, R2, RZ
        join:
        FADD R5, R0, R0
        EXIT"""
    # five cycles from IADD3 to FADD; the other side's branch gives its four anyway
    assert controls(scheduled_lines(text)) == [
        "-:S05", "-:S01", "-:S05", "-:S02", "-:S02", "Y:S05", "-:S01", "-:S05",
    ]  # fmt: skip


@pytest.mark.parametrize("seed", range(120))
def test_the_checkers_accept_random_programs(seed: int, random_program: Callable[..., Program]) -> None:
    program = random_program(seed)
    for reorder in (False, True):
        done, origin = schedule(program, [{}] * len(program), reorder=reorder)
        assert hazards(done) == []
        assert sorted(set(origin)) == list(range(len(program)))
