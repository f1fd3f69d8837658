"""Operations on the bytes of a register: absolute differences and dot products."""

from __future__ import annotations

from coppelius.isa.bits import bits
from coppelius.isa.form import ALU, FIXED, FMA, Flexible, Form
from coppelius.isa.forms.shared import UNSIGNED, PdOptional, Ra, Rd
from coppelius.isa.values import HEX, Modifier

_B, _C = Flexible("B", HEX), Flexible("C", HEX)
_ADDEND = Flexible("C", negate=True)

# fmt: off
FORMS = [
    Form("VABSDIFF", 0x014, ALU, FIXED, (Rd, PdOptional, Ra, _B, _C), (UNSIGNED,), "1234567"),
    Form("VABSDIFF4", 0x015, ALU, FIXED, (Rd, PdOptional, Ra, _B, _C),
         (Modifier("U8", bits[73], {1: "", 0: ".U8"}, default=1), Modifier("ACC", bits[75], {0: "", 1: ".ACC"})), "1234567"),
    Form("IDP.4A", 0x026, FMA, FIXED, (Rd, Ra, Flexible("B"), _ADDEND),
         (Modifier("TYPE", bits[74:73], {0: ".U8.U8", 1: ".S8.U8", 2: ".U8.S8", 3: ".S8.S8"}),), "156", fixed={bits[77:76]: 0}),
    Form("IDP.2A", 0x026, FMA, FIXED, (Rd, Ra, Flexible("B"), _ADDEND),
         (Modifier("HALF", bits[77], {0: ".LO", 1: ".HI"}),
          Modifier("TYPE", bits[74:73], {0: ".U16.U8", 1: ".S16.U8", 2: ".U16.S8", 3: ".S16.S8"})), "156", fixed={bits[76]: 1}),
]
# fmt: on
