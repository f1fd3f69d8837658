"""A listing says its program exactly, and nothing else reads as one."""

import pytest

from coppelius.isa.refusal import Refusal
from coppelius.program.listing import listing_text, parse_listing
from coppelius.program.program import Program

LISTING = """.target sm86
[B------:R-:W0:-:S01] S2R R0, SR_TID.X
[B0-----:R-:W-:Y:S05] ISETP.GE.U32.AND P0, PT, R0, 0x20, PT
[B------:R-:W-:-:S05] @P0 BRA 0x50
[B------:R-:W-:Y:S04] FADD R1, -RZ, +QNAN {B=0x7fc00001}
[B------:R-:W-:-:S01] IADD3 R2, R0.reuse, -0x1, RZ
[B------:R-:W-:-:S05] EXIT
"""


def test_a_listing_reads_back_and_encodes_the_same_bytes():
    program = parse_listing(LISTING)
    assert listing_text(program) == LISTING
    again = Program.decode(program.encode())
    assert again == program
    assert listing_text(again) == LISTING


def test_a_nan_keeps_its_payload():
    program = parse_listing(LISTING)
    assert program[3]["B"] == 0x7FC00001


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (".target sm86\n", "", "line 1: a listing begins with its target"),
        ("sm86", "sm99", "line 1: no target 'sm99'"),
        ("FADD R1", "FADDD R1", "line 5: FADDD: no sm86 instruction; nearest: FADD"),
        ("R0.reuse, -0x1, RZ", "R0.reuse, -0x1", "line 6: IADD3: no form takes"),
        ("S05] EXIT", "S16] EXIT", "line 7: .*stall 16 is not 0..15"),
        ("[B------:R-:W-:-:S05] EXIT", "[B------:R-:W-:-:S12] EXIT", "line 7: .*needs the yield"),
        ("[B------:R-:W-:-:S05] EXIT", "[B-----6:R-:W-:-:S05] EXIT", "line 7: .*no control word|line 7: .*scoreboards"),
        ("S05] EXIT", "S0\N{ARABIC-INDIC DIGIT FIVE}] EXIT", "line 7: .*no control word"),
        ("R0.reuse, -0x1", "R0.reuse,  -0X1", "line 6"),
        (" {B=0x7fc00001}", " {C=0x1}", "line 5"),
        ("BRA 0x50", "BRA 0x51", "line 4"),
    ],
)
def test_anything_else_is_refused_by_line(old: str, new: str, message: str):
    assert old in LISTING
    with pytest.raises(Refusal, match=message):
        parse_listing(LISTING.replace(old, new))


@pytest.mark.parametrize(
    ("target", "what"),
    [
        ("0x90", "branches to 0x90, outside the program's 0x60 bytes"),
        ("0x60", "branches to 0x60, outside the program's 0x60 bytes"),
        ("-0x10", "branches to -0x10, outside the program's 0x60 bytes"),
        ("0x48", "branches to 0x48, where no instruction begins"),
    ],
)
def test_a_branch_to_no_instruction_of_the_program_is_refused_by_name(target: str, what: str):
    program = parse_listing(LISTING.replace("BRA 0x50", f"BRA {target}"))
    with pytest.raises(Refusal, match=rf"instruction 2 \(BRA\) {what}"):
        program.encode()
