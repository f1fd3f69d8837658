"""Surfaces: loads, stores, atomics and reductions, by bytes (`.D.BA`), by elements (`.D`) or by formatted components (`.P`).

The surface is named by a bank and a header's number, or by a handle in a register.  The coordinates count as the one register
that every shape reads.  The ways that name surface and header apart or by a uniform register, and SUQUERY, are left out.
"""

from __future__ import annotations

from coppelius.isa.bits import bits
from coppelius.isa.form import MEMORY, NO_RESULT, VARIABLE, Form, Operand
from coppelius.isa.forms.addressing import EVICT, LOAD_ORDER, LOADED, SIZE, STORE_ORDER, STORED, Some
from coppelius.isa.slots import READ, WRITE, Columns, Predicate, Register, Values, Width
from coppelius.isa.values import HEX, Immediate, Modifier, Suffix


class Coordinates(Some):
    """`[R2]`."""

    def render(self, columns: Columns) -> list[str]:
        return [f"[{text}]" for text in super().render(columns)]

    def parse(self, text: str) -> Values | None:
        inside = text.strip()
        return super().parse(inside[1:-1]) if inside.startswith("[") and inside.endswith("]") else None


_AT = Coordinates("A", bits[31:24])
_HANDLE = Some("handle", bits[71:64])
_BOUND: tuple[Operand, ...] = (Immediate("bank", bits[58:54], HEX), Immediate("header", bits[53:40], HEX))
_SPARSE = Predicate("Pd", bits[83:81], WRITE, optional={"Pd": 7})

_BYTES = Modifier("BA", bits[72], {0: "", 1: ".BA"})
_SHAPE = Modifier("SHAPE", bits[63:61], {0: ".1D", 1: ".1D_BUFFER", 2: ".1D_ARRAY", 3: ".2D", 4: ".2D_ARRAY", 5: ".3D"})
_OUTSIDE = Modifier("CLAMP", bits[60:59], {0: ".IGN", 1: "", 2: ".TRAP"})
_D, _P = Suffix(".D"), Suffix(".P")
_MASK = Modifier("MASK", bits[75:72], {1: ".R", 3: ".RG", 15: ""}, default=15)
_BY_MASK: Width = ("MASK", {1: 1, 3: 2, 15: 4})

_OPERATIONS = {0: ".ADD", 1: ".MIN", 2: ".MAX", 3: ".INC", 4: ".DEC", 5: ".AND", 6: ".OR", 7: ".XOR"}
_REDUCE = Modifier("OP", bits[89:87], _OPERATIONS)
_FETCH = Modifier("OP", bits[90:87], _OPERATIONS | {8: ".EXCH"})
_TYPES = {0: "", 1: ".S32", 2: ".U64", 3: ".F32.FTZ.RN", 4: ".F16x2.RN", 5: ".S64", 6: ".SD32", 7: ".SD64"}
_TYPE = Modifier("TYPE", bits[75:73], _TYPES)
_SWAP_TYPE = Modifier("TYPE", bits[75:73], {0: "", 1: ".S32", 2: ".U64"})
_BY_TYPE: Width = ("TYPE", {0: 1, 1: 1, 2: 2, 3: 1, 4: 1, 5: 2, 6: 1, 7: 2})

_LOAD = (_D, _BYTES, _SHAPE, EVICT, SIZE, LOAD_ORDER, _OUTSIDE)
_STORE = (_D, _BYTES, _SHAPE, EVICT, SIZE, STORE_ORDER, _OUTSIDE)
_LOAD_COMPONENTS = (_P, _SHAPE, EVICT, LOAD_ORDER, _MASK, _OUTSIDE)
_STORE_COMPONENTS = (_P, _SHAPE, EVICT, STORE_ORDER, _MASK, _OUTSIDE)
_REDUCTION = (_D, _BYTES, _SHAPE, _REDUCE, EVICT, _TYPE, STORE_ORDER, _OUTSIDE)
_ATOMIC = (_D, _BYTES, _SHAPE, _FETCH, EVICT, _TYPE, STORE_ORDER, _OUTSIDE)
_COMPARE = (_D, _BYTES, _SHAPE, Suffix(".CAS"), EVICT, _SWAP_TYPE, STORE_ORDER, _OUTSIDE)

_COMPONENTS = Register("D", bits[23:16], WRITE, width=_BY_MASK)
_COMPONENTS_STORED = Register("data", bits[39:32], READ, width=_BY_MASK)
_OLD = Register("D", bits[23:16], WRITE, width=_BY_TYPE)
_DATA = Register("data", bits[39:32], READ, width=_BY_TYPE)
# the value to compare and the one to store, side by side
_PAIR = Register("data", bits[39:32], READ, width=("TYPE", {0: 2, 1: 2, 2: 4}))


def _rows(
    mnemonic: str,
    bound: int,
    handle: int,
    latency: str,
    operands: tuple[Operand, ...],
    modifiers: tuple[Modifier, ...],
    variant: str = "",
) -> list[Form]:
    return [
        Form(mnemonic, bound, MEMORY, latency, (*operands, *_BOUND), modifiers, fixed={bits[91]: 0}, variant=variant),
        Form(mnemonic, handle, MEMORY, latency, (*operands, _HANDLE), modifiers, fixed={bits[91]: 0}, variant=f"{variant}handle"),
    ]  # fmt: skip


# fmt: off
FORMS = [
    *_rows("SULD",   0xb99, 0x99a, VARIABLE,  (_SPARSE, LOADED, _AT), _LOAD),
    *_rows("SULD",   0xb97, 0x998, VARIABLE,  (_SPARSE, _COMPONENTS, _AT), _LOAD_COMPONENTS, "components"),
    *_rows("SUST",   0xb9d, 0x99e, NO_RESULT, (_AT, STORED), _STORE),
    *_rows("SUST",   0xb9b, 0x99c, NO_RESULT, (_AT, _COMPONENTS_STORED), _STORE_COMPONENTS, "components"),
    *_rows("SURED",  0x59f, 0x3a0, NO_RESULT, (_AT, _DATA), _REDUCTION),
    *_rows("SUATOM", 0x593, 0x394, VARIABLE,  (_SPARSE, _OLD, _AT, _DATA), _ATOMIC),
    *_rows("SUATOM", 0x595, 0x396, VARIABLE,  (_SPARSE, _OLD, _AT, _PAIR), _COMPARE, "swap"),
]
# fmt: on
