"""Text to fields: the inverse of the printer, exactly; anything else is refused by name."""

from __future__ import annotations

import time
from random import Random

import numpy as np
import pytest

from coppelius.isa import codec, parser, printer
from coppelius.isa.codec import Decoded
from coppelius.isa.refusal import Refusal
from coppelius.isa.table import sm86
from coppelius.isa.word import halves

WORDS_A_ROW = 6
ADDRESS = 0x40

# text -> word without its control bits (from compiled code, or built and read by nvdisasm)
EXAMPLES = {
    "FADD R5, R9, R5": 0x0000000509057221,
    "IADD3.X R7, RZ, R3, RZ, P2, !PT": 0x00000000017FE4FF_00000003FF077210,
    "IMAD.MOV.U32 R7, RZ, RZ, RZ": 0x00000000078E00FF_000000FFFF077224,
    "IMAD.IADD R11, R11, 0x1, R6": 0x00000000078E0206_000000010B0B7824,
    "IMAD.SHL.U32 R2, R4, 0x4, RZ": 0x00000000078E00FF_0000000404027824,
    "IMAD.WIDE R2, R4, R6, c[0x0][0x168]": 0x00000000078E0206_00005A0004027625,
    "LEA.HI.X.SX32 R21, R27, c[0x0][0x194], 0x1, P0": 0x00000000000F0EFF_000065001B157A11,
    "LOP3.LUT R0, R5, 0x1, RZ, 0xc0, !PT": 0x00000000078EC0FF_0000000105007812,
    "PLOP3.LUT P0, PT, P0, P1, P2, 0xe0, 0x0": 0x0000000000703C20_000000000000781C,
    "SHF.R.S32.HI R26, RZ, R9, R8": 0x0000000000011408_00000009FF1A7219,
    "ISETP.LT.U32.AND.EX P0, PT, R0, R17, PT, P0": 0x0000000003F01100_000000110000720C,
    "HFMA2.BF16_V2 R19, R8, 1, 1, R13": 0x000000000020000D_3F803F8008137831,
    "HFMA2.BF16_V2 R21, R8, R13, -RZ.H0_H0": 0x00000000003400FF_0000000D08157231,
    "HADD2.F32 R11, -RZ, R6.H0_H0": 0x0000000000004100_20000006FF0B7230,
    "F2FP.BF16.PACK_AB R9, R14, R9": 0x00000000000010FF_000000090E09723E,
    "MUFU.EX2 R16, R11": 0x0000000000000800_0000000B00107308,
    "I2F.U8 R4, R6.B1": 0x0000000000001000_1000000600047306,
    "HMMA.16816.F32.BF16 R20, R12, R6, R20": 0x0000000000041814_000000060C14723C,
    "IMMA.16816.U8.S8 R16, R12.ROW, R6.COL, R16": 0x0000000000404410_000000060C107237,
    "@!UPT UIADD3 URZ, URZ, URZ, URZ": 0x000000000FFFE03F_0000003F3F3FF290,
    "ULDC.64 UR4, c[0x0][0x118]": 0x0000000000000A00_0000460000047AB9,
    "MUFU.RSQ R0, -QNAN {B=0xffffffff}": 0x0000000000001400_FFFFFFFF00007908,
}


CONTROL_FREE = ((1 << 128) - 1) & ~(0x1FFFF << 105)


@pytest.mark.parametrize("text", EXAMPLES)
def test_known_text_is_the_known_word(text: str) -> None:
    encoding, values = parser.parse(sm86(), text)
    row = np.zeros((1, sm86().columns), dtype=np.int64)
    row[0, : len(values)] = values
    word = codec.encode(Decoded(sm86(), np.array([encoding.uid], dtype=np.int16), row))
    number = (int(word[0, 1]) << 64 | int(word[0, 0])) & CONTROL_FREE
    assert f"{number:032x}" == f"{EXAMPLES[text]:032x}"


def test_printed_words_of_every_row_parse_back() -> None:
    seed = int(time.time())
    rng = Random(seed)
    table = sm86()
    words = []
    for encoding in table.encodings:
        for _ in range(WORDS_A_ROW):
            number = encoding.value
            for f in encoding.fields:
                value = f.default if f.name in ("stall", "keep") or rng.random() < 0.3 else rng.randint(f.low, f.high)
                if f.codes is not None and value not in f.codes:
                    value = rng.choice(sorted(f.codes))
                number |= f.bits.place((value ^ f.invert) & ((1 << f.width) - 1))
            words.append(halves(number))
    array = np.array(words, dtype=np.uint64)
    decoded = codec.decode(table, array)
    taken = np.flatnonzero(decoded.uids >= 0)
    assert len(taken) > len(words) // 3
    texts = printer.texts(decoded, ADDRESS)
    wrong = []
    for i in taken.tolist():
        encoding, values = parser.parse(table, texts[i], ADDRESS + 16 * i)
        expected = decoded.values[i, : len(values)].tolist()
        for name in parser.CONTROL_NAMES:
            expected[encoding.column[name]] = values[encoding.column[name]]
        if encoding.uid != decoded.uids[i] or values != expected:
            wrong.append(f"{texts[i]}: {encoding.name} {values} not {expected}")
    assert wrong == [], f"seed {seed}"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("FAD R1, R2, R3", "FAD: no sm86 instruction; nearest: FADD"),
        ("FADD.X R1, R2, R3", "FADD.X: FADD has no such modifiers"),
        ("FADD R1, R2", "FADD: no form takes (R1, R2); forms: "),
        ("FADD R1, R2, R256", "FADD: no form takes (R1, R2, R256), 256 is out of its range"),
        ("FADD R1, R2, R3, R4", "FADD: no form takes"),
        ("FADD R1, R2, R03", "FADD: no form takes"),
        ("IADD3 R1, R2, 0x100000000, RZ", ", 0x100000000 is out of its range; forms: "),
        ("IMAD R7, RZ, RZ, RZ", "it is written IMAD.MOV R7, RZ, RZ, RZ"),
        ("IMAD.MOV.U32 R7, R1, R2, RZ", "IMAD.MOV.U32: no form takes"),
        ("FADD R1, R2, 1.0", "it is written FADD R1, R2, 1"),
        ("MOV R1, c[0x0][0x161]", ", 0x161 is out of its range"),
        ("MOV R1, c[0x20][0x0]", ", 0x20 is out of its range"),
        ("MUFU.RSQ R0, -QNAN {C=0x1}", "MUFU.RSQ: no form takes"),
        ("MUFU.RSQ R0, 1 {B=0x3f800000}", "MUFU.RSQ: no form takes"),
        ("FADD R1, R2, -QNAN {B=0xzz}", "FADD: no form takes"),
        ("FADD R1, R2, -QNAN {B=0x1ffc00001}", "FADD: no form takes"),
        (f"LDG.E R4, [R2.64] {{ur={10**30}}}", "LDG.E: no form takes"),
        (f"BRA {2**70:#x}", f"BRA: no form takes ({2**70:#x}), {2**70:#x} is out of its range"),
        ("@P7 FADD R1, R2, R3", "is no instruction"),
        ("@UP0 FADD R1, R2, R3", "FADD: no form takes"),
        ("fadd r1, r2, r3", "fadd: no sm86 instruction"),
        ("", "is no instruction"),
    ],
)
def test_other_text_is_refused_by_name(text: str, reason: str) -> None:
    with pytest.raises(Refusal) as caught:
        parser.parse(sm86(), text)
    assert reason in str(caught.value)


def test_braces_say_what_the_text_hides() -> None:
    """A carry that nothing reads, a lone second carry out, a payload."""
    for text, field, value in (
        ("IADD3 R1, R2, R3, RZ {carry=14}", "carry", 14),
        ("IADD3 R1, P3, R2, R3, RZ {Pd2=P3}", "Pd2", 3),
        ("FADD R1, R2, -QNAN {B=0xffc00001}", "B", 0xFFC00001),
    ):
        encoding, values = parser.parse(sm86(), text)
        assert values[encoding.column[field]] == value, text
    encoding, values = parser.parse(sm86(), "IADD3 R1, P3, R2, R3, RZ")
    assert values[encoding.column["Pd"]] == 3
    assert values[encoding.column["Pd2"]] == 7
