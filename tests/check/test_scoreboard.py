"""Each rule of the scoreboards in both directions."""

from collections.abc import Callable

import pytest

from coppelius.check.hazard import Hazard

Judge = Callable[..., list[Hazard]]

END = "[B------:R-:W-:Y:S05] EXIT"


def named(found: list[Hazard]) -> list[tuple[str, int, int, str]]:
    return [(h.rule, h.cause, h.ordinal, h.register) for h in found]


RAW, WAW, WAR = "read after write", "write after write", "write after read"

# fmt: off
CASES = {
    "a result is read once it is waited for": ([], """
        [B------:R-:W0:-:S02] MUFU.RCP R4, R1
        [B0-----:R-:W-:Y:S05] FADD R5, R4, R2"""),
    "a result is read without a wait": ([(RAW, 0, 1, "R4")], """
        [B------:R-:W0:-:S02] MUFU.RCP R4, R1
        [B-1----:R-:W-:Y:S05] FADD R5, R4, R2"""),
    "a result without a barrier": ([(RAW, 0, 1, "R4")], """
        [B------:R-:W-:Y:S15] MUFU.RCP R4, R1
        [B012345:R-:W-:Y:S05] FADD R5, R4, R2"""),
    "a wait before the producer says nothing": ([(RAW, 1, 2, "R4")], """
        [B0-----:R-:W-:-:S02] NOP
        [B------:R-:W0:-:S02] MUFU.RCP R4, R1
        [B------:R-:W-:Y:S05] FADD R5, R4, R2"""),
    "a wait in between serves all that follow": ([], """
        [B------:R-:W0:-:S02] MUFU.RCP R4, R1
        [B0-----:R-:W-:-:S02] NOP
        [B------:R-:W-:Y:S05] FADD R5, R4, R2"""),
    "every register of a wide load": ([(RAW, 0, 1, "R7")], """
        [B------:R-:W0:-:S04] LDS.128 R4, [R1]
        [B------:R-:W-:Y:S05] FADD R8, R7, R2"""),
    "a predicate by scoreboard": ([(RAW, 0, 1, "P0")], """
        [B------:R-:W0:-:S02] FCHK P0, R1, R2
        [B------:R-:W-:Y:S05] @P0 FADD R5, R1, R2"""),
    "a result overwritten": ([(WAW, 0, 1, "R4")], """
        [B------:R-:W0:-:S02] MUFU.RCP R4, R1
        [B------:R-:W-:Y:S05] FADD R4, R1, R2"""),
    "a result overwritten in the same queue": ([], """
        [B------:R-:W0:-:S04] LDS R4, [R1]
        [B------:R-:W0:-:S04] LDS R4, [R1+0x4]
        [B0-----:R-:W-:Y:S05] FADD R5, R4, R2"""),
    "a guarded producer may have run": ([(RAW, 0, 1, "R4")], """
        [B------:R-:W0:-:S02] @P0 MUFU.RCP R4, R1
        [B------:R-:W-:Y:S05] FADD R5, R4, R2"""),

    "results of one queue arrive in order: SHFL": ([], """
        [B------:R-:W-:-:S04] SHFL.BFLY PT, R4, R1, 0x1, 0x1f
        [B------:R-:W0:-:S04] SHFL.BFLY PT, R5, R1, 0x2, 0x1f
        [B0-----:R-:W-:Y:S05] FADD R6, R4, R2"""),
    "results of one queue arrive in order: MUFU": ([], """
        [B------:R-:W-:-:S04] MUFU.RCP R4, R1
        [B------:R-:W0:-:S02] MUFU.RCP R5, R1
        [B0-----:R-:W-:Y:S05] FADD R6, R4, R2"""),
    "an earlier one of the queue says nothing of a later one": ([(RAW, 1, 2, "R5")], """
        [B------:R-:W0:-:S04] MUFU.RCP R4, R1
        [B------:R-:W-:-:S04] MUFU.RCP R5, R1
        [B0-----:R-:W-:Y:S05] FADD R6, R5, R2"""),
    "another queue says nothing": ([(RAW, 0, 2, "R4")], """
        [B------:R-:W-:-:S04] LDS R4, [R1]
        [B------:R-:W0:-:S04] MUFU.RCP R5, R1
        [B0-----:R-:W-:Y:S05] FADD R6, R4, R2"""),
    "global loads have no order": ([(RAW, 0, 2, "R4")], """
        [B------:R-:W-:-:S04] LDG.E R4, [R2.64]
        [B------:R-:W0:-:S04] LDG.E R5, [R2.64+0x4]
        [B0-----:R-:W-:Y:S05] FADD R6, R4, R1"""),
    "S2R has no order": ([(RAW, 0, 2, "R4")], """
        [B------:R-:W-:-:S04] S2R R4, SR_TID.X
        [B------:R-:W0:-:S04] S2R R5, SR_CTAID.X
        [B0-----:R-:W-:Y:S05] IADD3 R6, R4, R1, RZ"""),

    "a late read overwritten": ([(WAR, 0, 1, "R4")], """
        [B------:R-:W-:Y:S15] STS [R1], R4
        [B------:R-:W-:Y:S05] FADD R4, R1, R2"""),
    "a late address overwritten": ([(WAR, 0, 1, "R1")], """
        [B------:R-:W0:Y:S15] LDS R4, [R1]
        [B------:R-:W-:Y:S05] FADD R1, R3, R2"""),
    "cover 1: the reader's read barrier": ([], """
        [B------:R3:W-:-:S02] STS [R1], R4
        [B---3--:R-:W-:Y:S05] FADD R4, R1, R2"""),
    "cover 2: the reader's write barrier": ([], """
        [B------:R-:W0:-:S02] LDS R4, [R1]
        [B0-----:R-:W-:Y:S05] FADD R1, R3, R2"""),
    "cover 3: a later one of the load/store queue": ([], """
        [B------:R-:W-:-:S04] STS [R1], R4
        [B------:R-:W0:-:S02] LDG.E R8, [R6.64]
        [B0-----:R-:W-:Y:S05] FADD R4, R1, R2"""),
    "cover 3 counts later ones only": ([(WAR, 1, 2, "R4")], """
        [B------:R-:W0:-:S04] LDG.E R8, [R6.64]
        [B------:R-:W-:-:S04] STS [R1], R4
        [B0-----:R-:W-:Y:S05] FADD R4, R1, R2"""),
    "cover 3 is of that queue only": ([(WAR, 0, 2, "R4")], """
        [B------:R-:W-:-:S04] STS [R1], R4
        [B------:R-:W0:-:S02] MUFU.RCP R8, R6
        [B0-----:R-:W-:Y:S05] FADD R4, R1, R2"""),
    "cover 4: a BAR": ([], """
        [B------:R-:W-:-:S04] STS [R1], R4
        [B------:R-:W-:-:S06] BAR.SYNC.DEFER_BLOCKING 0x0
        [B------:R-:W-:Y:S05] FADD R4, R1, R2"""),
    "a BAR covers no result": ([(RAW, 0, 2, "R4")], """
        [B------:R-:W0:-:S04] LDS R4, [R1]
        [B------:R-:W-:-:S06] BAR.SYNC.DEFER_BLOCKING 0x0
        [B------:R-:W-:Y:S05] FADD R5, R4, R2"""),
    "a later one of the queue may overwrite": ([], """
        [B------:R-:W-:-:S04] STS [R1], R4
        [B------:R-:W0:-:S04] LDS R4, [R1]
        [B0-----:R-:W-:Y:S05] FADD R5, R4, R2"""),

    "set to wait: one cycle is too few": ([("set to wait", 0, 1, "SB0")], """
        [B------:R-:W0:-:S01] MUFU.RCP R4, R1
        [B0-----:R-:W-:Y:S05] FADD R5, R4, R2"""),
    "set to wait: a read barrier too": ([("set to wait", 0, 1, "SB2")], """
        [B------:R2:W-:-:S01] STS [R1], R4
        [B--2---:R-:W-:Y:S05] FADD R4, R1, R2"""),
    "set to wait: an instruction in between": ([], """
        [B------:R-:W0:-:S01] MUFU.RCP R4, R1
        [B------:R-:W-:-:S01] NOP
        [B0-----:R-:W-:Y:S05] FADD R5, R4, R2"""),

    "DEPBAR.LE 0 is a wait": ([], """
        [B------:R-:W0:-:S02] LDG.E R4, [R2.64]
        [B------:R-:W-:Y:S04] DEPBAR.LE SB0, 0x0
        [B------:R-:W-:Y:S05] FADD R5, R4, R1"""),
    "DEPBAR.LE waits for its set": ([], """
        [B------:R-:W3:-:S02] LDG.E R4, [R2.64]
        [B------:R-:W-:Y:S04] DEPBAR.LE SB0, 0x0, {3}
        [B------:R-:W-:Y:S05] FADD R5, R4, R1"""),
    "counted, in order": ([], """
        [B------:R-:W0:-:S04] LDS R4, [R1]
        [B------:R-:W0:-:S04] LDS R5, [R1+0x4]
        [B------:R-:W-:Y:S04] DEPBAR.LE SB0, 0x1
        [B------:R-:W-:Y:S05] FADD R6, R4, R2"""),
    "counted, in order, the youngest": ([(RAW, 1, 3, "R5")], """
        [B------:R-:W0:-:S04] LDS R4, [R1]
        [B------:R-:W0:-:S04] LDS R5, [R1+0x4]
        [B------:R-:W-:Y:S04] DEPBAR.LE SB0, 0x1
        [B------:R-:W-:Y:S05] FADD R6, R5, R2"""),
    "counted, out of order": ([(RAW, 0, 3, "R4")], """
        [B------:R-:W0:-:S04] LDG.E R4, [R2.64]
        [B------:R-:W0:-:S04] LDG.E R5, [R2.64+0x4]
        [B------:R-:W-:Y:S04] DEPBAR.LE SB0, 0x1
        [B------:R-:W-:Y:S05] FADD R6, R4, R1"""),

    "a copy is read before its group": ([("read before copied", 0, 3, "[R1+0x10]")], """
        [B------:R-:W-:-:S04] LDGSTS.E [R1+0x10], [R2.64]
        [B------:R-:W0:-:S04] LDGDEPBAR
        [B------:R-:W-:Y:S04] DEPBAR.LE SB0, 0x1
        [B------:R-:W1:-:S04] LDS R5, [R1+0x10]"""),
    "a copy is read after its group": ([], """
        [B------:R-:W-:-:S04] LDGSTS.E [R1+0x10], [R2.64]
        [B------:R-:W0:-:S04] LDGDEPBAR
        [B------:R-:W-:-:S04] LDGSTS.E [R1+0x20], [R2.64]
        [B------:R-:W0:-:S04] LDGDEPBAR
        [B------:R-:W-:Y:S04] DEPBAR.LE SB0, 0x1
        [B------:R-:W1:-:S04] LDS R5, [R1+0x10]"""),
    "a copy that nothing commits": ([("read before copied", 1, 3, "[R1+0x20]")], """
        [B------:R-:W0:-:S04] LDGDEPBAR
        [B------:R-:W-:-:S04] LDGSTS.E [R1+0x20], [R2.64]
        [B------:R-:W-:Y:S04] DEPBAR.LE SB0, 0x0
        [B------:R-:W1:-:S04] LDS R5, [R1+0x20]"""),
    "a copy elsewhere": ([], """
        [B------:R-:W-:-:S04] LDGSTS.E [R1+0x10], [R2.64]
        [B------:R-:W1:-:S04] LDS R5, [R1+0x14]"""),
    "a copy under another base cannot be compared": ([], """
        [B------:R0:W-:-:S04] LDGSTS.E [R1+0x10], [R2.64]
        [B0-----:R-:W-:Y:S05] IADD3 R1, R1, 0x10, RZ
        [B------:R-:W1:-:S04] LDS R5, [R1]"""),
}
# fmt: on


@pytest.mark.parametrize("case", CASES)
def test_rule(case: str, hazards: Judge) -> None:
    expected, text = CASES[case]
    assert named(hazards(f"{text}\n{END}")) == expected


def test_the_remedy_of_a_count_out_of_order(hazards: Judge) -> None:
    (hazard,) = hazards(f"{CASES['counted, out of order'][1]}\n{END}")
    assert hazard.remedy == "wait for SB0 to be zero: it finishes out of order, so a count says nothing of it"


ACROSS = """
    [B------:R-:W0:-:S02] MUFU.RCP R4, R1
    [B------:R-:W-:-:S05] @P0 BRA 0x40
    [B{wait}-----:R-:W-:-:S02] NOP
    [B------:R-:W-:-:S01] NOP
    [B------:R-:W-:Y:S05] FADD R5, R4, R2
    [B------:R-:W-:Y:S05] EXIT
"""


def test_a_wait_on_one_side_of_a_branch_is_not_enough(hazards: Judge) -> None:
    assert named(hazards(ACROSS.format(wait=0))) == [(RAW, 0, 4, "R4")]
    assert not hazards(ACROSS.format(wait=0).replace("[B------:R-:W-:Y:S05] FADD", "[B0-----:R-:W-:Y:S05] FADD"))


def test_a_result_is_carried_round_a_loop(hazards: Judge) -> None:
    text = """
        [B------:R-:W-:-:S05] FADD R5, R4, R2
        [B------:R-:W0:-:S02] MUFU.RCP R4, R1
        [B{wait}-----:R-:W-:-:S05] @P0 BRA 0x0
        [B------:R-:W-:Y:S05] EXIT
    """
    assert named(hazards(text.format(wait="-"))) == [(RAW, 1, 0, "R4")]
    assert not hazards(text.format(wait=0))


def test_a_late_read_is_carried_round_a_loop(hazards: Judge) -> None:
    text = """
        [B{wait}-----:R-:W-:-:S05] FADD R4, R1, R2
        [B------:R0:W-:-:S02] STS [R1], R4
        [B------:R-:W-:-:S05] @P0 BRA 0x0
        [B------:R-:W-:Y:S05] EXIT
    """
    assert named(hazards(text.format(wait="-"))) == [(WAR, 1, 0, "R4")]
    assert not hazards(text.format(wait=0))


def test_a_call_returns_with_what_its_callee_left(hazards: Judge) -> None:
    text = """
        [B------:R-:W-:-:S05] CALL.REL.NOINC 0x50
        [B{wait}-----:R-:W-:-:S05] FADD R5, R4, R2
        [B------:R-:W-:-:S05] CALL.REL.NOINC 0x50
        [B0-----:R-:W-:-:S05] FADD R5, R4, R2
        [B------:R-:W-:Y:S05] EXIT
        [B------:R-:W0:-:S02] MUFU.RCP R4, R1
        [B------:R-:W-:-:S05] RET.REL.NODEC R6 0x0
    """
    assert named(hazards(text.format(wait="-"))) == [(RAW, 5, 1, "R4")]
    assert not hazards(text.format(wait=0))
