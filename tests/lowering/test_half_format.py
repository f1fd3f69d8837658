"""f16 to bf16, instruction for instruction: each rule, what is refused, and which control words move."""

import pytest

from coppelius.builder.assemble import assemble
from coppelius.builder.kernel import Kernel
from coppelius.isa.operands import PT, RZ, P, R
from coppelius.isa.printer import texts
from coppelius.isa.refusal import Refusal
from coppelius.lowering.half_format import halve, with_half_format
from coppelius.program.listing import listing_text, parse_listing
from coppelius.program.program import Program
from coppelius.schedule.schedule import schedule


def program(*lines: str, control: str = "[B------:R-:W-:-:S05]") -> Program:
    return parse_listing("\n".join([".target sm86", *(f"{control} {line}" for line in lines), ""]))


def bf16(line: str) -> str:
    """The counterpart's text."""
    (text,) = texts(with_half_format(program(line), "bf16")[0].decoded)
    return text


@pytest.mark.parametrize(
    ("f16", "counterpart"),
    [
        ("F2FP.PACK_AB R1, R2, R3", "F2FP.BF16.PACK_AB R1, R2, R3"),
        ("F2FP.RELU.PACK_AB R1, RZ, R3", "F2FP.RELU.BF16.PACK_AB R1, RZ, R3"),
        ("HADD2.F32 R1, -RZ, R2.H0_H0", "IMAD.U32 R1, R2, 0x10000, RZ"),
        ("HADD2.F32 R1, -RZ, R2.H1_H1", "LOP3.LUT R1, R2, 0xffff0000, RZ, 0xc0, !PT"),
        ("HADD2 R1, R2, R3", "HFMA2.BF16_V2 R1, R2, 1, 1, R3"),
        ("HADD2 R1, R2, -R3", "HFMA2.BF16_V2 R1, R2, 1, 1, -R3"),
        ("HMUL2 R1, R2, R3", "HFMA2.BF16_V2 R1, R2, R3, -RZ.H0_H0"),
        ("HFMA2 R1, R2, R3, R4", "HFMA2.BF16_V2 R1, R2, R3, R4"),
        ("HFMA2.RELU R1, R2, R3, R4", "HFMA2.BF16_V2.RELU R1, R2, R3, R4"),
        ("HFMA2 R1, R2, 1.5, -2, R4", "HFMA2.BF16_V2 R1, R2, 1.5, -2, R4"),
        ("HMNMX2 R1, R2, R3, !PT", "HMNMX2.BF16_V2 R1, R2, R3, !PT"),
        ("HMNMX2.NAN R1, R2, R3, PT", "HMNMX2.BF16_V2.NAN R1, R2, R3, PT"),
        ("HMMA.16816.F32 R4, R8, R2, R4", "HMMA.16816.F32.BF16 R4, R8, R2, R4"),
        ("HMMA.1688.F32 R4, R8, R2, RZ", "HMMA.1688.F32.BF16 R4, R8, R2, RZ"),
        ("@!P0 HADD2 R1, R2, R3", "@!P0 HFMA2.BF16_V2 R1, R2, 1, 1, R3"),
        ("FADD R1, R2, R3", "FADD R1, R2, R3"),
        ("LDG.E.U16 R1, [R2]", "LDG.E.U16 R1, [R2]"),
    ],
)
def test_the_counterpart_is_what_compiled_code_uses(f16: str, counterpart: str) -> None:
    assert bf16(f16) == counterpart


@pytest.mark.parametrize(
    "line",
    [
        "HADD2.F32 R1, R2.H0_H0, R3.H0_H0",
        "HADD2.SAT R1, R2, R3",
        "HMUL2.F32 R1, R2, R3",
        "HMMA.16816.F16 R4, R8, R2, R4",
        "HSETP2.EQ.AND P0, PT, R2, R6, PT",
        "MUFU.EX2.F16 R1, R2",
        "F2F.F16.F32 R1, R2",
        "HFMA2 R1, R2, 1.0009765625, 1, R4",
    ],
)
def test_what_has_no_counterpart_is_refused_by_name(line: str) -> None:
    with pytest.raises(Refusal, match=r"^instruction 0 \(.*\): no bf16 counterpart"):
        with_half_format(program(line), "bf16")


def test_the_same_format_keeps_every_byte() -> None:
    listing = listing_text(program("HADD2 R1, R2, R3", "F2FP.PACK_AB R1, R2, R3"))
    assert halve(listing, "f16") == (listing, [0, 1])


def test_a_program_in_bf16_and_an_unknown_format_are_refused() -> None:
    with pytest.raises(Refusal, match=r"instruction 1 \(HFMA2.BF16_V2 .*\) is already bf16"):
        with_half_format(program("NOP", "HFMA2.BF16_V2 R1, R2, R3, R4"), "f16")
    with pytest.raises(Refusal, match="half format 'fp8' is unknown; known: bf16, f16"):
        with_half_format(program("NOP"), "fp8")


def test_control_words_stay_where_the_pipe_does() -> None:
    control = "[B0-2---:R3:W1:-:S07]"
    before = program("HFMA2 R1, R2, R3, R4", "HMMA.16816.F32 R4, R8, R2, R4", control=control)
    after, _ = with_half_format(before, "bf16")
    assert [row.control for row in after] == [row.control for row in before]


def test_another_pipe_raises_only_the_stalls_that_it_needs() -> None:
    k = Kernel({})
    k.FADD(R(9), R(8), R(8))
    k.HADD2_F32(R(1), -RZ, R(2, half="H0_H0"))
    k.IMAD_WIDE_U32(R(4), R(1), 3, RZ)
    k.finish()
    built = assemble(k.draft, k.table, registers=20)
    f16, _ = schedule(built.program, built.pins)
    after, origin = with_half_format(f16, "bf16")
    assert origin == list(range(len(f16)))
    assert after[0]["stall"] == f16[0]["stall"]
    assert all(b["stall"] >= a["stall"] for a, b in zip(f16, after, strict=True))


def test_a_stall_grows_where_the_counterpart_is_slower_to_a_reader() -> None:
    # a widened low half: HADD2.F32 to FFMA takes 5, IMAD.U32 to an ALU reader 5; HADD2 to HADD2 4 becomes HFMA2 4
    before = program(
        "HADD2.F32 R1, -RZ, R2.H0_H0", "LOP3.LUT R4, R1, 0x1, RZ, 0xc0, !PT", control="[B------:R-:W-:-:S04]"
    )
    after, _ = with_half_format(before, "bf16")
    assert [row["stall"] for row in after] == [5, 4]


def test_guards_of_predicates_are_read_as_before() -> None:
    k = Kernel({})
    k.ISETP_LT_AND(P(0), PT, R(1), R(2))
    k.HADD2_F32(R(3), -RZ, R(2, half="H1_H1"), guard=P(0))
    k.finish()
    built = assemble(k.draft, k.table, registers=20)
    after, _ = with_half_format(schedule(built.program, built.pins)[0], "bf16")
    assert next(iter(after))["stall"] == 13
