"""Integer arithmetic.  A carry chain is two rows: the plain one writes carries, the `.X` one also reads them."""

from __future__ import annotations

from coppelius.isa.bits import bits
from coppelius.isa.form import ALU, FIXED, FMA, WIDE, Flexible, Form
from coppelius.isa.forms.shared import (
    CARRY,
    CARRY_2,
    HIDDEN_CARRY,
    HIDDEN_CARRY_2,
    LONE_CARRY_OUT,
    UNSIGNED,
    Pd2Optional,
    PdOptional,
    PsFalse,
    PtFalse,
    Ra,
    RaInverted,
    RaNegated,
    Rd,
    RdPair,
)
from coppelius.isa.operands import RZ_INDEX
from coppelius.isa.slots import Columns
from coppelius.isa.values import HEX, Alias, Immediate, Suffix

_X = Suffix(".X")
# IADD3 and LEA say how sources are negated; of the `.X` rows the same bits complement
_B, _C = Flexible("B", HEX, negate=True, signed=True), Flexible("C", negate=True)
_B_X, _C_X = Flexible("B", HEX, invert=True, signed=True), Flexible("C", invert=True)
_CARRIES = (PdOptional, Pd2Optional)

_FACTOR = Flexible("B", HEX, signed=True)
_TERM, _TERM_X = Flexible("C", HEX, negate=True, signed=True), Flexible("C", HEX, invert=True, signed=True)
# IMAD.WIDE and IMAD.HI add 64 bits (measured: even registers in all 1,673 compiled IMAD.HI that add any)
_PAIR, _PAIR_X = (
    Flexible("C", negate=True, width=2),
    Flexible("C", invert=True, width=2),
)


def _of_registers(columns: Columns) -> list[str]:
    """IMAD is named a move where a factor is RZ."""
    pairs = zip(columns["A"], columns["B"], strict=True)
    return [".MOV" if RZ_INDEX in pair else "" for pair in pairs]


def _of_first(columns: Columns) -> list[str]:
    return [".MOV" if a == RZ_INDEX else "" for a in columns["A"]]


def _of_immediate(columns: Columns) -> list[str]:
    """A factor of 1 adds, a power of two shifts, 0 moves."""
    return [
        ".MOV" if a == RZ_INDEX or b == 0 else
        (".MOV" if c == RZ_INDEX else ".IADD") if b == 1 else
        ".SHL" if c == RZ_INDEX and b in _SHIFTS else ""
        for a, b, c in zip(columns["A"], columns["B"], columns["C"], strict=True)
    ]  # fmt: skip


_SHIFTS = frozenset(1 << n for n in range(1, 31) if n != 16)  # nvdisasm leaves 0x10000 out
_ALIASES = ("MOV", "IADD", "SHL")
_SHIFT = Immediate("S", bits[79:75])

# fmt: off
FORMS = [
    Form("IADD3", 0x010, ALU, FIXED, (Rd, *_CARRIES, RaNegated, _B, _C),
         forms="1456", fixed={bits[74]: 0}, extra=(CARRY, CARRY_2), hidden=(HIDDEN_CARRY, HIDDEN_CARRY_2, LONE_CARRY_OUT)),
    Form("IADD3.X", 0x010, ALU, FIXED, (Rd, *_CARRIES, RaInverted, _B_X, _C_X, PsFalse, PtFalse),
         forms="1456", fixed={bits[74]: 1}, hidden=(LONE_CARRY_OUT,)),

    *(Form("IMAD", 0x024, FMA, FIXED, (Rd, Ra, _FACTOR, _TERM), (*alias, UNSIGNED),
           forms=forms, fixed={bits[74]: 0, bits[83:81]: 7}, extra=(CARRY,), hidden=(HIDDEN_CARRY,), bindless=bindless)
      for forms, alias, bindless in (
          ("123", (Alias("alias", _of_registers, _ALIASES),), "never"), ("4", (Alias("alias", _of_immediate, _ALIASES),), "never"),
          ("5", (Alias("alias", _of_first, _ALIASES),), "never"), ("67", (), "never"), ("35", (), "only"))),
    Form("IMAD", 0x024, FMA, FIXED, (Rd, Ra, _FACTOR, _TERM_X, PsFalse), (UNSIGNED, _X),
         forms="1234567", fixed={bits[74]: 1, bits[83:81]: 7}, variant="x"),
    Form("IMAD.HI", 0x027, WIDE, FIXED, (Rd, PdOptional, Ra, _FACTOR, _PAIR), (UNSIGNED,),
         forms="134567", fixed={bits[74]: 0}, extra=(CARRY,), hidden=(HIDDEN_CARRY,)),
    Form("IMAD.HI", 0x027, WIDE, FIXED, (Rd, PdOptional, Ra, _FACTOR, _PAIR_X, PsFalse), (UNSIGNED, _X),
         forms="134567", fixed={bits[74]: 1}, variant="x"),
    Form("IMAD.WIDE", 0x025, WIDE, FIXED, (RdPair, PdOptional, Ra, _FACTOR, _PAIR), (UNSIGNED,),
         forms="134567", fixed={bits[74]: 0}, extra=(CARRY,), hidden=(HIDDEN_CARRY,)),
    Form("IMAD.WIDE", 0x025, WIDE, FIXED, (RdPair, PdOptional, Ra, _FACTOR, _PAIR_X, PsFalse), (UNSIGNED, _X),
         forms="134567", fixed={bits[74]: 1}, variant="x"),

    # (A << S) + B; `.HI` (C:A << S) >> 32 + B; `.SX32` takes the sign of A for C
    Form("LEA", 0x011, ALU, FIXED, (Rd, PdOptional, RaNegated, Flexible("B", HEX, negate=True), _SHIFT),
         forms="1456", fixed={bits[71:64]: RZ_INDEX, bits[80]: 0, bits[74:73]: 0}, extra=(CARRY,), hidden=(HIDDEN_CARRY,)),
    Form("LEA.X", 0x011, ALU, FIXED, (Rd, PdOptional, RaInverted, Flexible("B", HEX, invert=True), _SHIFT, PsFalse),
         forms="1456", fixed={bits[71:64]: RZ_INDEX, bits[80]: 0, bits[74:73]: 2}),
    Form("LEA.HI", 0x011, ALU, FIXED, (Rd, PdOptional, RaNegated, Flexible("B", HEX, negate=True), Flexible("C"), _SHIFT),
         forms="1456", fixed={bits[80]: 1, bits[74:73]: 0}, extra=(CARRY,), hidden=(HIDDEN_CARRY,)),
    Form("LEA.HI.X", 0x011, ALU, FIXED, (Rd, PdOptional, RaInverted, Flexible("B", HEX, invert=True), Flexible("C"), _SHIFT, PsFalse),
         forms="1456", fixed={bits[80]: 1, bits[74:73]: 2}),
    # the place of B's sign belongs to the shift there
    Form("LEA.HI", 0x011, ALU, FIXED, (Rd, PdOptional, RaNegated, Flexible("B"), Flexible("C", HEX), _SHIFT),
         forms="2", fixed={bits[80]: 1, bits[74:73]: 0}, extra=(CARRY,), hidden=(HIDDEN_CARRY,)),
    Form("LEA.HI.X", 0x011, ALU, FIXED, (Rd, PdOptional, RaInverted, Flexible("B"), Flexible("C", HEX), _SHIFT, PsFalse),
         forms="2", fixed={bits[80]: 1, bits[74:73]: 2}),
    Form("LEA.HI.SX32", 0x011, ALU, FIXED, (Rd, PdOptional, RaNegated, Flexible("B", HEX, negate=True), _SHIFT),
         forms="1456", fixed={bits[71:64]: RZ_INDEX, bits[80]: 1, bits[74:73]: 1}, extra=(CARRY,), hidden=(HIDDEN_CARRY,)),
    Form("LEA.HI.X.SX32", 0x011, ALU, FIXED, (Rd, PdOptional, RaInverted, Flexible("B", HEX, invert=True), _SHIFT, PsFalse),
         forms="1456", fixed={bits[71:64]: RZ_INDEX, bits[80]: 1, bits[74:73]: 3}),

    Form("IABS", 0x013, ALU, FIXED, (Rd, Flexible("X", HEX, signed=True)), forms="1456"),
]
# fmt: on
