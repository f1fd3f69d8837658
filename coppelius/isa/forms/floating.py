"""Single precision arithmetic."""

from __future__ import annotations

from coppelius.isa.bits import bits
from coppelius.isa.form import ALU, FIXED, FMA, Flexible, Form
from coppelius.isa.forms.shared import BOOLEAN, COMPARE, FLUSH, ROUNDING, SATURATE, Pd, Pd2, Ps, RaSigned, Rd
from coppelius.isa.values import F32, Modifier

_SIGNED = Flexible("X", F32, negate=True, absolute=True)
# FADD's only flexible operand is an addend: its reuse flag is that of C
_ADDEND = Flexible("X", F32, negate=True, absolute=True, reuse=bits[124])
_B, _C = Flexible("B", F32, negate=True, absolute=True), Flexible("C", F32, negate=True, absolute=True)
_FLUSH_OR_ZERO = Modifier("FMZ", bits[76] + bits[80], {0: "", 1: ".FTZ", 2: ".FMZ"})
_SCALE = Modifier("SCALE", bits[86:84], {4: "", 1: ".D8", 2: ".D4", 3: ".D2", 5: ".M2", 6: ".M4", 7: ".M8"}, default=4)

# fmt: off
FORMS = [
    #    mnemonic opcode pipe latency operands                 modifiers                                   forms
    Form("FADD",  0x021, FMA, FIXED,  (Rd, RaSigned, _ADDEND), (FLUSH, ROUNDING, SATURATE),                "1237"),
    Form("FMUL",  0x020, FMA, FIXED,  (Rd, RaSigned, _SIGNED), (_FLUSH_OR_ZERO, _SCALE, ROUNDING, SATURATE), "1456"),
    Form("FFMA",  0x023, FMA, FIXED,  (Rd, RaSigned, _B, _C),  (_FLUSH_OR_ZERO, ROUNDING, SATURATE),       "1234567"),

    Form("FSEL",  0x008, ALU, FIXED,  (Rd, RaSigned, _SIGNED, Ps), (FLUSH,),                               "1456"),
    Form("FMNMX", 0x009, ALU, FIXED,  (Rd, RaSigned, _SIGNED, Ps),
         (FLUSH, Modifier("NAN", bits[81], {0: "", 1: ".NAN"}), Modifier("XORSIGN", bits[82], {0: "", 1: ".XORSIGN"})), "1456"),
    Form("FSET.BF", 0x00a, ALU, FIXED, (Rd, RaSigned, _SIGNED, Ps), (COMPARE, FLUSH, BOOLEAN),             "1456"),
    Form("FSETP", 0x00b, ALU, FIXED,  (Pd, Pd2, RaSigned, _SIGNED, Ps), (COMPARE, FLUSH, BOOLEAN),         "1456"),
]
# fmt: on
