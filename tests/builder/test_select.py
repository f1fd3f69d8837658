"""From mnemonic and operands to one encoding: new registers by name, optional predicates, refusals."""

import pytest

from coppelius.builder.emitter import mnemonic_of
from coppelius.builder.kernel import Kernel
from coppelius.builder.registers import FIRST_VIRTUAL
from coppelius.isa.operands import PT, RZ, Constant, P, R
from coppelius.isa.refusal import Refusal


@pytest.fixture
def k() -> Kernel:
    return Kernel({"out": ("pointer", "f32", 0x160), "count": ("scalar", "u32", 0x168)})


@pytest.mark.parametrize(
    ("name", "mnemonic"),
    [
        ("FADD", "FADD"),
        ("ISETP_GE_U32_AND", "ISETP.GE.U32.AND"),
        ("F2FP_PACK_AB", "F2FP.PACK_AB"),
        ("BAR_SYNC_DEFER_BLOCKING", "BAR.SYNC.DEFER_BLOCKING"),
        ("HFMA2_BF16_V2", "HFMA2.BF16_V2"),
    ],
)
def test_an_underscore_is_the_mnemonics_dot_unless_the_name_has_one_of_its_own(name: str, mnemonic: str) -> None:
    assert mnemonic_of(name) == mnemonic


def test_a_string_names_a_new_register_as_wide_as_the_form_writes(k: Kernel) -> None:
    single = k.FADD("single", RZ, 1.0)
    pair = k.IMAD_WIDE_U32("pair", single, 4, RZ)
    assert (single.index, pair.width) == (FIRST_VIRTUAL, 2)
    assert pair.index % 2 == 0
    assert [v.name for v in k.draft.names.virtuals] == ["single", "pair"]


def test_an_existing_register_is_written_in_place(k: Kernel) -> None:
    x = k.FADD("x", RZ, 1.0)
    assert k.FADD(x, x, x) is None
    assert len(k.draft.names.virtuals) == 1
    assert [t.number for t in k.draft.items[1].writes] == [x.index]


def test_a_trailing_predicate_may_be_left_out_and_reads_as_true(k: Kernel) -> None:
    p = k.ISETP_GE_AND("p", PT, RZ, 4)
    item = k.draft.items[0]
    assert isinstance(p, P)
    assert (item.values[item.encoding.column["Ps"]], item.values[item.encoding.column["Ps.not"]]) == (7, 0)


@pytest.mark.parametrize(("operand", "form"), [(R(3), "1"), (2.5, "2"), (Constant(0, 0x160), "3")])
def test_the_operands_choose_the_form(k: Kernel, operand: object, form: str) -> None:
    k.FADD("x", RZ, operand)
    assert k.draft.items[0].encoding.opcode >> 9 == int(form)


def test_an_unknown_instruction_is_refused_with_the_kernels_line(k: Kernel) -> None:
    with pytest.raises(Refusal, match=r"test_select\.py:\d+: FROB: sm86 has no such instruction"):
        k.FROB("x", RZ)


def test_wrong_operands_are_refused_with_the_forms_that_exist(k: Kernel) -> None:
    with pytest.raises(Refusal, match=r"FFMA: no form takes \(R, R, R\); forms: \(R, R, "):
        k.FFMA(R(1), R(2), R(3))


def test_two_constants_in_one_instruction_are_refused(k: Kernel) -> None:
    with pytest.raises(Refusal, match=r"FFMA: no form takes"):
        k.FFMA("x", RZ, Constant(0, 0x160), Constant(0, 0x164))


def test_a_control_field_that_no_word_has_is_refused(k: Kernel) -> None:
    with pytest.raises(Refusal, match="no control field stalls"):
        k.FADD("x", RZ, RZ, stalls=3)


def test_a_parameter_that_the_image_lacks_is_refused_with_those_it_has(k: Kernel) -> None:
    with pytest.raises(Refusal, match=r"no parameter 'n'; the image declares: out, count"):
        k.parameter("n")


def test_guards_do_not_nest(k: Kernel) -> None:
    p = k.ISETP_GE_AND("p", PT, RZ, 4)
    with k.when(p), pytest.raises(Refusal, match="guards do not nest"), k.when(~p):
        pass


def test_when_guards_what_is_emitted_inside_and_nothing_after(k: Kernel) -> None:
    p = k.ISETP_GE_AND("p", PT, RZ, 4)
    with k.when(~p):
        k.FADD("x", RZ, 1.0)
    k.FADD("y", RZ, 1.0)
    assert [item.guard for item in k.draft.items] == [(7, 0), (p.index, 1), (7, 0)]


def test_every_instruction_knows_the_line_and_region_it_comes_from(k: Kernel) -> None:
    with k.region("outer"), k.region("inner"):
        k.zero("x")
    source = k.draft.items[0].source
    assert source.file.endswith("test_select.py")
    assert source.region == "outer/inner"


def test_a_label_placed_twice_is_refused(k: Kernel) -> None:
    again = k.label("again")
    k.place(again)
    with pytest.raises(Refusal, match="is placed twice"):
        k.place(again)
