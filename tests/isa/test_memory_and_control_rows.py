"""What instructions of memory, control flow and the warp read and write, and what their rows refuse.

Each text is nvdisasm's own (test_oracle holds the table to it); registers are written out by hand from the
published meaning of the instruction.
"""

from __future__ import annotations

import pytest

from coppelius.isa import parser
from coppelius.isa.access import Touch, reads, writes
from coppelius.isa.operands import Address, R
from coppelius.isa.refusal import Refusal
from coppelius.isa.table import sm86
from coppelius.program.program import Instruction, Program

# fmt: off
USES = [
    # text, registers read, registers written
    ("LDG.E R5, [R2.64]",                             "R2 R3 UR4 UR5",                "R5"),
    ("LDG.E.128.CONSTANT R4, [R22.64+0x10] {ur=8}",   "R22 R23 UR8 UR9",              "R4 R5 R6 R7"),
    ("LDG.E.64 R6, [R2]",                             "R2 R3",                        "R6 R7"),
    ("LDG R6, [R2]",                                  "R2",                           "R6"),
    ("LDG.E.U8 R6, [R2.64+UR6+0x1], !P1",             "R2 R3 UR6 UR7 P1",             "R6"),
    ("LDG.E R6, [R2.U32+UR6]",                        "R2 UR6 UR7",                   "R6"),
    ("LDG.E R6, desc[UR10][R2.64]",                   "R2 R3 UR10 UR11",              "R6"),
    ("@P3 STG.E.64 [R2.64], R6",                      "P3 R2 R3 UR4 UR5 R6 R7",       ""),
    ("ST.E.128 [R12.64], R4",                         "R12 R13 UR4 UR5 R4 R5 R6 R7",  ""),
    ("LDL.64 R4, [R1+0x8]",                           "R1",                           "R4 R5"),
    ("LDS.128 R4, [R9.X16+UR4]",                      "R9 UR4",                       "R4 R5 R6 R7"),
    ("STS.U16 [R28], R18",                            "R28 R18",                      ""),
    ("LDSM.16.MT88.2 R12, [R26]",                     "R26",                          "R12 R13"),
    ("LDGSTS.E.BYPASS.128 [R9], [R26.64], P0",        "R9 R26 R27 UR4 UR5 P0",        ""),
    ("LDC.64 R4, c[0x3][R6+0x160]",                   "R6",                           "R4 R5"),
    ("RED.E.ADD.F64.RN.STRONG.GPU [R4.64], R2",       "R4 R5 UR4 UR5 R2 R3",          ""),
    ("ATOMG.E.ADD.STRONG.GPU PT, R11, [R8.64], R4",   "R8 R9 UR4 UR5 R4",             "R11"),
    ("ATOMG.E.CAS.64.STRONG.GPU P1, R4, [R8], R10, R12", "R8 R9 R10 R11 R12 R13",     "P1 R4 R5"),
    ("ATOMS.ADD R11, [R8], R12",                      "R8 R12",                       "R11"),
    ("ATOMS.CAST.SPIN.64 R2, [R28], R22, R24",        "R28 R22 R23 R24 R25",          "R2 R3"),
    ("CCTL.E.PF2 [R10+0x640]",                        "R10 R11",                      ""),
    ("QSPC.E.S P0, RZ, [R28]",                        "R28 R29",                      "P0"),

    ("@!P0 BRA P1, 0x40",                             "P0 P1",                        ""),
    ("BRA.DIV ~URZ, 0x40",                            "",                             ""),
    ("BRA.DIV UR4, 0x40",                             "UR4",                          ""),
    ("BRX R88 -0xc80",                                "R88 R89",                      ""),
    ("RET.REL.NODEC R6 0x0",                          "R6 R7",                        ""),
    ("CALL.REL.NOINC 0x40",                           "",                             ""),
    ("BSSY B1, 0x40",                                 "",                             "B1"),
    ("BSYNC B1",                                      "B1",                           ""),
    ("BREAK B3",                                      "B3",                           "B3"),
    ("BMOV.32.CLEAR R3, B5",                          "B5",                           "R3 B5"),
    ("BMOV.32 B5, R3",                                "R3",                           "B5"),
    ("WARPSYNC R6",                                   "R6",                           ""),
    ("EXIT",                                          "",                             ""),

    ("S2R R4, SR_TID.X",                              "",                             "R4"),
    ("CS2R R4, SR_CLOCKLO",                           "",                             "R4 R5"),
    ("CS2R.32 R5, SR_CLOCKLO",                        "",                             "R5"),
    ("BAR.SYNC.DEFER_BLOCKING 0x0",                   "",                             ""),
    ("BAR.RED.AND.DEFER_BLOCKING 0x0, !P2",           "P2",                           ""),
    ("BAR.SYNC R6, R6",                               "R6",                           ""),
    ("BAR.ARV 0x2, R7",                               "R7",                           ""),
    ("B2R.RESULT RZ, P1",                             "",                             "P1"),
    ("DEPBAR.LE SB0, 0x0, {4,3,2,1}",                 "",                             ""),
    ("SHFL.IDX P0, R5, R6, R7, R8",                   "R6 R7 R8",                     "P0 R5"),
    ("SHFL.BFLY PT, R9, R0, 0x10, 0x1f",              "R0",                           "R9"),
    ("VOTE.ALL P1, !P2",                              "P2",                           "P1"),
    ("VOTE.ANY R15, PT, P3",                          "P3",                           "R15"),
    ("MATCH.ALL.U64 P3, R8, R2",                      "R2 R3",                        "P3 R8"),

    ("TEX.SCR.LL R20, R22, R2, R27, 0x0, 0x5c, 2D",   "R2 R27",                       "R20 R21 R22 R23"),
    ("SULD.D.BA.2D.128.STRONG.SM.TRAP R4, [R10], R3", "R10 R3",                       "R4 R5 R6 R7"),
]
# fmt: on


def assemble(text: str) -> bytes:
    """The word of this text, the first of its program."""
    encoding, values = parser.parse(sm86(), text)
    return Program.of([Instruction(encoding, tuple(values))], sm86()).encode()


def names(touched: list[Touch]) -> set[str]:
    return {f"{t.space}{t.number}" for t in touched}


@pytest.mark.parametrize(("text", "read", "written"), USES, ids=[row[0] for row in USES])
def test_registers_read_and_written(text: str, read: str, written: str) -> None:
    encoding, values = parser.parse(sm86(), text)
    assert names(reads(encoding, values)) == set(read.split())
    assert names(writes(encoding, values)) == set(written.split())


@pytest.mark.parametrize(
    "text",
    [
        "LDG.E.64 R5, [R2.64]",  # a pair from an odd register
        "LDG.E R5, [R3.64]",
        "STG.E.128 [R2.64], R6",
        "LDG.E.256 R4, [R2.64]",
        "LDS R4, [R2.64]",
        "LDS R4, [R2.X2]",
        "BSSY B16, 0x40",
        "BRA 0x42",
        "DEPBAR.LE SB6, 0x0",
        "DEPBAR.LE SB0, 0x40",
        "BAR.SYNC 0x10",
        "S2R R4, SR_NOTHING",
        "SHFL.BFLY PT, R9, R0, 0x20, 0x1f",
        "LDG.E R5, [R2.64] {ur=64}",
        "LDG.E R5, [R2.64] {uniform=4}",
    ],
)
def test_text_that_no_word_holds_is_refused(text: str) -> None:
    with pytest.raises(Refusal):
        assemble(text)


def test_an_address_takes_only_what_its_way_has() -> None:
    shared = next(s for s in sm86().by_name["LDS"].operands if s.name == "address")
    assert shared.accept(Address(R(4), 16, scale=8)) == {"address.base": 4, "address.offset": 16, "address.scale": 2}
    assert shared.accept(R(4)) == {"address.base": 4, "address.offset": 0, "address.scale": 0}
    assert shared.accept(Address(R(4), 1 << 23)) is None
    assert shared.accept(Address(R(4), scale=2)) is None
    assert shared.accept(Address(-R(4))) is None
    plain = next(s for s in sm86().by_name["LDG:plain"].operands if s.name == "address")
    assert plain.accept(Address(R(4), scale=4)) is None


def test_every_opcode_of_ours_has_a_latency_class_and_a_pipe() -> None:
    """A result that a scoreboard signals belongs to a row that writes; a row without a result writes no register."""
    wrong = [
        e.name
        for e in sm86().encodings
        if e.latency == "none" and any(a.mode == "write" and a.space in ("R", "UR", "P", "UP") for a in e.accesses)
    ]
    assert wrong == []
