"""Loads and stores of global, generic, local and constant memory.

Compiled code describes its global addresses by a uniform register (`[R2.64]`, bits 91, 90 and the descriptor bit set).
A load's predicate out [83:81] is PT in all compiled code; the predicate in [67:64] is stored inverted.
"""

from __future__ import annotations

from coppelius.isa.address import AddressOperand, ConstantAddress
from coppelius.isa.bits import Bits, bits
from coppelius.isa.form import MEMORY, NO_RESULT, VARIABLE, Form, Operand
from coppelius.isa.forms.addressing import (
    BY_SIZE,
    EVICT,
    FALLBACK,
    LOAD_ORDER,
    LOADED,
    PREFETCH,
    SIZE,
    SIZES,
    STORE_ORDER,
    STORED,
    Ways,
    plain_row,
    uniform_rows,
)
from coppelius.isa.slots import READ, WRITE, Predicate, Register
from coppelius.isa.values import Modifier

_LOADED_OK = Predicate("Pd", bits[83:81], WRITE, optional={"Pd": 7})
_HIGH_DATA = Register("data", bits[71:64], READ, width=BY_SIZE)

_LDG_WAYS = Ways(0x981, bits[37:32], extend=bits[90], descriptor=bits[76])
_LD_WAYS = Ways(0x980, bits[37:32], extend=bits[90], descriptor=bits[76])
_STG_WAYS = Ways(0x986, bits[69:64], extend=bits[90], descriptor=bits[76])
_ST_WAYS = Ways(0x985, bits[69:64], extend=bits[90], descriptor=bits[76])


def _ldg(address: AddressOperand) -> tuple[Operand, ...]:
    return (_LOADED_OK, LOADED, address, FALLBACK)


def _ld(address: AddressOperand) -> tuple[Operand, ...]:
    return (LOADED, address, FALLBACK)


def _st(address: AddressOperand) -> tuple[Operand, ...]:
    return (address, STORED)


def _st_high(address: AddressOperand) -> tuple[Operand, ...]:
    return (address, _HIGH_DATA)


def _load(e: Modifier) -> tuple[Modifier, ...]:
    return (e, EVICT, PREFETCH, SIZE, LOAD_ORDER)


def _store(e: Modifier) -> tuple[Modifier, ...]:
    return (e, EVICT, SIZE, STORE_ORDER)


_CONSTANT_SIZE = Modifier("SIZE", bits[75:73], {code: text for code, text in SIZES.items() if code < 6}, default=4)
_CONSTANT_D = Register("D", bits[23:16], WRITE, width=("SIZE", {0: 1, 1: 1, 2: 1, 3: 1, 4: 1, 5: 2}))
_INDEX_MODE = Modifier("MODE", bits[79:78], {0: "", 1: ".IL", 2: ".IS", 3: ".ISL"})


def _local(uniform: Bits | None, descriptor: bool = False) -> AddressOperand:
    if descriptor:
        return AddressOperand(
            "address", bits[31:24], bits[63:40], uniform=uniform, descriptor=bits[76], local_descriptor=True
        )
    return AddressOperand("address", bits[31:24], bits[63:40], uniform=uniform)


# fmt: off
FORMS = [
    plain_row("LDG", 0x381, VARIABLE, _ldg, _load),
    *uniform_rows("LDG", VARIABLE, _LDG_WAYS, _ldg, _load),
    plain_row("LD", 0x980, VARIABLE, _ld, _load, offset=bits[63:32]),
    *uniform_rows("LD", VARIABLE, _LD_WAYS, _ld, _load),
    plain_row("STG", 0x386, NO_RESULT, _st, _store),
    *uniform_rows("STG", NO_RESULT, _STG_WAYS, _st, _store),
    plain_row("ST", 0x385, NO_RESULT, _st_high, _store, offset=bits[63:32]),
    *uniform_rows("ST", NO_RESULT, _ST_WAYS, _st, _store),

    Form("LDL", 0x983, MEMORY, VARIABLE,  (LOADED, _local(None)),         (EVICT, SIZE), fixed={bits[91]: 0}),
    Form("LDL", 0x983, MEMORY, VARIABLE,  (LOADED, _local(bits[37:32])),  (EVICT, SIZE), fixed={bits[91]: 1, bits[76]: 0}, variant="added"),
    Form("STL", 0x387, MEMORY, NO_RESULT, (_local(None), STORED),         (EVICT, SIZE)),
    Form("STL", 0x987, MEMORY, NO_RESULT, (_local(bits[69:64]), STORED),  (EVICT, SIZE), fixed={bits[91]: 1, bits[76]: 0}, variant="added"),

    Form("LDC", 0xb82, MEMORY, VARIABLE,  (_CONSTANT_D, ConstantAddress("address", bits[31:24], bits[53:38], bank=bits[58:54])),
         (_CONSTANT_SIZE, _INDEX_MODE), fixed={bits[91]: 0}),
    Form("LDC", 0x582, MEMORY, VARIABLE,  (_CONSTANT_D, ConstantAddress("address", bits[71:64], bits[53:38], uniform=bits[29:24])),
         (_CONSTANT_SIZE, _INDEX_MODE), fixed={bits[91]: 1}, variant="bindless"),
]
# fmt: on
