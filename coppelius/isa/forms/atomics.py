"""Atomic operations: RED gives nothing back, ATOM and ATOMG the old value, ATOMS works in shared memory.

A compare-and-swap reads the value to compare (`data`) and the value to store (`new`).  Its `CAST.SPIN` takes or gives back a
lock of the address, and says in a predicate whether it got it.
"""

from __future__ import annotations

from coppelius.isa.address import AddressOperand
from coppelius.isa.bits import Bits, bits
from coppelius.isa.form import MEMORY, NO_RESULT, SHARED, VARIABLE, Form, Operand
from coppelius.isa.forms.addressing import EVICT, PLAIN_E, STORE_ORDER, Ways, plain_address, plain_row, uniform_rows
from coppelius.isa.forms.shared import Pd, Rd, RdPair
from coppelius.isa.forms.shared_memory import shared_address
from coppelius.isa.slots import READ, WRITE, Register, Width
from coppelius.isa.values import Modifier, Suffix

_OPERATIONS = {0: ".ADD", 1: ".MIN", 2: ".MAX", 3: ".INC", 4: ".DEC", 5: ".AND", 6: ".OR", 7: ".XOR"}
_REDUCE = Modifier("OP", bits[89:87], _OPERATIONS)
_FETCH = Modifier("OP", bits[90:87], _OPERATIONS | {8: ".EXCH", 9: ".SAFEADD"})
_FETCH_GENERIC = Modifier("OP", bits[90:87], _OPERATIONS | {8: ".EXCH"})
_SWAP = Modifier("OP", bits[90:87], {0: ".CAS", 1: ".CAST", 3: ".CAST.SPIN"})

_TYPES = {0: "", 1: ".S32", 2: ".64", 3: ".F32.FTZ.RN", 4: ".F16x2.RN", 5: ".S64", 6: ".F64.RN"}
_TYPE = Modifier("TYPE", bits[76:73], _TYPES)
_SWAP_TYPE = Modifier("TYPE", bits[76:73], {0: "", 1: ".S32", 2: ".64"})
_SHARED_TYPE = Modifier("TYPE", bits[74:73], {0: "", 1: ".S32", 2: ".64"})
_BY_TYPE: Width = ("TYPE", {0: 1, 1: 1, 2: 2, 3: 1, 4: 1, 5: 2, 6: 2})

_D = Register("D", bits[23:16], WRITE, width=_BY_TYPE)
_DATA = Register("data", bits[39:32], READ, width=_BY_TYPE)
_NEW = Register("new", bits[71:64], READ, width=_BY_TYPE)


def _red(address: AddressOperand) -> tuple[Operand, ...]:
    return (address, _DATA)


def _atom(address: AddressOperand) -> tuple[Operand, ...]:
    return (Pd, _D, address, _DATA)


def _reduce(e: Modifier) -> tuple[Modifier, ...]:
    return (e, _REDUCE, EVICT, _TYPE, STORE_ORDER)


def _fetch(e: Modifier) -> tuple[Modifier, ...]:
    return (e, _FETCH, EVICT, _TYPE, STORE_ORDER)


def _fetch_generic(e: Modifier) -> tuple[Modifier, ...]:
    return (e, _FETCH_GENERIC, EVICT, _TYPE, STORE_ORDER)


def _swap(mnemonic: str, opcode: int, operation: Modifier, fixed: dict[Bits, int]) -> Form:
    return Form(
        mnemonic, opcode, MEMORY, VARIABLE, (Pd, _D, plain_address(), _DATA, _NEW),
        (PLAIN_E, operation, EVICT, _SWAP_TYPE, STORE_ORDER), variant="swap", fixed={bits[91]: 0} | fixed,
    )  # fmt: skip


_RED_WAYS = Ways(0x98E, bits[69:64], extend=bits[90], descriptor=bits[71])
_ATOMG_WAYS = Ways(0x9A8, bits[69:64], extend=bits[70], descriptor=bits[71], needs_base=True)
_ATOM_WAYS = Ways(0x98A, bits[69:64], extend=bits[70], descriptor=bits[71], needs_base=True)
_PLAIN, _ADDED = shared_address(), shared_address(bits[69:64])
_ARRIVAL = AddressOperand("address", bits[31:24], bits[63:40], uniform=bits[69:64])

# fmt: off
FORMS = [
    plain_row("RED", 0x98e, NO_RESULT, _red, _reduce),
    *uniform_rows("RED", NO_RESULT, _RED_WAYS, _red, _reduce),
    plain_row("ATOMG", 0x3a8, VARIABLE, _atom, _fetch),
    *uniform_rows("ATOMG", VARIABLE, _ATOMG_WAYS, _atom, _fetch),
    plain_row("ATOM", 0x38a, VARIABLE, _atom, _fetch_generic),
    *uniform_rows("ATOM", VARIABLE, _ATOM_WAYS, _atom, _fetch_generic),
    _swap("ATOMG", 0x3a9, Suffix(".CAS"), {bits[90:87]: 0}),
    _swap("ATOM", 0x38b, _SWAP, {}),

    Form("ATOMS", 0x38c, SHARED, VARIABLE, (_D, _PLAIN, _DATA),       (_FETCH_GENERIC, _SHARED_TYPE), hidden=_PLAIN.hidden),
    Form("ATOMS", 0x98c, SHARED, VARIABLE, (_D, _ADDED, _DATA),       (_FETCH_GENERIC, _SHARED_TYPE), fixed={bits[91]: 1}, variant="added"),
    Form("ATOMS", 0x38d, SHARED, VARIABLE, (_D, _PLAIN, _DATA, _NEW), (_SWAP, _SHARED_TYPE), hidden=_PLAIN.hidden, variant="swap"),
    Form("ATOMS.POPC.INC.32", 0xf8c, SHARED, VARIABLE, (Rd, _ADDED), fixed={bits[91]: 1, bits[90:87]: 10}),
    # of the barriers that count arrivals of threads and of copies
    Form("ATOMS.ARRIVE.64", 0xf8c, SHARED, VARIABLE, (RdPair, _ADDED), fixed={bits[91]: 1, bits[90:87]: 9, bits[74:73]: 2}),
    Form("ARRIVES.LDGSTSBAR.64", 0x9b0, SHARED, NO_RESULT, (_ARRIVAL,), fixed={bits[91]: 1, bits[75:73]: 5}),
]
# fmt: on
