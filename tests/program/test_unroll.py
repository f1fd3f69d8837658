"""A loop's body laid out in a row, and what is not a single loop refused."""

import pytest

from coppelius.isa.refusal import Refusal
from coppelius.program.listing import listing_lines, parse_listing
from coppelius.program.program import Program
from coppelius.program.unroll import unrolled


def program(*lines: str) -> Program:
    return parse_listing(".target sm86\n" + "".join(f"{line}\n" for line in lines))


START = "[B------:R-:W-:-:S04] MOV R0, RZ"
BODY = "[B------:R-:W-:-:S04] IADD3 R0, R0, 0x1, RZ"
BACK = "[B--2---:R-:W-:-:S05] @P0 BRA 0x10"
EXIT = "[B------:R-:W-:-:S05] EXIT"
END = "[B------:R-:W-:-:S05] BRA 0x40"


def test_the_branch_becomes_a_nop_under_its_own_control_word() -> None:
    passed = "[B--2---:R-:W-:-:S05] NOP"
    made = unrolled(program(START, BODY, BACK, EXIT, END))
    assert listing_lines(made) == listing_lines(program(START, BODY, passed, BODY, passed, EXIT))
    assert len(unrolled(program(START, BODY, BACK, EXIT, END), 3)) == 8


@pytest.mark.parametrize(
    "lines", [(START, EXIT), (START, BODY, BACK, BACK, EXIT), ("[B------:R-:W-:-:S05] @P0 BRA 0x20", START, EXIT)]
)
def test_what_is_not_one_loop_is_refused(lines: tuple[str, ...]) -> None:
    with pytest.raises(Refusal, match=r"unroll: [012] branches"):
        unrolled(program(*lines))
