"""Basic blocks, and programs that change their length."""

import pytest

from coppelius.isa.refusal import Refusal
from coppelius.program.edit import rebuild
from coppelius.program.flow import blocks
from coppelius.program.listing import listing_lines, parse_listing

LOOP = """.target sm86
[B------:R-:W-:-:S05] MOV R0, RZ
[B------:R-:W-:-:S05] IADD3 R0, R0, 0x1, RZ
[B------:R-:W-:Y:S13] ISETP.GE.U32.AND P0, PT, R0, 0x20, PT
[B------:R-:W-:-:S05] @!P0 BRA 0x10
[B------:R-:W-:-:S05] @P1 EXIT
[B------:R-:W-:-:S05] EXIT
[B------:R-:W-:Y:S00] BRA 0x60
"""


def test_blocks_follow_branches_both_ways():
    found = [(b.start, b.end, b.following) for b in blocks(parse_listing(LOOP))]
    assert found == [(0, 1, (1,)), (1, 4, (1, 4)), (4, 5, (5,)), (5, 6, ()), (6, 7, (6,))]


def test_a_call_is_not_rescheduled():
    program = parse_listing(LOOP.replace("@!P0 BRA 0x10", "CALL.REL.NOINC 0x10"))
    with pytest.raises(
        Refusal, match=r"instruction 3 at 0x30: CALL goes where only .*; write what it leads to in its place"
    ):
        blocks(program)


def test_branches_follow_their_targets_when_instructions_are_inserted():
    program = parse_listing(LOOP)
    nop = parse_listing(".target sm86\n[B------:R-:W-:-:S01] NOP\n")[0]
    grown, origin = rebuild(program, [[nop, row] if i == 1 else [row] for i, row in enumerate(program)])
    assert origin == [0, 1, 1, 2, 3, 4, 5, 6]
    lines = listing_lines(grown)
    assert lines[4].endswith("@!P0 BRA 0x10")  # the loop starts at the NOP
    assert lines[7].endswith("BRA 0x70")
