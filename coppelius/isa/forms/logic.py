"""Bitwise logic on registers and predicates, shifts, permutations, masks."""

from __future__ import annotations

from coppelius.isa.bits import bits
from coppelius.isa.form import ALU, FIXED, Flexible, Form
from coppelius.isa.forms.shared import Pd, Pd2, PdOptional, Ps, PsFalse, Pt, Ra, Rd
from coppelius.isa.slots import READ, Predicate, Register
from coppelius.isa.values import HEX, Immediate, Modifier

_B = Flexible("B", HEX)
_C = Flexible("C", HEX)
_LUT = Immediate("LUT", bits[79:72])
PREDICATE_LUT = Immediate("LUT", bits[76:72] + bits[66:64])
PREDICATE_LUT_2 = Immediate("LUT2", bits[23:16])
_Pu = Predicate("Pu", bits[70:68], READ, inverted=bits[71])
_UPu = Predicate("Pu", bits[70:68], READ, inverted=bits[71], uniform=True)
_SIGN_A = Register("A", bits[31:24], READ, reuse=bits[122], suffix=".SIGN")
_SIGN = Flexible("B", spaced=True, suffix=".SIGN")
_SIGN_C = Flexible("C", suffix=".SIGN")

SHIFT_MODIFIERS = (
    Modifier("SIDE", bits[76], {0: ".L", 1: ".R"}),
    Modifier("WRAP", bits[75], {0: "", 1: ".W"}),
    Modifier("TYPE", bits[74:73], {0: ".S64", 1: ".U64", 2: ".S32", 3: ".U32"}, default=3),
    Modifier("HI", bits[80], {0: "", 1: ".HI"}),
)
PERMUTE_MODE = Modifier("MODE", bits[74:72], {0: "", 1: ".F4E", 2: ".B4E", 3: ".RC8", 4: ".ECL", 5: ".ECR", 6: ".RC16"})

# fmt: off
FORMS = [
    Form("LOP3.LUT", 0x012, ALU, FIXED, (PdOptional, Rd, Ra, _B, Flexible("C"), _LUT, PsFalse),
         (Modifier("PAND", bits[80], {0: "", 1: ".PAND"}),), "1456"),
    Form("PLOP3.LUT", 0x81c, ALU, FIXED, (Pd, Pd2, Ps, Pt, _Pu, PREDICATE_LUT, PREDICATE_LUT_2), fixed={bits[67]: 0, bits[91]: 0}),
    Form("PLOP3.LUT", 0x81c, ALU, FIXED, (Pd, Pd2, Ps, Pt, _UPu, PREDICATE_LUT, PREDICATE_LUT_2), fixed={bits[67]: 1, bits[91]: 0},
         variant="uniform"),
    # of the sign bits of registers
    Form("PLOP3.LUT", 0x01d, ALU, FIXED, (Pd, Pd2, Ps, _SIGN, _Pu, _LUT, PREDICATE_LUT_2), (), "156", variant="sign-"),
    Form("PLOP3.LUT", 0x01e, ALU, FIXED, (Pd, Pd2, Ps, _SIGN, _SIGN_C, _LUT, PREDICATE_LUT_2), (), "156", variant="signs-"),
    Form("PLOP3.LUT", 0x01f, ALU, FIXED, (Pd, Pd2, _SIGN_A, _SIGN, _SIGN_C, _LUT, PREDICATE_LUT_2), (), "156", variant="all-signs-"),
    Form("SHF", 0x019, ALU, FIXED, (Rd, Ra, _B, _C), SHIFT_MODIFIERS, "1234567"),
    Form("PRMT", 0x016, ALU, FIXED, (Rd, Ra, _B, _C), (PERMUTE_MODE,), "1234567"),
    Form("SGXT", 0x01a, ALU, FIXED, (Rd, Ra, Flexible("X", HEX)),
         (Modifier("WRAP", bits[75], {0: "", 1: ".W"}), Modifier("U32", bits[73], {1: "", 0: ".U32"}, default=1)), "1456"),
    Form("BMSK", 0x01b, ALU, FIXED, (Rd, Ra, Flexible("X", HEX)), (Modifier("WRAP", bits[75], {0: "", 1: ".W"}),), "1456"),
]
# fmt: on
