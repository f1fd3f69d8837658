"""Moves in and out of convergence barriers and other state of a warp: BMOV, RPCMOV, LEPC, memory bases, block numbers.

BMOV.32.CLEAR empties the barrier that it reads; compiled code saves barriers around calls with it.
"""

from __future__ import annotations

from coppelius.isa.address import AbsoluteTarget
from coppelius.isa.bits import Bits, bits
from coppelius.isa.form import NO_RESULT, SYSTEM, VARIABLE, Form
from coppelius.isa.slots import READ, WRITE, Access, Predicate, Register, Slot, UniformRegister
from coppelius.isa.values import HEX, BindlessConstant, ConstantOperand, Immediate, Modifier, Named

_STATE = {n: f"B{n}" for n in range(16)} | {16 + n: f"THREAD_STATE_ENUM.{n}" for n in range(5)} | {
    21: "TRAP_RETURN_PC.LO", 22: "TRAP_RETURN_PC.HI", 23: "TRAP_RETURN_MASK", 24: "MEXITED", 25: "MKILL", 26: "MACTIVE",
    27: "MATEXIT", 28: "OPT_STACK", 29: "API_CALL_DEPTH", 30: "ATEXIT_PC.LO", 31: "ATEXIT_PC.HI",
}  # fmt: skip


def _state(name: str, place: Bits, mode: str) -> Named:
    return Named(name, place, _STATE, accesses=(Access(name, "B", name, mode),))


_FROM, _INTO = _state("barrier", bits[28:24], READ), _state("barrier", bits[28:24], WRITE)
_FROM_OTHER = Named(
    "source", bits[19:16], {n: f"B{n}" for n in range(16)}, accesses=(Access("source", "B", "source", READ),)
)
_FROM_STATE = Named(
    "source",
    bits[28:24],
    {n: t for n, t in _STATE.items() if n > 15},
    accesses=(Access("source", "B", "source", READ),),
    default=26,
)
_INTO_BARRIER = Named(
    "barrier", bits[19:16], {n: f"B{n}" for n in range(16)}, accesses=(Access("barrier", "B", "barrier", WRITE),)
)
_CLEARED = Access("barrier", "B", "barrier", WRITE)
_ATEXIT = Named("state", bits[24], {0: "ATEXIT_PC"})
_RETURN, _RETURN_HALF = Named("state", bits[31], {0: "Rpc"}), Named("state", bits[31], {0: "Rpc.LO", 1: "Rpc.HI"})
_CLEAR = Modifier("CLEAR", bits[84], {0: "", 1: ".CLEAR"})
_QUAD = Modifier("PQUAD", bits[84], {0: "", 1: ".PQUAD"})
_D, _A = Register("D", bits[23:16], WRITE), Register("A", bits[31:24], READ)
_PAIR = Register("D", bits[23:16], WRITE, width=2)
_ALSO = Predicate("Ps", bits[89:87], READ, inverted=bits[90], optional={"Ps": 7, "Ps.not": 0})

# (operand form << 9, source of 32 bits, source of 64, bit 91, name)
_SOURCES: tuple[tuple[int, Slot, Slot, int, str], ...] = (
    (0x200, Register("B", bits[39:32], READ), Register("B", bits[39:32], READ, width=2), 0, "register"),
    (0x800, Immediate("B", bits[63:32], HEX), AbsoluteTarget("B", bits[80:34]), 0, "immediate"),
    (0xA00, ConstantOperand("B"), ConstantOperand("B"), 0, "constant"),
    (0xA00, BindlessConstant("B"), BindlessConstant("B"), 1, "bindless"),
    (0xC00, UniformRegister("B", bits[37:32], READ), UniformRegister("B", bits[37:32], READ, width=2), 1, "uniform"),
)

# fmt: off
FORMS = [
    Form("BMOV.32", 0x355, SYSTEM, VARIABLE, (_D, _FROM), (_CLEAR,), implicit=(_CLEARED,), variant="out"),
    *(Form("BMOV.32", 0x156 | form, SYSTEM, NO_RESULT, (_INTO, word), (_QUAD,), fixed={bits[91]: b}, variant=name)
      for form, word, _, b, name in _SOURCES),
    Form("BMOV.32", 0xf56, SYSTEM, NO_RESULT, (_INTO, _FROM_OTHER), (_QUAD,), variant="barrier"),
    Form("BMOV.32", 0xf55, SYSTEM, NO_RESULT, (_INTO_BARRIER, _FROM_STATE), variant="state"),
    *(Form("BMOV.64", 0x157 | form, SYSTEM, NO_RESULT, (_ATEXIT, long), fixed={bits[91]: b}, variant=name)
      for form, _, long, b, name in _SOURCES),

    Form("RPCMOV.32", 0x353, SYSTEM, VARIABLE, (_D, _RETURN_HALF), variant="out"),
    *(Form("RPCMOV.32", 0x152 | form, SYSTEM, NO_RESULT, (_RETURN_HALF, word), fixed={bits[91]: b}, variant=name)
      for form, word, _, b, name in _SOURCES),
    *(Form("RPCMOV.64", 0x154 | form, SYSTEM, NO_RESULT, (_RETURN, long), fixed={bits[91]: b}, variant=name)
      for form, _, long, b, name in _SOURCES if name != "register"),

    Form("LEPC", 0x34e, SYSTEM, VARIABLE, (_PAIR,)),
    Form("GETLMEMBASE", 0x3c0, SYSTEM, VARIABLE, (_PAIR,)),
    Form("SETLMEMBASE", 0x3c1, SYSTEM, NO_RESULT, (Register("A", bits[31:24], READ, width=2),)),
    Form("SETCTAID", 0x31f, SYSTEM, NO_RESULT, (_A,), (Modifier("AXIS", bits[79:78], {0: ".X", 1: ".Y", 2: ".Z"}),)),
    Form("PMTRIG", 0x801, SYSTEM, NO_RESULT, (_ALSO, Immediate("mask", bits[47:32], HEX))),
]
# fmt: on
