"""The SM86 table checked whole: unambiguous, every row decodes its own word, every bit claimed once."""

from __future__ import annotations

import numpy as np
import pytest

from coppelius.isa import codec
from coppelius.isa.bits import Field, bits
from coppelius.isa.form import ALU, FIXED, FMA, NO_RESULT, VARIABLE, Encoding, Flexible, Form
from coppelius.isa.forms.shared import Ra, Rd
from coppelius.isa.slots import READ, WRITE, Access, Predicate, Register, UniformRegister
from coppelius.isa.table import Table, sm86
from coppelius.isa.values import HEX, Modifier
from coppelius.isa.word import Words, halves

# only the codes of a field tell these apart: MUFU of a double's upper half, CCTL with and without an address
SHARED_OPCODES = {0x308, 0x908, 0xB08, 0xD08, 0x98F, 0x990}
# what the kernels and the compiled code of the same kinds need, a stem each
# fmt: off
NEEDED = [
    "FADD", "FMUL", "FFMA", "FSETP", "FSEL", "FMNMX", "FSET", "FCHK", "MUFU", "HADD2", "HMUL2", "HFMA2",
    "HMNMX2", "HSET2", "HSETP2", "DADD", "DMUL", "DFMA", "DSETP", "IADD3", "IMAD", "LEA", "IABS", "IMNMX",
    "ISETP", "SEL", "LOP3", "PLOP3", "SHF", "PRMT", "SGXT", "BMSK", "POPC", "FLO", "BREV", "VABSDIFF",
    "VABSDIFF4", "IDP", "MOV", "P2R", "R2P", "F2F", "F2I", "I2F", "FRND", "F2FP", "I2FP", "F2IP", "I2I", "I2IP",
    "HMMA", "IMMA", "BMMA", "DMMA", "MOVM", "ULDC", "UMOV", "UIADD3", "ULOP3", "UIMAD", "ULEA", "USHF",
    "UISETP", "USEL", "UPRMT", "UFLO", "UPOPC", "UBREV", "UPLOP3", "USGXT", "UBMSK", "UP2UR", "UR2UP", "R2UR",
    "S2UR", "VOTEU", "REDUX",
]
# fmt: on


def default_word(encoding: Encoding) -> Words:
    """The word of an instruction that says nothing."""
    number = encoding.value
    for f, value in zip(encoding.fields, encoding.defaults, strict=True):
        number |= f.bits.place((value ^ f.invert) & ((1 << f.width) - 1))
    return np.array([halves(number)], dtype=np.uint64)


def test_no_word_matches_two_rows() -> None:
    assert sm86().ambiguities() == []
    assert sm86().shared_opcodes == SHARED_OPCODES


def test_every_default_is_a_legal_value() -> None:
    wrong = [(e.name, f.name) for e in sm86().encodings for f in e.fields if not f.admits(f.default)]
    assert wrong == []


def test_every_encoding_decodes_its_own_default_word() -> None:
    table = sm86()
    words = np.concatenate([default_word(e) for e in table.encodings])
    decoded = codec.decode(table, words)
    wrong = [e.name for e, uid in zip(table.encodings, decoded.uids, strict=True) if uid != e.uid]
    assert wrong == []
    values = [decoded.values[i, : len(e.fields)].tolist() for i, e in enumerate(table.encodings)]
    assert values == [list(e.defaults) for e in table.encodings]


def test_each_bit_belongs_to_one_claim() -> None:
    for e in sm86().encodings:
        claims = [f.bits.mask for f in e.fields]
        assert sum(claims) == (1 << 128) - 1 - e.mask, e.name
        assert e.value & ~e.mask == 0, e.name


def test_every_operand_says_what_it_reads_or_writes() -> None:
    for e in sm86().encodings:
        touched = {a.field for a in e.accesses}
        for slot in e.operands:
            if isinstance(slot, Register | UniformRegister | Predicate):
                assert slot.name in touched, f"{e.name}: {slot.name}"
        assert "guard" in touched, e.name


def test_latency_agrees_with_what_is_written() -> None:
    for e in sm86().encodings:
        results = [a for a in e.accesses if a.mode == WRITE and a.space != "B"]
        if e.latency == NO_RESULT:
            assert not results, e.name
        elif e.mnemonic.split(".")[0] not in ("LDGDEPBAR",):
            assert results, e.name


def test_the_arithmetic_that_kernels_need_is_there() -> None:
    assert [stem for stem in NEEDED if stem not in sm86().by_stem] == []


@pytest.mark.parametrize(
    ("name", "widths"),
    [
        ("HMMA.16816.F32", {"D": 4, "A": 4, "B": 2, "C": 4}),
        ("HMMA.16816.F16", {"D": 2, "A": 4, "B": 2, "C": 2}),
        ("HMMA.1688.F32.BF16", {"D": 4, "A": 2, "B": 1, "C": 4}),
        ("HMMA.SP.16832.F32", {"D": 4, "A": 4, "B": 4, "C": 4, "M": 1}),
        ("IMMA.16832:8", {"D": 4, "A": 4, "B": 2, "C": 4}),
        ("IMMA.8816:8", {"D": 2, "A": 1, "B": 1, "C": 2}),
        ("DMMA.884", {"D": 4, "A": 2, "B": 2, "C": 4}),
        ("DFMA:1", {"D": 2, "A": 2, "B": 2, "C": 2}),
        ("IMAD.WIDE:1", {"D": 2, "A": 1, "B": 1, "C": 2}),
        ("IMAD.HI:1", {"D": 1, "A": 1, "B": 1, "C": 2}),
        ("F2F:f32.f64.1", {"D": 1, "B": 2}),
        ("F2F:f64.f32.1", {"D": 2, "B": 1}),
    ],
)
def test_widths_that_compiled_code_allocates(name: str, widths: dict[str, int]) -> None:
    found = {a.slot: a.width for a in sm86().by_name[name].accesses if a.space == "R"}
    assert found == widths


def test_a_bit_claimed_twice_cannot_be_constructed() -> None:
    form = Form("BAD", 0x123, ALU, FIXED, (Rd, Ra, Register("B", bits[31:24], READ)))
    with pytest.raises(ValueError, match=r"BAD: B claims bits \[24, 25, 26, 27, 28, 29, 30, 31\] twice"):
        form.expand()


def test_a_field_named_twice_cannot_be_constructed() -> None:
    form = Form("BAD", 0x123, ALU, FIXED, (Rd, Register("D", bits[31:24], READ)))
    with pytest.raises(ValueError, match=r"field named twice: \['D'\]"):
        form.expand()


def test_an_access_to_no_field_cannot_be_constructed() -> None:
    form = Form("BAD", 0x123, ALU, FIXED, (Rd,), implicit=(Access("Q", "R", "Q", READ),))
    with pytest.raises(ValueError, match="access to Q, which is no field of it"):
        form.expand()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Form("BAD", 0, "gpu", FIXED), "no pipe 'gpu'"),
        (lambda: Form("BAD", 0, ALU, "soon"), "no latency class 'soon'"),
        (lambda: Form("BAD", 0, ALU, FIXED, bindless="maybe"), "bindless 'maybe'"),
        (
            lambda: Form("BAD", 0, ALU, FIXED, (Rd, Flexible("X")), forms="4").expand(),
            "operand B has no immediate form",
        ),
    ],
)
def test_a_bad_row_says_what_is_bad(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match=message):
        make()


def test_rows_that_share_a_word_are_named() -> None:
    first = Form("ONE", 0x123, ALU, FIXED, (Rd, Ra))
    second = Form("TWO", 0x123, FMA, FIXED, (Rd, Ra), (Modifier("M", bits[72], {0: "", 1: ".M"}),))
    assert Table("test", [first, second]).ambiguities() == [("ONE", "TWO")]
    apart = Form("TWO", 0x123, FMA, FIXED, (Rd, Ra), fixed={bits[72]: 1})
    assert Table("test", [first, apart]).ambiguities() == []
    with pytest.raises(ValueError, match=r"encodings named twice: \['ONE'\]"):
        Table("test", [first, first])


def test_operand_forms_place_registers_signs_and_reuse() -> None:
    """Signs follow the place, reuse the role (facts: forms 2, 3 and 7 exchange the places)."""
    operands = (Rd, Flexible("B", HEX, negate=True), Flexible("C", HEX, negate=True))
    row = Form("ROW", 0x023, FMA, FIXED, operands, forms="1234567")
    places = {e.name: {f.name: f.bits.parts for f in e.fields} for e in row.expand()}
    assert places["ROW:1"]["B"] == ((32, 8),)
    assert places["ROW:1"]["C"] == ((64, 8),)
    assert places["ROW:3"]["B"] == ((64, 8),)
    assert places["ROW:3"]["B.negate"] == ((75, 1),)
    assert places["ROW:3"]["C.negate"] == ((63, 1),)
    assert places["ROW:3"]["B.reuse"] == ((123, 1),)
    assert places["ROW:7"]["C"] == ((32, 6),)
    assert [e.name.removeprefix("ROW:") for e in row.expand()] == ["1", "2", "3", "3x", "4", "5", "5x", "6", "7"]


def test_constant_bits_are_those_that_all_codes_agree_on() -> None:
    assert Field("f", bits[2:0], codes=frozenset((4, 5))).constant_bits() == (0b110, 0b100)
    assert Field("f", bits[2:0], codes=frozenset((7,)), invert=7).constant_bits() == (0b111, 0)
    assert Field("f", bits[2:0]).constant_bits() == (0, 0)


def test_a_variable_latency_is_what_scoreboards_are_for() -> None:
    """published and mined: never a scoreboard on ALU, FMA or tensor operations, always one on these."""
    stems = {e.mnemonic.split(".")[0]: e.latency for e in sm86().encodings}
    variable = ["MUFU", "POPC", "FLO", "BREV", "F2I", "I2F", "F2F", "FRND", "S2UR", "R2UR", "REDUX", "DFMA", "DMMA"]
    fixed = ["IADD3", "IMAD", "FFMA", "HFMA2", "HMMA", "IMMA", "I2I", "I2FP", "F2FP", "P2R", "ULDC", "VOTEU", "UIADD3"]
    assert {stems[stem] for stem in variable} == {VARIABLE}
    assert {stems[stem] for stem in fixed} == {FIXED}
