"""Integer arithmetic and logic."""

from __future__ import annotations

from coppelius.isa.bits import bits
from coppelius.isa.form import ALU, FIXED, Flexible, Form
from coppelius.isa.forms.shared import RaNegated, Rd
from coppelius.isa.slots import Predicate
from coppelius.isa.values import HEX

_CARRY_OUT = Predicate("Pd", bits[83:81], "write", optional={"Pd": 7})
_CARRY_OUT_2 = Predicate("Pd2", bits[86:84], "write", optional={"Pd2": 7})

# fmt: off
FORMS = [
    Form("IADD3", 0x010, ALU, FIXED,
         (Rd, _CARRY_OUT, _CARRY_OUT_2, RaNegated, Flexible("B", HEX, negate=True, signed=True), Flexible("C", negate=True)),
         forms="1456", fixed={bits[74]: 0, bits[90:87]: 15, bits[80:77]: 15}),
]
# fmt: on
