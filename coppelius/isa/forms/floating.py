"""Single precision arithmetic."""

from __future__ import annotations

from coppelius.isa.bits import bits
from coppelius.isa.form import FIXED, FMA, Flexible, Form
from coppelius.isa.forms.shared import FLUSH, ROUNDING, SATURATE, Ra, RaSigned, Rd
from coppelius.isa.values import F32, Modifier

_SIGNED = Flexible("X", F32, negate=True, absolute=True)

# fmt: off
FORMS = [
    #    mnemonic opcode pipe latency operands                        modifiers                     forms
    Form("FADD",  0x021, FMA, FIXED,  (Rd, RaSigned, _SIGNED),        (FLUSH, ROUNDING, SATURATE),  "1237"),
    Form("FFMA",  0x023, FMA, FIXED,  (Rd, Ra, Flexible("B", F32, negate=True), Flexible("C", F32, negate=True)),
         (Modifier("FMZ", bits[76] + bits[80], {0: "", 1: ".FTZ", 2: ".FMZ"}), ROUNDING, SATURATE), "1234567"),
]
# fmt: on
