"""Shared memory: loads, stores, matrix loads, and copies from global memory that bypass registers."""

from __future__ import annotations

from coppelius.isa.address import AddressOperand
from coppelius.isa.bits import Bits, bits
from coppelius.isa.form import MEMORY, NO_RESULT, SHARED, VARIABLE, Form
from coppelius.isa.forms.addressing import COPY_ORDER, EVICT, LOADED, SIZE, STORED
from coppelius.isa.slots import READ, WRITE, Columns, Predicate, Register
from coppelius.isa.values import Modifier, Suffix

_SCALE = bits[79:78]


def shared_address(uniform: Bits | None = None) -> AddressOperand:
    """`[R4.X8+UR5+0x10]` in shared memory."""
    return AddressOperand("address", bits[31:24], bits[63:40], uniform=uniform, scale=_SCALE)


_PLAIN, _ADDED_LOAD, _ADDED_STORE = shared_address(), shared_address(bits[37:32]), shared_address(bits[69:64])
_MATRIX = AddressOperand("address", bits[31:24], bits[63:40], signed_alone=True)
_MATRIX_ADDED = AddressOperand("address", bits[31:24], bits[63:40], uniform=bits[37:32])

_COUNT = Modifier("COUNT", bits[73:72], {0: "", 1: ".2", 2: ".4"})
_SHAPE = Modifier("SHAPE", bits[79:78], {0: ".M88", 1: ".MT88", 2: ".M816", 3: ".M832"})
_TILES = Register("D", bits[23:16], WRITE, width=("COUNT", {0: 1, 1: 2, 2: 4}))

# LDGSTS: where the copied bytes go, where they come from
_INTO = AddressOperand("shared", bits[23:16], bits[63:44], signed_alone=True)
_INTO_ADDED = AddressOperand("shared", bits[23:16], bits[63:44], uniform=bits[69:64], uniform_span=2)
_FROM = AddressOperand("address", bits[31:24], bits[43:32], uniform=bits[69:64], descriptor=bits[76], shown=bits[101])


class NextDescriptor(AddressOperand):
    """The source of a copy whose target adds a uniform register: the register after that one describes it."""

    def render(self, columns: Columns) -> list[str]:
        pairs = zip(super().render(columns), columns["shared.uniform"], strict=True)
        return [t.replace("desc[UR0]", f"desc[{'URZ' if u >= 62 else f'UR{u + 1}'}]") for t, u in pairs]


_FROM_NEXT = NextDescriptor("address", bits[31:24], bits[43:32], descriptor=bits[76], shown=bits[101])
_COPIED = Predicate("Ps", bits[89:87], READ, inverted=bits[90], optional={"Ps": 7, "Ps.not": 0})
_COPY = (
    Suffix(".E"),
    Modifier("ACCESS", bits[81], {0: ".BYPASS", 1: ""}),
    EVICT,
    Modifier("LTC", bits[72:71], {0: "", 1: ".LTC64B", 2: ".LTC128B", 3: ".LTC256B"}),
    Modifier("SIZE", bits[75:73], {4: "", 5: ".64", 6: ".128"}, default=4),
    Modifier("ZFILL", bits[82], {0: "", 1: ".ZFILL"}),
    COPY_ORDER,
)

# fmt: off
FORMS = [
    Form("LDS", 0x984, SHARED, VARIABLE,  (LOADED, _PLAIN),       (SIZE,), fixed={bits[91]: 0}, hidden=_PLAIN.hidden),
    Form("LDS", 0x984, SHARED, VARIABLE,  (LOADED, _ADDED_LOAD),  (SIZE,), fixed={bits[91]: 1}, variant="added"),
    Form("STS", 0x388, SHARED, NO_RESULT, (_PLAIN, STORED),       (SIZE,), hidden=_PLAIN.hidden),
    Form("STS", 0x988, SHARED, NO_RESULT, (_ADDED_STORE, STORED), (SIZE,), fixed={bits[91]: 1}, variant="added"),

    Form("LDSM.16", 0x83b, SHARED, VARIABLE, (_TILES, _MATRIX),       (_SHAPE, _COUNT), fixed={bits[91]: 0}),
    Form("LDSM.16", 0x83b, SHARED, VARIABLE, (_TILES, _MATRIX_ADDED), (_SHAPE, _COUNT), fixed={bits[91]: 1}, variant="added"),

    Form("LDGSTS", 0xfae, MEMORY, NO_RESULT, (_INTO, _FROM, _COPIED), _COPY,
         fixed={bits[91]: 1, bits[70]: 1}, hidden=_FROM.hidden),
    Form("LDGSTS", 0xdae, MEMORY, NO_RESULT, (_INTO_ADDED, _FROM_NEXT, _COPIED), _COPY,
         fixed={bits[91]: 1, bits[70]: 1}, variant="added"),
    Form("LDGDEPBAR", 0x9af, MEMORY, NO_RESULT),
]
# fmt: on
