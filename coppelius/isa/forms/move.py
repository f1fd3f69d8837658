"""Moves between general registers, predicates and immediates."""

from __future__ import annotations

from coppelius.isa.bits import bits
from coppelius.isa.form import ALU, FIXED, Flexible, Form
from coppelius.isa.forms.shared import Rd
from coppelius.isa.values import HEX, Immediate

# the lanes of four that are written, all of them where nothing is said
_MASK = Immediate("MASK", bits[75:72], absent=15, default=15)

# fmt: off
FORMS = [
    Form("MOV", 0x002, ALU, FIXED, (Rd, Flexible("X", HEX), _MASK), (), "1456"),
]
# fmt: on
