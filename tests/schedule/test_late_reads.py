"""Guard: what the check accepts comes back as it is; what lost its cover gets one, and nothing else changes."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from vendor_schedule import hazards

from coppelius.container.reader import read_kernels
from coppelius.isa.control import NO_BARRIER
from coppelius.isa.refusal import Refusal
from coppelius.program.listing import listing_lines, listing_text
from coppelius.program.program import Program
from coppelius.schedule.late_reads import guard, guard_late_reads, late_reads
from coppelius.schedule.schedule import schedule

CUBINS = Path(__file__).resolve().parents[1] / "data" / "cuda" / "cubins"


def uncovered(program: Program, seed: int) -> Program:
    """The same with some read barriers and waits dropped."""
    pick = random.Random(seed)
    rows = []
    for row in program:
        if row["read_barrier"] != NO_BARRIER and pick.random() < 0.5:
            row = row.with_fields({"read_barrier": NO_BARRIER})
        rows.append(row)
    return Program.of(rows, program.table)


def without_covers(program: Program) -> list[object]:
    """What guard must not change."""
    return [row.with_fields({"read_barrier": NO_BARRIER, "wait": 0, "stall": 1, "keep": 1}) for row in program]


@pytest.mark.parametrize("seed", range(60))
def test_accepted_programs_come_back_and_others_are_repaired(seed: int, random_program: Callable[..., Program]) -> None:
    program = random_program(2000 + seed, 60)
    done, _ = schedule(program, [{}] * len(program))
    assert guard_late_reads(done) is done
    broken = uncovered(done, seed)
    repaired = guard_late_reads(broken)
    assert hazards(repaired) == []
    assert without_covers(repaired) == without_covers(broken)
    named = {h.cause for h in late_reads(broken)}
    for i, (a, b) in enumerate(zip(broken, repaired, strict=True)):
        assert a["read_barrier"] == b["read_barrier"] or i in named
        assert b["wait"] & a["wait"] == a["wait"]
        assert b["stall"] >= a["stall"]


def test_a_listing_comes_back_byte_for_byte(random_program: Callable[..., Program]) -> None:
    program = random_program(1, 60)
    listing = listing_text(schedule(program, [{}] * len(program))[0])
    assert guard(listing) == listing


def test_compiled_kernels_come_back() -> None:
    seen = 0
    for path in sorted((CUBINS / "O3").glob("*.cubin")):
        for kernel in read_kernels(path):
            try:
                program = Program.decode(kernel.code)
            except Refusal:
                continue
            if not hazards(program):
                assert guard_late_reads(program) is program, kernel.name
                seen += 1
    assert seen > 100


def test_the_repair_as_text(program_of: Callable[[str], Program]) -> None:
    program = program_of("""
        [B------:R-:W-:-:S01] STG.E [R2.64], R4
        [B------:R-:W-:-:S04] MOV R4, R5
        [B------:R-:W-:-:S05] EXIT""")
    assert listing_lines(guard_late_reads(program)) == [
        "[B------:R0:W-:-:S02] STG.E [R2.64], R4",
        "[B0-----:R-:W-:-:S04] MOV R4, R5",
        "[B------:R-:W-:-:S05] EXIT",
    ]


def test_the_scoreboard_of_counted_groups_is_left_alone(program_of: Callable[[str], Program]) -> None:
    program = program_of("""
        [B------:R-:W-:-:S01] LDGSTS.E.128 [R8], [R2.64]
        [B------:R-:W0:-:S01] LDGDEPBAR
        [B------:R-:W-:-:S01] STG.E [R2.64], R4
        [B------:R-:W-:-:S04] MOV R4, R5
        [B------:R-:W-:Y:S04] DEPBAR.LE SB0, 0x0
        [B------:R-:W-:-:S05] EXIT""")
    assert guard_late_reads(program)[2]["read_barrier"] == 1
