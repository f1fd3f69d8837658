"""Integer comparison, selection, minimum and maximum."""

from __future__ import annotations

from coppelius.isa.bits import Field, bits
from coppelius.isa.form import ALU, FIXED, Flexible, Form
from coppelius.isa.forms.shared import BOOLEAN, INTEGER_COMPARE, UNSIGNED, Pd, Pd2, Ps, Ra, Rd
from coppelius.isa.slots import READ, Predicate
from coppelius.isa.values import HEX, Hidden, Suffix

_B = Flexible("X", HEX, signed=True)
# the comparison of the lower halves, of the extended form
LOWER = Predicate("Pu", bits[70:68], READ, inverted=bits[71])
UNUSED_LOWER = Field("lower", bits[70:68], default=7)
HIDDEN_LOWER = Hidden("lower", "lower", usual=7)

# fmt: off
FORMS = [
    Form("ISETP", 0x00c, ALU, FIXED, (Pd, Pd2, Ra, _B, Ps), (INTEGER_COMPARE, UNSIGNED, BOOLEAN),
         "1456", fixed={bits[72]: 0}, extra=(UNUSED_LOWER,), hidden=(HIDDEN_LOWER,)),
    Form("ISETP", 0x00c, ALU, FIXED, (Pd, Pd2, Ra, _B, Ps, LOWER), (INTEGER_COMPARE, UNSIGNED, BOOLEAN, Suffix(".EX")),
         "1456", fixed={bits[72]: 1}, variant="ex"),
    Form("SEL", 0x007, ALU, FIXED, (Rd, Ra, Flexible("X", HEX), Ps), (), "1456"),
    Form("IMNMX", 0x017, ALU, FIXED, (Rd, Ra, _B, Ps), (UNSIGNED,), "1456"),
]
# fmt: on
