"""The uniform datapath: the vector twin's meaning on `[warps, 1]` values, and the ways in and out.

R2UR takes the first active lane's value; a vector that differs there is the program's mistake.
"""

from __future__ import annotations

import numpy as np

from coppelius.emulator.group import Group
from coppelius.emulator.operation import Operation
from coppelius.emulator.registry import BINDERS, Step, executes
from coppelius.emulator.semantics import compare, integer, logic, move  # noqa: F401 - the twins
from coppelius.emulator.semantics.shared_access import access_size, extend, indexed_constant
from coppelius.isa.constants import UniformConstant
from coppelius.isa.operands import PT_INDEX
from coppelius.isa.refusal import Refusal

_TWINS = (
    "IADD3",
    "IADD3.X",
    "IMAD",
    "IMAD.WIDE",
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
    "PLOP3.LUT",
    "MOV",
)
executes("UP2UR")(BINDERS["P2R"])
executes("UR2UP")(BINDERS["R2P"])
for _name in _TWINS:
    executes(f"U{_name}")(BINDERS[_name])


@executes("R2UR")
def r2ur(op: Operation) -> Step:
    if op.has("Pd") and op.field("Pd") != PT_INDEX:
        raise Refusal(f"{op.encoding.name}: the emulator has no meaning for its predicate")
    a, d = op.word("A"), op.destination()
    return lambda g: d(g, a(g))


@executes("ULDC", "LDCU")
def uldc(op: Operation) -> Step:
    """A constant of any size; 64 bits fill a pair."""
    slot = next(s for s in op.encoding.operands if isinstance(s, UniformConstant))
    if slot.bank is None:
        raise Refusal(f"{op.encoding.name}: the emulator has no bindless constants (cx[UR][...])")
    size, signed = access_size(op)
    bank, offset = op.field(slot.bank.name), op.field(slot.offset.name)
    writes = [op.destination("D", part) for part in range(max(1, size // 4))]
    if slot.index is not None:
        return indexed_constant(op, bank, op.uniform(op.field(slot.index.name)), offset, writes)
    value = op.constant_bits(bank, offset, size)
    words = [extend(np.full((1, 1), value >> 32 * k & 0xFFFFFFFF, np.uint32), signed) for k in range(len(writes))]

    def step(g: Group) -> None:
        for write, word in zip(writes, words, strict=True):
            write(g, word)

    return step
