"""Every kind of pair in both directions: accepted at its distance, named one cycle below."""

from collections.abc import Callable

import pytest

from coppelius.check.hazard import Hazard

Judge = Callable[..., list[Hazard]]

END = "[B------:R-:W-:Y:S05] EXIT"


def line(text: str, stall: int = 1) -> str:
    keep = "-" if 1 <= stall <= 11 else "Y"
    return f"[B------:R-:W-:{keep}:S{stall:02d}] {text}"


# fmt: off
READ_AFTER_WRITE = [
    # producer                                  consumer                                  register cycles
    ("IADD3 R4, R1, R2, RZ",                    "IADD3 R5, R4, R2, RZ",                   "R4", 4),
    ("IADD3 R4, R1, R2, RZ",                    "FADD R5, R4, R2",                        "R4", 5),
    ("FADD R4, R1, R2",                         "FFMA R5, R2, R4, R3",                    "R4", 4),
    ("FADD R4, R1, R2",                         "LOP3.LUT R5, R4, R2, RZ, 0xc0, !PT",     "R4", 5),
    ("IMAD.WIDE R4, R1, R2, RZ",                "IADD3 R6, R5, R2, RZ",                   "R5", 5),
    ("IMAD.WIDE R4, R1, R2, RZ",                "IMAD.WIDE R6, R4, R2, RZ",               "R4", 6),
    ("IMAD.WIDE R4, R1, R2, RZ",                "IMAD.WIDE R6, R1, R2, R4",               "R5", 6),
    ("IADD3 R4, R1, R2, RZ",                    "IMAD.WIDE R6, R4, R2, RZ",               "R4", 5),
    ("HADD2 R4, R1, R2",                        "HFMA2 R5, R4, R2, R3",                   "R4", 4),
    ("HADD2 R4, R1, R2",                        "HADD2.F32 R5, -RZ, R4.H0_H0",            "R4", 5),
    ("FADD R4, R1, R2",                         "HFMA2 R5, R4, R2, R3",                   "R4", 5),
    ("IADD3 R4, R1, R2, RZ",                    "MUFU.RCP R5, R4",                        "R4", 4),
    ("IADD3 R4, R1, R2, RZ",                    "STS [R4], R2",                           "R4", 5),
    ("FADD R4, R1, R2",                         "STS [R1], R4",                           "R4", 5),
    ("FADD R4, R1, R2",                         "SHFL.BFLY PT, R5, R4, 0x1, 0x1f",        "R4", 5),
    ("IADD3 R4, R1, R2, RZ",                    "LDC R5, c[0x3][R4]",                     "R4", 4),
    ("ISETP.GE.AND P0, PT, R1, R2, PT",         "@P0 FADD R5, R1, R2",                    "P0", 13),
    ("ISETP.GE.AND P0, PT, R1, R2, PT",         "@!P0 BRA 0x10",                          "P0", 13),
    ("ISETP.GE.AND P0, PT, R1, R2, PT",         "SEL R5, R1, R2, P0",                     "P0", 4),
    ("ISETP.GE.AND P0, PT, R1, R2, PT",         "VOTE.ANY R5, PT, P0",                    "P0", 13),
    ("IADD3 R4, P0, R1, R2, RZ",                "IADD3.X R5, R1, R2, RZ, P0, !PT",        "P0", 4),
    ("IADD3 R4, P0, R1, R2, RZ",                "IMAD.X R5, R1, 0x1, R2, P0",             "P0", 5),
    ("IMAD.WIDE.U32 R4, P0, R1, R2, R6",        "IMAD.X R8, R1, 0x1, R2, P0",             "P0", 4),
    ("IMAD.WIDE.U32 R4, P0, R1, R2, R6",        "IADD3.X R8, R1, R2, RZ, P0, !PT",        "P0", 5),
    ("R2P PR, R1, 0x1",                         "SEL R5, R1, R2, P0",                     "P0", 5),
    ("HMMA.16816.F32 R4, R8, R12, R4",          "FADD R1, R4, R2",                        "R4", 24),
    ("HMMA.16816.F32 R4, R8, R12, R4",          "HMMA.16816.F32 R16, R8, R12, R4",        "R7", 24),
    ("HMMA.16816.F32 R4, R8, R12, R4",          "STG.E [R2.64], R6",                      "R6", 23),
    ("HMMA.16816.F32 R4, R8, R12, R4",          "MUFU.EX2 R1, R4",                        "R4", 22),
    ("HMMA.1688.F32 R4, R8, R12, R4",           "FADD R1, R4, R2",                        "R4", 16),
    ("FADD R8, R1, R2",                         "HMMA.16816.F32 R4, R8, R12, R4",         "R8", 7),
    ("UIADD3 UR4, UR5, UR6, URZ",               "IADD3 R1, R2, UR4, RZ",                  "UR4", 6),
    ("UIADD3 UR4, UR5, UR6, URZ",               "UIADD3 UR7, UR4, UR6, URZ",              "UR4", 4),
    ("UIADD3 UR4, UR5, UR6, URZ",               "LDS R1, [R2+UR4]",                       "UR4", 9),
    ("ULDC UR4, c[0x0][0x160]",                 "IADD3 R1, R2, UR4, RZ",                  "UR4", 2),
    ("UISETP.GE.AND UP0, UPT, UR4, UR5, UPT",   "@UP0 UIADD3 UR7, UR5, UR6, URZ",         "UP0", 11),
]
WRITE_AFTER_WRITE = [
    ("FADD R4, R1, R2",                         "IADD3 R4, R1, R2, RZ",                   "R4", 1),
    ("FADD R4, R1, R2",                         "MUFU.RCP R4, R1",                        "R4", 6),
    ("IADD3 R4, R1, R2, RZ",                    "LDS R4, [R1]",                           "R4", 6),
    ("IADD3 R4, R1, R2, RZ",                    "IMAD.WIDE R4, R1, R2, RZ",               "R4", 2),
    ("UIADD3 UR4, UR5, UR6, URZ",               "UMOV UR4, 0x1",                          "UR4", 7),
    ("FADD R4, R1, R2",                         "HMMA.16816.F32 R4, R8, R12, RZ",         "R4", 6),
    ("HMMA.16816.F32 R4, R8, R12, RZ",          "FADD R4, R1, R2",                        "R4", 24),
]
WRITE_AFTER_READ = [
    ("FADD R4, R1, R2",                         "FADD R1, R2, R3",                        "R1", 1),
    ("FADD R4, R1, R2",                         "MUFU.RCP R1, R3",                        "R1", 2),
    ("FADD R4, R1, R2",                         "LDS R2, [R3]",                           "R2", 2),
    ("UIADD3 UR4, UR5, UR6, URZ",               "UMOV UR5, 0x1",                          "UR5", 3),
    ("HMMA.16816.F32 R4, R8, R12, R4",          "FADD R8, R1, R2",                        "R8", 7),
    ("HMMA.16816.F32 R4, R8, R12, R4",          "HMMA.16816.F32 R8, R16, R12, RZ",        "R8", 8),
    ("HMMA.16816.F32 R4, R8, R12, R4",          "LDSM.16.M88.4 R8, [R1]",                 "R8", 1),
]
# fmt: on
PAIRS = [
    *(("read after write", *pair) for pair in READ_AFTER_WRITE),
    *(("write after write", *pair) for pair in WRITE_AFTER_WRITE),
    *(("write after read", *pair) for pair in WRITE_AFTER_READ),
]


@pytest.mark.parametrize(("rule", "first", "second", "register", "cycles"), PAIRS)
def test_a_pair_needs_exactly_its_cycles(
    rule: str, first: str, second: str, register: str, cycles: int, hazards: Judge
) -> None:
    assert not hazards(apart(first, cycles, second))
    if cycles == 1:
        return
    found = hazards(apart(first, cycles - 1, second))
    assert {(h.rule, h.cause, h.needed, h.given) for h in found} == {(rule, 0, cycles, cycles - 1)}
    assert register in {h.register for h in found}


def apart(first: str, cycles: int, second: str) -> str:
    """Two instructions that many cycles apart, and an end."""
    fillers = [line("NOP", 11)] * ((cycles - 1) // 11) if cycles > 15 else []
    return "\n".join([line(first, cycles - 11 * len(fillers)), *fillers, line(second, 15), END])


# an MMA of an old toolkit: result and sources under scoreboards
BARRED = "[B------:R{read}:W{write}:-:S02] HMMA.16816.F32 R4, R8, R12, R4"


@pytest.mark.parametrize(
    ("read", "write", "wait", "second", "cause"),
    [
        ("-", "0", "0-----", "FADD R1, R4, R2", None),
        ("-", "0", "------", "FADD R1, R4, R2", 24),
        ("-", "0", "-1----", "FADD R1, R4, R2", 24),
        ("1", "-", "-1----", "FADD R8, R1, R2", None),
        ("1", "-", "------", "FADD R8, R1, R2", 7),
        ("1", "-", "-1----", "FADD R1, R4, R2", 24),
        ("-", "0", "0-----", "FADD R8, R1, R2", None),
    ],
)
def test_a_wait_covers_an_mma_as_well_as_cycles(
    read: str, write: str, wait: str, second: str, cause: int | None, hazards: Judge
) -> None:
    text = "\n".join([BARRED.format(read=read, write=write), f"[B{wait}:R-:W-:Y:S15] {second}", END])
    assert [h.needed for h in hazards(text)] == ([] if cause is None else [cause])


def test_the_stalls_between_add_up(hazards: Judge) -> None:
    lines = [line("FADD R4, R1, R2", 2), line("NOP", 1), line("FADD R5, R4, R2", 15), END]
    (hazard,) = hazards("\n".join(lines))
    assert (hazard.needed, hazard.given) == (4, 3)
    lines[1] = line("NOP", 2)
    assert not hazards("\n".join(lines))


def test_a_drain_covers_everything(hazards: Judge) -> None:
    drain = "[B------:R-:W-:Y:S00] ISETP.GE.AND P0, PT, R1, R2, PT"
    assert not hazards("\n".join([drain, line("@P0 FADD R5, R1, R2", 5), END]))


def test_an_overwritten_result_no_longer_counts(hazards: Judge) -> None:
    lines = [
        line("ISETP.GE.AND P0, PT, R1, R2, PT", 4),
        line("PLOP3.LUT P0, PT, P0, PT, PT, 0x8, 0x0", 13),
        line("@P0 FADD R5, R1, R2", 5),
        END,
    ]
    assert not hazards("\n".join(lines))


def test_a_guarded_write_leaves_the_earlier_one_possible(hazards: Judge) -> None:
    lines = [
        line("ISETP.GE.AND P0, PT, R1, R2, PT", 13),
        line("IMAD.WIDE R4, R1, R2, RZ", 1),
        line("@P0 FADD R4, R1, R2", 4),
        line("IMAD.WIDE R6, R4, R2, RZ", 15),
        END,
    ]
    assert [(h.cause, h.needed, h.given) for h in hazards("\n".join(lines))] == [(1, 6, 5)]


def test_opposite_guards_never_meet(hazards: Judge) -> None:
    lines = [
        line("ISETP.GE.AND P0, PT, R1, R2, PT", 13),
        line("@P0 FADD R4, R1, R2", 1),
        line("@!P0 FADD R5, R4, R2", 15),
        END,
    ]
    assert not hazards("\n".join(lines))
    lines[2] = line("@P0 FADD R5, R4, R2", 15)
    assert [h.cause for h in hazards("\n".join(lines))] == [1]


def test_guards_exclude_only_while_their_predicate_stays(hazards: Judge) -> None:
    lines = [
        line("ISETP.GE.AND P0, PT, R1, R2, PT", 13),
        line("@P0 MUFU.RCP R4, R1", 2),
        line("ISETP.GE.AND P0, PT, R1, R3, PT", 13),
        line("@!P0 FADD R5, R4, R2", 15),
        END,
    ]
    assert [(h.rule, h.cause, h.ordinal) for h in hazards("\n".join(lines))] == [("read after write", 1, 3)]


BRANCHES = """
    [B------:R-:W-:Y:S13] ISETP.GE.AND P0, PT, R1, R2, PT
    [B------:R-:W-:-:S01] ISETP.GE.AND P1, PT, R1, R2, PT
    [B------:R-:W-:Y:S{stall:02d}] @P0 BRA 0x40
    [B------:R-:W-:-:S08] NOP
    [B------:R-:W-:Y:S05] @P1 FADD R5, R4, R2
    [B------:R-:W-:Y:S05] EXIT
"""


@pytest.mark.parametrize(("stall", "given"), [(5, 6), (11, 12), (12, None)])
def test_both_sides_of_a_branch_count(stall: int, given: int | None, hazards: Judge) -> None:
    found = [(h.cause, h.ordinal, h.given) for h in hazards(BRANCHES.format(stall=stall))]
    assert found == ([] if given is None else [(1, 4, given)])


LOOP = """
    [B------:R-:W-:Y:S13] ISETP.GE.AND P0, PT, R1, R2, PT
    [B------:R-:W-:-:S05] @P1 FADD R5, R4, R2
    [B------:R-:W-:-:S01] ISETP.GE.AND P1, PT, R1, R2, PT
    [B------:R-:W-:Y:S{stall:02d}] @P0 BRA 0x10
    [B------:R-:W-:Y:S05] EXIT
"""


@pytest.mark.parametrize(("stall", "given"), [(11, 12), (12, None)])
def test_the_back_edge_of_a_loop_counts(stall: int, given: int | None, hazards: Judge) -> None:
    found = [(h.cause, h.ordinal, h.needed, h.given) for h in hazards(LOOP.format(stall=stall))]
    assert found == ([] if given is None else [(2, 1, 13, given)])


# fmt: off
LEAST = [
    ("DEPBAR.LE SB0, 0x0", 4), ("BRA 0x10", 5), ("BSYNC B0", 5), ("EXIT", 5), ("MEMBAR.SC.GPU", 6), ("CCTL.IVALL", 5),
]
# fmt: on


@pytest.mark.parametrize(("text", "least"), LEAST)
def test_least_stalls(text: str, least: int, hazards: Judge) -> None:
    assert not hazards(f"{line(text, least)}\n{END}")
    found = hazards(f"{line(text, least - 1)}\n{END}")
    assert [(h.rule, h.ordinal, h.needed, h.given) for h in found] == [("minimum stall", 0, least, least - 1)]


REUSED = """
    [B------:R-:W-:-:S02] FADD R5, R4.reuse, R2
    [B------:R-:W-:{keep}:S05] {middle}
    [B{wait}-----:R-:W-:Y:S15] FADD R7, R4, R3
    [B------:R-:W-:Y:S05] EXIT
"""


def test_a_kept_operand_must_not_outlive_its_register(hazards: Judge) -> None:
    found = hazards(REUSED.format(middle="FADD R4, R1, R2", keep="-", wait="-"))
    # R1 is of the other bank: slot A of R4's bank still keeps the old R4
    assert [(h.rule, h.ordinal, h.cause, h.register) for h in found] == [("stale reuse", 2, 1, "R4")]


@pytest.mark.parametrize(
    ("middle", "keep", "wait"),
    [
        ("FADD R4, R6, R2", "-", "-"),  # reads through the same bank and slot, which drops what is kept
        ("FADD R8, R1, R2", "-", "-"),  # overwrites nothing
        ("FADD R4, R1, R2", "Y", "-"),  # lets another warp in
        ("FADD R4, R1, R2", "-", "0"),  # waits before the second read
    ],
)
def test_a_kept_operand_ends(middle: str, keep: str, wait: str, hazards: Judge) -> None:
    assert not hazards(REUSED.format(middle=middle, keep=keep, wait=wait))
