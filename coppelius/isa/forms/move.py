"""Moves between general registers, predicates and immediates."""

from __future__ import annotations

from coppelius.isa.bits import Field, bits
from coppelius.isa.form import ALU, FIXED, Flexible, Form
from coppelius.isa.forms.shared import Ra, Rd
from coppelius.isa.slots import BYTE_SELECT, READ, WRITE, Access, Columns, Register, Slot, Values
from coppelius.isa.values import HEX, Immediate, Modifier

# the lanes of four that are written, all of them where nothing is said
_MASK = Immediate("MASK", bits[75:72], absent=15, default=15)


class AllPredicates(Slot):
    """`PR`: P0 to P6 at once.  Its field is a reserved zero, which is the number of the first."""

    text, space = "PR", "P"

    def __init__(self, mode: str) -> None:
        self.name = "PR"
        self.fields = (Field("PR", bits[75:72], codes=frozenset((0,))),)
        self.accesses = (Access("PR", self.space, "PR", mode, width=7),)

    def render(self, columns: Columns) -> list[str]:
        return [self.text] * len(columns["PR"])

    def parse(self, text: str) -> Values | None:
        return {"PR": 0} if text.strip() == self.text else None

    def accept(self, value: object) -> Values | None:
        return self.parse(value) if isinstance(value, str) else None


class AllUniformPredicates(AllPredicates):
    """`UPR`: UP0 to UP6 at once."""

    text, space = "UPR", "UP"


BYTES = BYTE_SELECT
_RaByte = Register(
    "A", bits[31:24], READ, reuse=bits[122], tail=(Field("byte", bits[77:76], codes=frozenset(BYTES)), BYTES)
)

# fmt: off
FORMS = [
    Form("MOV", 0x002, ALU, FIXED, (Rd, Flexible("X", HEX), _MASK), (), "1456"),
    # predicates as bits of one byte of a register, under a mask
    Form("P2R", 0x003, ALU, FIXED, (Rd, AllPredicates(READ), Ra, Flexible("X", HEX, signed=True)), (Modifier("byte", bits[77:76], BYTES),), "1456"),
    Form("R2P", 0x004, ALU, FIXED, (AllPredicates(WRITE), _RaByte, Flexible("X", HEX)), (), "1456"),
]
# fmt: on
