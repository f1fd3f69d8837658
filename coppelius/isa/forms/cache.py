"""Caches and address spaces: CCTL for generic, CCTLL for local addresses, QSPC asks which space an address lies in."""

from __future__ import annotations

from coppelius.isa.address import AddressOperand
from coppelius.isa.bits import bits
from coppelius.isa.form import MEMORY, NO_RESULT, VARIABLE, Form
from coppelius.isa.forms.addressing import PLAIN_E, plain_address
from coppelius.isa.forms.shared import Pd, Rd
from coppelius.isa.values import Modifier

_LEVEL = Modifier("LEVEL", bits[79:78], {0: "", 1: ".U", 2: ".C", 3: ".I"})
_AT = Modifier(
    "OP", bits[90:87], {0: ".PF1", 1: ".PF2", 2: ".WB", 3: ".IV", 5: ".RS", 9: ".PML2", 10: ".DML2", 11: ".RML2"}
)
_ALL = Modifier("OP", bits[90:87], {4: ".IVALL", 6: ".IVALLP", 7: ".WBALL", 8: ".WBALLP"}, default=4)
_AT_LOCAL = Modifier("OP", bits[90:87], {0: ".PF1", 1: ".PF2", 2: ".WB", 3: ".IV", 5: ".RS"})
_ALL_LOCAL = Modifier("OP", bits[90:87], {4: ".IVALL", 7: ".WBALL"}, default=4)

_NO_ADDRESS = {bits[31:24]: 255}
_LOCAL = AddressOperand("address", bits[31:24], bits[63:40])
_PLUS = AddressOperand("address", bits[31:24], bits[63:40], uniform=bits[37:32], no_offset=True)
_PLUS_WIDE = AddressOperand(
    "address", bits[31:24], bits[63:40], uniform=bits[37:32], no_offset=True, wide="E", uniform_span=2
)

_SPACE = Modifier("SPACE", bits[74:73], {0: ".G", 1: ".L", 2: ".S"})
_QSPC_E = Modifier("E", bits[72] + bits[90], {3: ".E", 2: ".E", 0: ""}, default=3)
_QSPC_ADDED = AddressOperand(
    "address",
    bits[31:24],
    bits[63:40],
    uniform=bits[37:32],
    extends=("E", {3: ".64", 2: ".U32", 0: ".U32"}),
    uniform_span=2,
)

# fmt: off
FORMS = [
    Form("CCTL",  0x98f, MEMORY, NO_RESULT, (plain_address(offset=bits[63:32]),), (PLAIN_E, _LEVEL, _AT), fixed={bits[91]: 0}),
    Form("CCTL",  0x98f, MEMORY, NO_RESULT, (), (_LEVEL, _ALL), fixed={bits[91]: 0} | _NO_ADDRESS, variant="all"),
    Form("CCTL",  0xd8f, MEMORY, NO_RESULT, (_PLUS_WIDE,), (PLAIN_E, _LEVEL, _AT), fixed={bits[91]: 1}, variant="added"),
    Form("CCTLL", 0x990, MEMORY, NO_RESULT, (_LOCAL,), (_AT_LOCAL,), fixed={bits[91]: 0}),
    Form("CCTLL", 0x990, MEMORY, NO_RESULT, (), (_ALL_LOCAL,), fixed={bits[91]: 0} | _NO_ADDRESS, variant="all"),
    Form("CCTLL", 0xd90, MEMORY, NO_RESULT, (_PLUS,), (_AT_LOCAL,), fixed={bits[91]: 1}, variant="added"),

    Form("QSPC",  0x3aa, MEMORY, VARIABLE, (Pd, Rd, plain_address()), (PLAIN_E, _SPACE), fixed={bits[91]: 0}),
    Form("QSPC",  0x9aa, MEMORY, VARIABLE, (Pd, Rd, _QSPC_ADDED), (_QSPC_E, _SPACE), fixed={bits[91]: 1}, hidden=_QSPC_ADDED.hidden, variant="added"),
]
# fmt: on
