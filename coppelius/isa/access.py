"""Def-use sets: the registers one instruction reads and writes, from its row's accesses.

A pair or quad counts each of its registers.  RZ, URZ, PT and UPT hold no state and are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from coppelius.isa.control import CONTROL_COLUMNS, NO_CONTROL
from coppelius.isa.form import Encoding
from coppelius.isa.slots import WRITE, Access

_STATELESS = {"R": 255, "P": 7, "UP": 7}
# no control field is a register
_GUARD, _OWN = slice(CONTROL_COLUMNS.start), slice(CONTROL_COLUMNS.stop, None)


class Touch(NamedTuple):
    """One register touched by an instruction: through which slot, in which space, which number."""

    slot: str
    space: str
    number: int


def touched(encoding: Encoding, values: Sequence[int], mode: str) -> list[Touch]:
    """Registers of one instruction touched in that mode ("read" or "write"), in slot order, repeats kept."""
    return list(_touched(encoding, tuple(values[_GUARD]), tuple(values[_OWN]), mode))


@lru_cache(maxsize=1 << 16)
def _touched(encoding: Encoding, guard: tuple[int, ...], own: tuple[int, ...], mode: str) -> tuple[Touch, ...]:
    values = (*guard, *NO_CONTROL, *own)
    found: list[Touch] = []
    column = encoding.column
    for access in encoding.accesses:
        if access.mode != mode or (access.when and values[column[access.when[0]]] not in access.when[1]):
            continue
        first = values[column[access.field]] >> access.shift
        if first == _STATELESS.get(access.space, _zero(encoding, access)):
            continue
        width = (
            access.width if isinstance(access.width, int) else access.width[1].get(values[column[access.width[0]]], 1)
        )
        found += [Touch(access.slot, access.space, first + i) for i in range(width)]
    return tuple(found)


def reads(encoding: Encoding, values: Sequence[int]) -> list[Touch]:
    """Registers read: operands, the guard, addresses, predicates."""
    return touched(encoding, values, "read")


def writes(encoding: Encoding, values: Sequence[int]) -> list[Touch]:
    """Registers possibly written (a false guard writes none of them)."""
    return touched(encoding, values, WRITE)


def _zero(encoding: Encoding, access: Access) -> int:
    """The stateless index of uniform registers: all ones of their field, less what shares the field."""
    if access.space != "UR":
        return -1
    return (1 << (encoding.fields[encoding.column[access.field]].width - access.shift)) - 1
