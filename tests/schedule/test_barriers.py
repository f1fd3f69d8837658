"""Scoreboards as exact control words: who raises, who waits, what covers a late read, who shares."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from vendor_schedule import hazards

from coppelius.program.cycles import modelled_cycles
from coppelius.program.program import Program
from coppelius.schedule.schedule import schedule

Lines = Callable[..., list[str]]


def barriers(lines: list[str]) -> list[str]:
    return [line[1 : len("[B------:R-:W-")] for line in lines]


# fmt: off
CASES = {
    "a result is waited for where it is read": (
        "MUFU.RCP R0, R1\nFADD R2, R3, R4\nFADD R5, R0, R2\nEXIT",
        ["B------:R-:W0", "B------:R-:W-", "B0-----:R-:W-", "B------:R-:W-"]),
    "own read barrier": (
        "STS [R0], R1\nMOV R1, R2\nEXIT",
        ["B------:R0:W-", "B0-----:R-:W-", "B------:R-:W-"]),
    "own write barrier: once the result is there, the operands were read": (
        "LDS R0, [R1]\nFADD R2, R0, R0\nMOV R1, R2\nEXIT",
        ["B------:R-:W0", "B0-----:R-:W-", "B------:R-:W-", "B------:R-:W-"]),
    "a later one of the queue that was waited for": (
        "STS [R0], R1\nLDS R2, [R3]\nFADD R4, R2, R2\nMOV R1, R4\nEXIT",
        ["B------:R-:W-", "B------:R-:W0", "B0-----:R-:W-", "B------:R-:W-", "B------:R-:W-"]),
    "a barrier of the block in between": (
        "STS [R0], R1\nBAR.SYNC.DEFER_BLOCKING 0x0\nMOV R1, R4\nEXIT",
        ["B------:R-:W-", "B------:R-:W-", "B------:R-:W-", "B------:R-:W-"]),
    "a later load overwrites after the store has read": (
        "STG.E [R0.64], R1\nLDG.E R1, [R2.64]\nEXIT",
        ["B------:R-:W-", "B------:R-:W-", "B------:R-:W-"]),
    "the youngest of a queue covers the older ones": (
        "LDS R0, [R9]\nLDS R1, [R9+0x4]\nFADD R2, R0, R1\nEXIT",
        ["B------:R-:W-", "B------:R-:W0", "B0-----:R-:W-", "B------:R-:W-"]),
    "loads from memory come back in any order": (
        "LDG.E R0, [R8.64]\nLDG.E R1, [R8.64+0x4]\nFADD R2, R0, R1\nEXIT",
        ["B------:R-:W0", "B------:R-:W0", "B0-----:R-:W-", "B------:R-:W-"]),
    "a predicate of variable latency": (
        "FCHK P0, R0, R1\n@P0 EXIT\nEXIT",
        ["B------:R-:W0", "B0-----:R-:W-", "B------:R-:W-"]),
    "a loop brings it back": (
        "top:\nFADD R1, R0, R0\nLDS R0, [R9]\n@P0 BRA top\nEXIT",
        ["B0-----:R-:W-", "B------:R-:W0", "B------:R-:W-", "B------:R-:W-"]),
    "groups of copies raise what the counted wait names, and nobody else does": (
        "LDGSTS.E.128 [R0], [R2.64]\nLDGDEPBAR\nMUFU.RCP R4, R5\nDEPBAR.LE SB0, 0x1\nFADD R6, R4, R4\nEXIT",
        ["B------:R-:W-", "B------:R-:W0", "B------:R-:W1", "B------:R-:W-", "B-1----:R-:W-", "B------:R-:W-"]),
}
# fmt: on


@pytest.mark.parametrize("name", CASES)
def test_scoreboards(name: str, scheduled_lines: Lines) -> None:
    text, expected = CASES[name]
    assert barriers(scheduled_lines(text)) == expected


def test_what_the_previous_round_left_covers_nothing_of_this_one(program_of: Callable[[str], Program]) -> None:
    # the store's read barrier of the last round must not stand for the load of this one
    program = program_of("""
        top:
        LDS R5, [R9]
        MOV R2, R4
        IADD3 R9, R9, 0x200, RZ
        STG.E [R2.64], R5
        @P1 BRA top
        EXIT""")
    done, _ = schedule(program, [{}] * len(program))
    assert hazards(done) == []
    assert done[2]["wait"] & (1 << done[0]["read_barrier"] | 1 << done[0]["write_barrier"])


def test_a_quick_result_does_not_share_with_a_slow_one(program_of: Callable[[str], Program]) -> None:
    loads = [f"LDG.E R{n}, [R20.64+{4 * n + 4:#x}]" for n in range(6)]
    uses = [f"FADD R{30 + n}, R{n}, R40" for n in range(6)]
    quick = ["MUFU.RCP R41, R42", "FADD R43, R41, R41"]
    program = program_of("\n".join([*loads, *quick, *uses, "EXIT"]))
    done, _ = schedule(program, [{}] * len(program))
    # loads share instead: the quick result is read long before any of them is back
    assert not done[7]["wait"] & sum({1 << done[n]["write_barrier"] for n in range(6)})
    assert modelled_cycles(done, list(range(8)), memory=400) < 60


def serial(program: Program) -> Program:
    """The twin: every distance fifteen or a drain, every scoreboard waited for by the next instruction."""
    rows = []
    before = 0
    for row in program:
        signals = row.encoding.latency != "fixed" and row.encoding.pipe != "control"
        fields = {"stall": 0, "keep": 0, "wait": before}
        fields |= {"write_barrier": 0 if row.encoding.latency == "variable" else 7, "read_barrier": 1 if signals else 7}
        rows.append(row.with_fields(fields))
        before = 3 if signals else 0
    # whoever a branch comes from has been waited for by then
    return Program.of([row.with_fields({"wait": 3}) for row in rows], program.table)


@pytest.mark.parametrize("seed", range(40))
def test_the_serial_twin_is_right_and_never_quicker(seed: int, random_program: Callable[..., Program]) -> None:
    program = random_program(1000 + seed)
    twin = serial(program)
    assert hazards(twin) == []
    done, _ = schedule(program, [{}] * len(program))
    for memory in (32, 400):
        assert modelled_cycles(done, memory=memory) <= modelled_cycles(twin, memory=memory)


def test_a_counted_wait_that_the_kernel_wrote_is_enough(program_of: Callable[[str], Program]) -> None:
    # results of this queue come back in order: at most one left means that the first two are there
    program = program_of("""
        LDS R0, [R9]
        LDS R1, [R9+0x4]
        LDS R2, [R9+0x8]
        DEPBAR.LE SB3, 0x1
        FADD R4, R0, R1
        FADD R5, R2, R2
        MUFU.RCP R6, R7
        FADD R8, R6, R6
        EXIT""")
    pins = [{"write_barrier": 3}] * 3 + [{}] * 6
    done, _ = schedule(program, pins)
    assert hazards(done) == []
    assert [row["wait"] for row in done][4:6] == [0, 1 << 3]
    assert done[6]["write_barrier"] != 3


def test_every_group_scoreboard_is_reserved(program_of: Callable[[str], Program]) -> None:
    loads = "\n".join(f"MUFU.RCP R{n}, R40" for n in range(8))
    program = program_of(
        f"LDGDEPBAR\nLDGDEPBAR\n{loads}\nDEPBAR.LE SB1, 0x1\nDEPBAR.LE SB4, 0x1\nFADD R9, R0, R7\nEXIT"
    )
    done, _ = schedule(program, [{"write_barrier": 1}, {"write_barrier": 4}, *[{}] * (len(program) - 2)])
    assert not {row["write_barrier"] for row in list(done)[2:]} & {1, 4}


def test_opposite_guards_do_not_wait_for_each_other(scheduled_lines: Lines) -> None:
    text = "@P0 LDG.E R0, [R8.64]\n@!P0 LDG.E R0, [R10.64]\nFADD R1, R0, R0\nEXIT"
    assert barriers(scheduled_lines(text)) == ["B------:R-:W0", "B------:R-:W0", "B0-----:R-:W-", "B------:R-:W-"]
    # in a loop, too: the first one has waited for its own last round
    looped = f"top:\n{text[:-4]}@P1 BRA top\nEXIT"
    assert barriers(scheduled_lines(looped))[:2] == ["B------:R-:W0", "B------:R-:W0"]
    # but results of one queue do not wait for themselves
    carried = "top:\n@P0 LDS R0, [R8]\n@!P0 FADD R0, R9, R9\n@P1 BRA top\nEXIT"
    assert barriers(scheduled_lines(carried))[1].startswith("B0")
