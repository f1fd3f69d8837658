"""Lowering, rule by rule: a few instructions and what a target has in their place; refusals; registers; schedule."""

from __future__ import annotations

import pytest

from coppelius.check.resources import register_demand
from coppelius.check.verdict import judge
from coppelius.isa.printer import texts
from coppelius.isa.refusal import Refusal
from coppelius.isa.table import table_of
from coppelius.lowering.lower import lower, lower_listing, translate
from coppelius.program.listing import listing_text, parse_listing
from coppelius.program.program import Program

TARGETS = ("sm80", "sm89", "sm90", "sm120", "sm121")


def program(*lines: str) -> Program:
    return parse_listing("\n".join([".target sm86", *(f"[B------:R-:W-:-:S05] {line}" for line in lines), ""]))


def on(target: str, *lines: str) -> list[str]:
    """The target's instructions, unscheduled."""
    return texts(translate(program(*lines), target)[0].decoded)


# (SM86, sm121, sm90); on sm80 and sm89 nothing changes
# fmt: off
RULES = {
    "a parameter, loaded once": (
        ["FMUL R1, R2, c[0x0][0x160]", "FMUL R1, R1, c[0x0][0x160]"],
        ["LDCU UR0, c[0x0][0x380]", "FMUL R1, R2, UR0", "FMUL R1, R1, UR0"],
        ["ULDC UR0, c[0x0][0x210]", "FMUL R1, R2, UR0", "FMUL R1, R1, UR0"],
    ),
    "two words side by side, one load": (
        ["FADD R1, R2, -c[0x0][0x164]", "FMUL R1, R1, c[0x0][0x160]"],
        ["LDCU.64 UR0, c[0x0][0x380]", "FADD R1, R2, -UR1", "FMUL R1, R1, UR0"],
        ["ULDC.64 UR0, c[0x0][0x210]", "FADD R1, R2, -UR1", "FMUL R1, R1, UR0"],
    ),
    "uniform registers in use are left alone": (
        ["UMOV UR0, 0x1", "FMUL R1, R2, c[0x0][0x160]"],
        ["LDCU UR1, c[0x0][0x380]", "UMOV UR0, 0x1", "FMUL R1, R2, UR1"],
        ["ULDC UR1, c[0x0][0x210]", "UMOV UR0, 0x1", "FMUL R1, R2, UR1"],
    ),
    "64 bits, an aligned pair": (
        ["UMOV UR0, 0x1", "DFMA R2, R4, R6, c[0x0][0x168]"],
        ["LDCU.64 UR2, c[0x0][0x388]", "UMOV UR0, 0x1", "DFMA R2, R4, R6, UR2"],
        ["ULDC.64 UR2, c[0x0][0x218]", "UMOV UR0, 0x1", "DFMA R2, R4, R6, UR2"],
    ),
    "the stack, another bank": (
        ["MOV R1, c[0x0][0x28]", "MOV R2, c[0x3][0x28]"],
        ["LDCU UR0, c[0x0][0x37c]", "LDCU UR1, c[0x3][0x28]", "MOV R1, UR0", "MOV R2, UR1"],
        ["ULDC UR0, c[0x0][0x28]", "ULDC UR1, c[0x3][0x28]", "MOV R1, UR0", "MOV R2, UR1"],
    ),
    "the descriptor": (
        ["ULDC.64 UR4, c[0x0][0x118]", "LDG.E R0, [R2.64]"],
        ["LDCU.64 UR4, c[0x0][0x358]", "LDG.E R0, desc[UR4][R2.64]"],
        ["ULDC.64 UR4, c[0x0][0x208]", "LDG.E R0, desc[UR4][R2.64]"],
    ),
    "a load of a constant": (["LDC R1, c[0x0][0x164]"], ["LDC R1, c[0x0][0x384]"], ["LDC R1, c[0x0][0x214]"]),
    "URZ": (
        ["UIADD3 UR5, UR4, 0x1, URZ"],
        ["UIADD3 UR5, UPT, UPT, UR4, 0x1, URZ"],
        ["UIADD3 UR5, UR4, 0x1, URZ"],
    ),
    "a product added to a pointer": (
        ["IMAD.WIDE.U32 R2, R5, R4, c[0x0][0x160]"],
        ["LDCU.64 UR0, c[0x0][0x380]", "IMAD.WIDE.U32 R2, R5, R4, UR0"],
        ["ULDC.64 UR0, c[0x0][0x210]", "MOV R2, UR0", "MOV R3, UR1", "IMAD.WIDE.U32 R2, R5, R4, R2"],
    ),
    "the same onto its factors": (
        ["@P0 IMAD.WIDE.U32 R4, R5, R4, c[0x0][0x160]"],
        ["LDCU.64 UR0, c[0x0][0x380]", "@P0 IMAD.WIDE.U32 R4, R5, R4, UR0"],
        ["ULDC.64 UR0, c[0x0][0x210]", "@P0 MOV R6, UR0", "@P0 MOV R7, UR1", "@P0 IMAD.WIDE.U32 R4, R5, R4, R6"],
    ),
    "a minus before a uniform term": (
        ["IADD3 R1, -R2, c[0x0][0x160], R3"],
        ["LDCU UR0, c[0x0][0x380]", "IADD3 R1, PT, PT, R3, UR0, -R2"],
        ["ULDC UR0, c[0x0][0x210]", "IADD3 R1, -R2, UR0, R3"],
    ),
    "moves by products": (
        ["IMAD.MOV.U32 R1, RZ, RZ, 0x5", "IMAD.MOV.U32 R2, RZ, RZ, R3", "IMAD.MOV.U32 R4, RZ, RZ, c[0x0][0x160]"],
        ["LDCU UR0, c[0x0][0x380]", "MOV R1, 0x5", "MOV R2, R3", "MOV R4, UR0"],
        ["ULDC UR0, c[0x0][0x210]", "IMAD.MOV.U32 R1, RZ, RZ, 0x5", "IMAD.MOV.U32 R2, RZ, RZ, R3",
         "IMAD.U32 R4, RZ, RZ, UR0"],
    ),
    "the reserved kilobyte": (
        ["LDS R1, [R2+0x4]", "STS.64 [0x8], R4", "LDSM.16.M88.4 R4, [R2]", "ATOMS.ADD R1, [R2+0x4], R3"],
        ["LDS R1, [R2+0x404]", "STS.64 [0x408], R4", "LDSM.16.M88.4 R4, [R2+0x400]", "ATOMS.ADD R1, [R2+0x404], R3"],
        ["LDS R1, [R2+0x404]", "STS.64 [0x408], R4", "LDSM.16.M88.4 R4, [R2+0x400]", "ATOMS.ADD R1, [R2+0x404], R3"],
    ),
    "a scaled shared address": (
        ["@!P1 STS [R2.X4+0x20], R3", "LDS.64 R4, [R2.X8]"],
        ["@!P1 IMAD.SHL.U32 R6, R2, 0x4, RZ", "@!P1 STS [R6+0x420], R3", "IMAD.SHL.U32 R6, R2, 0x8, RZ",
         "LDS.64 R4, [R6+0x400]"],
        ["@!P1 IMAD.SHL.U32 R6, R2, 0x4, RZ", "@!P1 STS [R6+0x420], R3", "IMAD.SHL.U32 R6, R2, 0x8, RZ",
         "LDS.64 R4, [R6+0x400]"],
    ),
    "a copy to shared memory": (
        ["LDGSTS.E.BYPASS.LTC128B.128 [R2+0x40], [R4.64+0x10]"],
        ["LDGSTS.E.BYPASS.LTC128B.128 [R2+0x440], desc[UR4][R4.64+0x10]"],
        ["LDGSTS.E.BYPASS.LTC128B.128 [R2+0x440], desc[UR4][R4.64+0x10]"],
    ),
    "atomics": (
        ["RED.E.ADD.F32.FTZ.RN.STRONG.GPU [R2.64], R5", "RED.E.ADD.STRONG.GPU [R2.64], R5",
         "ATOMG.E.ADD.STRONG.GPU PT, R1, [R2.64], R5"],
        ["REDG.E.ADD.F32.FTZ.RN.STRONG.GPU desc[UR4][R2.64], R5", "REDG.E.ADD.STRONG.GPU desc[UR4][R2.64], R5",
         "ATOMG.E.ADD.STRONG.GPU PT, R1, desc[UR4][R2.64], R5"],
        ["REDG.E.ADD.F32.FTZ.RN.STRONG.GPU desc[UR4][R2.64], R5", "REDG.E.ADD.STRONG.GPU desc[UR4][R2.64], R5",
         "ATOMG.E.ADD.STRONG.GPU PT, R1, desc[UR4][R2.64], R5"],
    ),
    "minima": (
        ["IMNMX.U32 R1, R2, 0x5, PT", "IMNMX R1, R2, R3, !PT"],
        ["VIMNMX.U32 R1, R2, 0x5, PT", "VIMNMX.S32 R1, R2, R3, !PT"],
        ["VIMNMX.U32 R1, R2, 0x5, PT", "VIMNMX R1, R2, R3, !PT"],
    ),
    "the least of a value and a parameter": (
        ["IMNMX R1, R2, c[0x0][0x160], PT"],
        ["LDCU UR0, c[0x0][0x380]", "VIMNMX.S32 R1, R2, UR0, PT"],
        ["ULDC UR0, c[0x0][0x210]", "VIMNMX R1, R2, UR0, PT"],
    ),
    "a high word of a sum of 64 bits": (
        ["IMAD.HI.U32 R1, R2, R3, c[0x0][0x160]"],
        ["LDCU.64 UR0, c[0x0][0x380]", "IMAD.HI.U32 R1, R2, R3, UR0"],
        ["ULDC.64 UR0, c[0x0][0x210]", "IMAD.HI.U32 R1, R2, R3, UR0"],
    ),
    "parameters by an index": (
        ["LDC R1, c[0x0][R2+0x160]"], ["LDC R1, c[0x0][R2+0x380]"], ["LDC R1, c[0x0][R2+0x210]"],
    ),
    "names": (
        ["F2FP.PACK_AB R1, R2, R3", "F2FP.BF16.PACK_AB R1, R2, R3"],
        ["F2FP.F16.F32.PACK_AB R1, R2, R3", "F2FP.BF16.F32.PACK_AB R1, R2, R3"],
        ["F2FP.F16.F32.PACK_AB R1, R2, R3", "F2FP.BF16.F32.PACK_AB R1, R2, R3"],
    ),
    "barriers of convergence": (
        ["BSSY B0, 0x20", "BSYNC B0", "EXIT"],
        ["BSSY.RECONVERGENT B0, 0x20", "BSYNC.RECONVERGENT B0", "EXIT"],
        ["BSSY B0, 0x20", "BSYNC B0", "EXIT"],
    ),
}
# fmt: on


@pytest.mark.parametrize("rule", RULES)
def test_a_rule(rule: str) -> None:
    native, blackwell, hopper = RULES[rule]
    assert on("sm121", *native) == on("sm120", *native) == blackwell
    assert on("sm90", *native) == hopper
    assert on("sm80", *native) == native
    assert on("sm89", *native) == [
        t.replace("F2FP.", "F2FP.F16.F32.").replace("F16.F32.BF16.", "BF16.F32.") for t in native
    ]


def test_a_conversion_that_sm80_lacks_is_its_slower_one() -> None:
    assert on("sm80", "I2FP.F32.U32 R1, R2", "I2FP.F32.S32 R1, R2") == ["I2F.U32 R1, R2", "I2F R1, R2"]
    assert on("sm89", "I2FP.F32.U32 R1, R2") == ["I2FP.F32.U32 R1, R2"]


def test_a_matrix_product_keeps_no_operand_where_the_target_cannot() -> None:
    product = "HMMA.16816.F32 R8, R4.reuse, R2.reuse, R8"
    assert on("sm121", product) == ["HMMA.16816.F32 R8, R4, R2.reuse, R8"]


@pytest.mark.parametrize(("target", "low"), [("sm90", 1), ("sm121", 1), ("sm80", 0)])
def test_a_branch_follows_its_target_and_its_distance_is_split(target: str, low: int) -> None:
    lines = [f"FMUL R{n}, R2, c[0x0][{0x160 + 4 * n:#x}]" for n in range(3)]
    made, origin, constants = translate(program(*lines, "@P0 BRA 0x10", "EXIT"), target)
    loads = made.targets()[-2] - 1  # the branch still goes to the second product
    assert [origin[k] for k in (loads + 1, len(made) - 2)] == [1, 3]
    assert loads == {"sm80": 0, "sm90": 2, "sm121": 2}[target]
    assert constants == (3 if loads else 0)
    word = int.from_bytes(made.encode()[-32:-16], "little")
    distance = (made.targets()[-2] - len(made) + 1) * 4
    place = word >> 34 & (1 << 48) - 1
    assert word >> 16 & 0xFF == (distance & 0xFF if low else 0)
    assert place == (distance >> 8 if low else distance) % (1 << 48)


# fmt: off
REFUSALS = [
    ("sm121", "WARPSYNC 0xff", r"WARPSYNC: sm121 has no such instruction; meet by BSSY and BSYNC$"),
    ("sm121", "MUFU.EX2.F16 R1, R2", r"MUFU.EX2.F16: sm121 has no such instruction; compute in 32 bits and pack"),
    ("sm121", "VABSDIFF R1, R2, R3, RZ", r"VABSDIFF: sm121 has no such instruction; subtract and take IABS"),
    ("sm121", "IMMA.16864.S4.S4 R4, R8.ROW, R2.COL, R4", r"IMMA.* sm121 has no such instruction; multiply bytes"),
    ("sm121", "MOV R1, c[0x0][0x18]", r"sm121 keeps no shared window in constant bank 0; use loads and stores"),
    ("sm90", "MOV R1, c[0x0][0x1c]", r"sm90 keeps no shared window in constant bank 0"),
    ("sm121", "MOV R1, c[0x0][0x50]", r"c\[0x0\]\[0x50\] has no known place on sm121"),
    # two words that lie side by side on SM86 alone, or where a pair would not be aligned
    ("sm121", "LDC.64 R2, c[0x0][0x8]", r"LDC: sm121 does not keep the 8 bytes at c\[0x0\]\[0x8\] side by side"),
    ("sm121", "ULDC.64 UR4, c[0x0][0x10]", r"ULDC: sm121 keeps c\[0x0\]\[0x10\] at 0x374, no multiple of 8"),
    ("sm121", "DADD R2, R4, c[0x0][0x8]", r"DADD:3: sm121 does not keep the 8 bytes at"),
    ("sm90", "DADD R2, R4, c[0x0][0x28]", r"c\[0x0\]\[0x2c\] has no known place on sm90"),
    ("sm90", "DADD R2, R4, c[0x3][0x4]", r"c\[0x3\]\[0x4\] is no multiple of 8, and a pair is loaded as one"),
    ("sm121", "LDC R1, c[0x0][R2]", r"sm121 keeps words before the parameters elsewhere; index from a parameter on"),
    ("sm90", "ULDC UR6, c[0x0][UR4+0x8]", r"sm90 keeps words before the parameters elsewhere"),
    ("sm121", "VABSDIFF R1, R2, c[0x0][0x160], RZ", r"no form with a uniform register; subtract and take IABS"),
    ("sm121", "FADD R1, R2, cx[UR4][0x10]", r"a constant bank named by a register cannot be lowered"),
    ("sm121", "LDS R1, [R2+0x7ffff0]", r"cannot hold address.offset 8389616"),
    # what lowering changes: where code lies, how much shared memory there is
    ("sm80", "LEPC R2", r"LEPC: lowering moves what it points to; branch by BRA"),
    ("sm121", "S2R R2, SR_ESR_PC", r"lowering moves what it points to"),
    ("sm121", "S2R R2, SR_SMEMSZ", r"S2R SR_SMEMSZ: sm121 counts its reserved kilobyte as well; pass the size"),
    ("sm90", "S2UR UR4, SR_SMEMSZ", r"S2UR SR_SMEMSZ: sm90 counts its reserved kilobyte"),
    ("sm121", "STS [R252.X4], R251", r"no general register above R252 is left"),
]
# fmt: on


@pytest.mark.parametrize(("target", "line", "says"), REFUSALS)
def test_what_cannot_be_lowered_is_refused_by_name_and_offset(target: str, line: str, says: str) -> None:
    with pytest.raises(Refusal, match=rf"^instruction 1 at 0x10: .*(?:{says})"):
        translate(program("NOP", line), target)


def test_constants_beyond_the_uniform_registers_are_refused() -> None:
    lines = [f"FMUL R1, R1, c[0x0][{0x160 + 8 * n:#x}]" for n in range(64)]
    with pytest.raises(Refusal, match="64 constants need more uniform registers than the 0 that are free; load some"):
        translate(program(*lines), "sm121")


def test_an_unknown_target_is_refused() -> None:
    with pytest.raises(Refusal, match="no target 'sm75'; known: "):
        lower(program("EXIT"), "sm75")


LOOP = [
    "MOV R1, c[0x0][0x28]", "ULDC.64 UR4, c[0x0][0x118]", "S2R R0, SR_TID.X", "IMAD.MOV.U32 R5, RZ, RZ, 0x4",
    "IMAD.WIDE.U32 R2, R0, R5, c[0x0][0x160]", "LDG.E R6, [R2.64]", "STS [R0.X4], R6", "BAR.SYNC 0x0",
    "LDS R7, [R0.X4]", "FADD R6, R6, R7", "ISETP.LT.U32.AND P0, PT, R0, c[0x0][0x168], PT", "@P0 BRA 0x50",
    "STG.E [R2.64], R6", "EXIT",
]  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
def test_the_schedule_is_the_targets_own_and_always_the_same(target: str) -> None:
    made = lower(program(*LOOP), target)
    verdict = judge(made.program.encode(), {}, table=table_of(target))
    assert verdict["accepted"], verdict["hazards"]
    again, origin = lower_listing(listing_text(program(*LOOP)), target)
    assert again == listing_text(made.program)
    assert origin == made.origin == sorted(made.origin)
    assert set(origin) == set(range(len(LOOP)))
    # control words of the input decide nothing
    slow = [row.with_fields({"stall": 15, "keep": 0}) for row in program(*LOOP)]
    assert listing_text(lower(Program.of(slow, table_of("sm86")), target).program) == again


# registers of the program: R0 to R7, UR4 and UR5; constants fit below, R8 is the scaled address
@pytest.mark.parametrize(
    ("target", "general", "uniform"), [("sm80", 8, 6), ("sm89", 8, 6), ("sm90", 9, 6), ("sm120", 9, 6), ("sm121", 9, 6)]
)
def test_registers_grow_by_what_is_loaded_and_scaled(target: str, general: int, uniform: int) -> None:
    demand = register_demand(lower(program(*LOOP), target).program.decoded)
    assert (demand.general, demand.uniform) == (general, uniform)


def test_a_loaded_constant_has_a_scoreboard_that_its_first_reader_waits_for() -> None:
    made = list(lower(program("FMUL R1, R2, c[0x0][0x160]", "EXIT"), "sm121").program)
    assert [row.encoding.mnemonic for row in made] == ["LDCU", "FMUL", "EXIT"]
    board = made[0]["write_barrier"]
    assert board < 6
    assert made[1]["wait"] >> board & 1
    hopper = list(lower(program("FMUL R1, R2, c[0x0][0x160]", "EXIT"), "sm90").program)
    assert hopper[0]["write_barrier"] == 7


def test_shared_bytes_are_counted_with_the_reserve() -> None:
    made = lower(program("LDS R1, [0x7c]", "EXIT"), "sm121").program.encode()
    assert judge(made, {"shared_bytes": 0x80}, table=table_of("sm121"))["accepted"]
    assert not judge(made, {"shared_bytes": 0x7C}, table=table_of("sm121"))["accepted"]


# cycles from the first to the second on SM86, and on the target
@pytest.mark.parametrize(
    ("target", "first", "second", "native", "own"),
    [
        ("sm90", "HADD2 R4, R5, R6", "STS [R4], R7", 5, 7),
        ("sm80", "FFMA R4, R5, R6, R7", "MUFU.RCP R8, R4", 4, 6),
        ("sm121", "SEL R4, R5, R6, P0", "IADD3 R8, R4, R5, R6", 4, 5),
        ("sm121", "ISETP.LT.AND P1, PT, R4, R5, PT", "SEL R8, R6, R7, P1", 4, 5),
        ("sm121", "HMMA.16816.F32 R8, R4, R2, R8", "HMMA.16816.F32 R8, R4, R2, R8", 24, 29),
        ("sm121", "HMMA.16816.F32 R8, R4, R2, R8", "FADD R12, R8, R9", 24, 28),
    ],
)
def test_a_stall_is_what_the_target_needs(target: str, first: str, second: str, native: int, own: int) -> None:
    def given(made: Program) -> int:
        return sum(row["stall"] for row in list(made)[:-2])

    body = program(first, second, "EXIT")
    assert given(lower(body, target).program) == own
    assert given(lower(body, "sm89").program) == native
