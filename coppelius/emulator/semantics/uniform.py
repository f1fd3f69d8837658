"""The uniform datapath: the vector twin's meaning on `[warps, 1]` values, and the ways in and out.

R2UR takes the first active lane's value; a vector that differs there is the program's mistake.
"""

from __future__ import annotations

import numpy as np

from coppelius.emulator.group import Group
from coppelius.emulator.operation import Operation
from coppelius.emulator.registry import BINDERS, Step, executes
from coppelius.emulator.semantics import compare, integer, logic, move  # noqa: F401 - the twins
from coppelius.emulator.semantics.shared_access import access_size, extend
from coppelius.isa.values import ConstantOperand

_TWINS = (
    "IADD3",
    "IADD3.X",
    "IMAD",
    "IMAD.WIDE",
    "IMAD.HI",
    "LOP3",
    "LOP3.LUT",
    "SHF",
    "LEA",
    "LEA.X",
    "LEA.HI",
    "LEA.HI.X",
    "LEA.HI.SX32",
    "LEA.HI.X.SX32",
    "ISETP",
    "SEL",
    "PRMT",
    "FLO",
    "POPC",
    "BREV",
    "SGXT",
    "BMSK",
    "PLOP3",
    "PLOP3.LUT",
    "MOV",
)
for _name in _TWINS:
    executes(f"U{_name}")(BINDERS[_name])


@executes("R2UR")
def r2ur(op: Operation) -> Step:
    a, d = op.word("A"), op.destination()
    return lambda g: d(g, a(g))


@executes("ULDC")
def uldc(op: Operation) -> Step:
    """A constant of any size; 64 bits fill a pair."""
    size, signed = access_size(op)
    slot = next(s for s in op.encoding.operands if isinstance(s, ConstantOperand))
    packed = op.field(slot.fields[0].name)
    bank, offset = constant_place(slot, packed)
    value = op.constant_bits(bank, offset, size)
    low = extend(np.full((1, 1), value & 0xFFFFFFFF, np.uint32), signed)
    d, high = op.destination(), op.destination("D", 1) if size == 8 else None

    def step(g: Group) -> None:
        d(g, low)
        if high is not None:
            high(g, np.full((1, 1), value >> 32, np.uint32))

    return step


def constant_place(slot: ConstantOperand, packed: int) -> tuple[int, int]:
    """(bank, byte offset) of a packed constant field of words or, where the form has bytes, of bytes."""
    width = slot.fields[0].width
    bits = width - 5
    scale = 4 if bits == 14 else 1
    raw = packed & ((1 << bits) - 1)
    raw -= raw >> (bits - 1) << bits
    return packed >> bits, raw * scale
