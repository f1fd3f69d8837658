"""The cycle model on programs short enough to count by hand."""

from __future__ import annotations

import pytest

from coppelius.program.cycles import modelled_cycles, resident_warps
from coppelius.program.listing import parse_listing
from coppelius.program.program import Program
from coppelius.program.trace import reachable, walk


def program(text: str) -> Program:
    return parse_listing("\n".join([".target sm86", *(line.strip() for line in text.strip().splitlines()), ""]))


def one_apart(*texts: str) -> str:
    """Instructions with a stall of one and no more."""
    return "\n".join(f"[B------:R-:W-:-:S01] {text}" for text in texts)


SHARED_LOADS = [f"LDS R{n}, [R9+{4 * n + 4:#x}]" for n in range(7)]

# (instructions, cycles from the first issue to the last, both counted)
# fmt: off
COUNTED = {
    "stalls add up": (
        "[B------:R-:W-:-:S03] FADD R0, R1, R2\n[B------:R-:W-:-:S07] FADD R3, R1, R2\n" + one_apart("NOP"), 11),
    "stall 0 drains": ("[B------:R-:W-:Y:S00] NOP\n" + one_apart("NOP"), 46),
    "an operand that is not there yet is waited for": (one_apart("FADD R0, R1, R2", "FADD R3, R0, R2"), 5),
    "a 16-lane pipe takes two cycles": (one_apart("IADD3 R0, R1, R2, RZ", "IADD3 R3, R1, R2, RZ"), 3),
    "two of them make FFMA one a cycle": (
        one_apart("FFMA R0, R1, R2, R3", "FFMA R4, R1, R2, R3", "FFMA R5, R1, R2, R3"), 3),
    "IMAD goes to one of the two": (one_apart("IMAD R0, R1, R2, R3", "IMAD R4, R1, R2, R3"), 3),
    "the slow unit takes eight": (one_apart("MUFU.RCP R0, R1", "MUFU.RCP R2, R1"), 9),
    "five accesses at once": (one_apart(*SHARED_LOADS[:5]), 5),
    "then one in four cycles": (one_apart(*SHARED_LOADS), 13),
    "a shared load": ("[B------:R-:W0:-:S02] LDS R0, [R1]\n[B0-----:R-:W-:-:S01] FADD R2, R0, R0", 25),
    "an operand read": ("[B------:R0:W-:-:S02] STS.128 [R0], R4\n[B0-----:R-:W-:-:S01] MOV R4, R1", 19),
}
# fmt: on


@pytest.mark.parametrize("name", COUNTED)
def test_one_warp(name: str) -> None:
    text, expected = COUNTED[name]
    assert modelled_cycles(program(text)) == expected


@pytest.mark.parametrize(
    ("memory", "size", "expected"), [(32, "", 33), (400, "", 401), (32, ".64", 35), (32, ".128", 39)]
)
def test_a_load_from_memory(memory: int, size: str, expected: int) -> None:
    text = f"[B------:R-:W0:-:S02] LDG.E{size} R4, [R8.64]\n[B0-----:R-:W-:-:S01] FADD R2, R4, R4"
    assert modelled_cycles(program(text), memory=memory) == expected


def test_a_scoreboard_falls_when_all_that_raised_it_are_done() -> None:
    text = """
        [B------:R-:W0:-:S01] LDG.E R4, [R8.64]
        [B------:R-:W0:-:S02] MUFU.RCP R5, R1
        [B0-----:R-:W-:-:S01] FADD R2, R5, R5"""
    assert modelled_cycles(program(text)) == 33
    assert modelled_cycles(program(text), [1, 2]) == 23


def test_counted_groups_of_copies() -> None:
    text = """
        [B------:R-:W-:-:S01] LDGSTS.E.128 [R0], [R2.64]
        [B------:R-:W0:-:S01] LDGDEPBAR
        [B------:R-:W-:-:S15] NOP
        [B------:R-:W-:-:S01] LDGSTS.E.128 [R0+0x400], [R2.64]
        [B------:R-:W0:-:S01] LDGDEPBAR
        [B------:R-:W-:Y:S04] DEPBAR.LE SB0, {count:#x}"""
    text = text.replace("-:S15", "Y:S15")
    # the first copy issues at 0 and takes 39 cycles, the second at 17
    assert modelled_cycles(program(text.replace("{count:#x}", "0x1"))) == 40
    assert modelled_cycles(program(text.replace("{count:#x}", "0x0"))) == 57


def test_warps_share_the_issue_slot_and_the_pipes() -> None:
    waits = program("[B------:R-:W-:Y:S10] FADD R0, R1, R2\n[B------:R-:W-:-:S01] FADD R3, R0, R0")
    assert [modelled_cycles(waits, warps=n) for n in (1, 2, 4)] == [11, 12, 14]
    busy = program("[B------:R-:W-:-:S01] MUFU.RCP R0, R1\n[B------:R-:W-:-:S01] MUFU.RCP R2, R1")
    assert [modelled_cycles(busy, warps=n) for n in (1, 2, 4)] == [9, 25, 57]


# facts 3.9: registers -> warps a sub-core
# fmt: off
WARPS = {16: 12, 40: 12, 48: 10, 56: 9, 64: 8, 72: 7, 80: 6, 96: 5, 128: 4, 168: 3, 255: 2}
# fmt: on


@pytest.mark.parametrize("registers", WARPS)
def test_resident_warps(registers: int) -> None:
    assert resident_warps(registers, block_x=128) == WARPS[registers]


def test_blocks_fit_whole() -> None:
    assert resident_warps(64, block_x=1024) == 8
    assert resident_warps(72, block_x=1024) == 0
    assert resident_warps(32, block_x=32) == 4  # sixteen blocks
    assert resident_warps(32, block_x=256, shared_bytes=49 * 1024) == 4  # two blocks of eight warps


LOOP = """
    [B------:R-:W-:-:S01] NOP
    [B------:R-:W-:-:S05] @P0 BRA 0x50
    [B------:R-:W-:-:S01] NOP
    [B------:R-:W-:-:S05] @P1 BRA 0x20
    [B------:R-:W-:-:S05] BRA 0x60
    [B------:R-:W-:-:S01] NOP
    [B------:R-:W-:-:S05] EXIT
    [B------:R-:W-:Y:S00] BRA 0x70"""


def test_traces() -> None:
    assert reachable(program(LOOP)) == [0, 1, 2, 3, 4, 5, 6]
    assert walk(program(LOOP), rounds=3) == [0, 1, 2, 3, 2, 3, 2, 3, 4, 6]


def test_a_trace_may_repeat_a_loop_body() -> None:
    body = program("[B------:R-:W-:Y:S04] FADD R0, R0, R2\n[B------:R-:W-:-:S05] @P0 BRA 0x0")
    assert modelled_cycles(body, [0, 1] * 3) == 2 * 9 + 4 + 1


def test_loops_within_loops_stay_short() -> None:
    nops = "\n".join("[B------:R-:W-:-:S01] NOP" for _ in range(40))
    branches = "\n".join(f"[B------:R-:W-:-:S05] @P0 BRA {16 * n:#x}" for n in range(40))
    nested = program(f"{nops}\n{branches}\n[B------:R-:W-:-:S05] EXIT")
    assert len(walk(nested)) < 10 * len(nested)
    assert walk(nested)[-1] == len(nested) - 1
