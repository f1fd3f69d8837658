"""Reuse flags: the next reader of the slot and bank wants the same register, still as it was."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Lines = Callable[..., list[str]]

# fmt: off
CASES = {
    "the next instruction reads it through the same slot": (
        "FADD R0, R1, R2\nFADD R3, R1, R4", ["FADD R0, R1.reuse, R2", "FADD R3, R1, R4"]),
    "another slot is another entry": (
        "FFMA R0, R1, R2, R5\nFFMA R3, R2, R1, R7", ["FFMA R0, R1, R2, R5", "FFMA R3, R2, R1, R7"]),
    "its own result replaces it": (
        "FADD R1, R1, R2\nFADD R3, R1, R4", ["FADD R1, R1, R2", "FADD R3, R1, R4"]),
    "a reader of the other bank leaves it": (
        "FMUL R0, R1, R9\nFMUL R4, R2, R8\nFMUL R3, R1, R5",
        ["FMUL R0, R1.reuse, R9", "FMUL R4, R2, R8", "FMUL R3, R1, R5"]),
    "a reader of the same bank drops it": (
        "FMUL R0, R1, R9\nFMUL R4, R3, R8\nFMUL R2, R1, R5", ["FMUL R0, R1, R9", "FMUL R4, R3, R8", "FMUL R2, R1, R5"]),
    "one that lets another warp in loses it": (
        "FADD R0, R1, R2\nFADD R3, R0, R2\nEXIT", ["FADD R0, R1, R2", "FADD R3, R0, R2", "EXIT"]),
    "so does a wait": (
        "MUFU.RCP R9, R8\nFMUL R0, R1, R2\nFMUL R3, R1, R9", ["MUFU.RCP R9, R8", "FMUL R0, R1, R2", "FMUL R3, R1, R9"]),
    "a quad of the tensor core": (
        "HMMA.16816.F32 R0, R8, R12, R0\nHMMA.16816.F32 R4, R8, R14, R4",
        ["HMMA.16816.F32 R0, R8.reuse, R12, R0", "HMMA.16816.F32 R4, R8, R14, R4"]),
    "flags that came with the program are decided anew": (
        "FADD R0, R1.reuse, R2\nFADD R3, R5, R4", ["FADD R0, R1, R2", "FADD R3, R5, R4"]),
}
# fmt: on


@pytest.mark.parametrize("name", CASES)
def test_flags(name: str, scheduled_lines: Lines) -> None:
    text, expected = CASES[name]
    assert [line.split("] ", 1)[1] for line in scheduled_lines(text)] == expected
