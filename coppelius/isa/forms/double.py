"""Double precision.  Each operand is a register pair; an immediate is its upper half; results come by scoreboard."""

from __future__ import annotations

from coppelius.isa.bits import bits
from coppelius.isa.form import FP64, VARIABLE, Flexible, Form
from coppelius.isa.forms.shared import BOOLEAN, FLOAT_COMPARE, ROUNDING, Pd, Pd2, Ps, RdPair
from coppelius.isa.slots import READ, Register
from coppelius.isa.values import F64_HIGH, Modifier

_Ra = Register("A", bits[31:24], READ, width=2, negate=bits[72], absolute=bits[73], reuse=bits[122])
_B = Flexible("B", F64_HIGH, negate=True, absolute=True, width=2)
_C = Flexible("C", F64_HIGH, negate=True, absolute=True, width=2)
_FACTOR = Flexible("X", F64_HIGH, negate=True, absolute=True, width=2)
# compared with as an addend is: its reuse flag is that of C
_COMPARED = Flexible("X", F64_HIGH, negate=True, absolute=True, width=2, reuse=bits[124])
# where a single-precision comparison has false and true
_COMPARE = Modifier("CMP", bits[79:76], dict(enumerate(FLOAT_COMPARE)) | {0: ".MIN", 15: ".MAX"})

# fmt: off
FORMS = [
    Form("DADD",  0x029, FP64, VARIABLE, (RdPair, _Ra, _C),     (ROUNDING,), "1237"),
    Form("DMUL",  0x028, FP64, VARIABLE, (RdPair, _Ra, _FACTOR), (ROUNDING,), "1456"),
    Form("DFMA",  0x02b, FP64, VARIABLE, (RdPair, _Ra, _B, _C), (ROUNDING,), "1234567"),
    Form("DSETP", 0x02a, FP64, VARIABLE, (Pd, Pd2, _Ra, _COMPARED, Ps), (_COMPARE, BOOLEAN), "1237"),
]
# fmt: on
