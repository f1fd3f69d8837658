"""Control flow: branches, jumps, calls, convergence barriers, and what ends or stops a thread.

A relative target is the distance from the next instruction in words of four bytes.  A second predicate [90:87] is read by all
of them, PT where nothing is printed.  BRA.DIV branches where a warp's active threads are not all those of the mask in a uniform
register, BRA.CONV where they are; `~URZ` is the full mask.
"""

from __future__ import annotations

from coppelius.isa.address import AbsoluteTarget, LabelVia, OffsetVia
from coppelius.isa.bits import Bits, bits
from coppelius.isa.form import CONTROL, NO_RESULT, Form, Operand
from coppelius.isa.slots import READ, WRITE, Access, Predicate, Register, Slot, UniformRegister
from coppelius.isa.values import HEX, ConstantOperand, Immediate, Label_, Modifier, Named, Suffix

_ALSO = Predicate("Ps", bits[89:87], READ, inverted=bits[90], optional={"Ps": 7, "Ps.not": 0})
_RELATIVE = bits[81:34]
_TARGET = Label_("target", _RELATIVE)
_MASK = UniformRegister("mask", bits[29:24], READ, negate=bits[30], invert=True)
_BIT = Predicate("Pu", bits[26:24], READ, inverted=bits[27], uniform=True)

_COUNT = Modifier("COUNT", bits[86:85], {0: "", 1: ".INC", 2: ".DEC"})
_MODE = Modifier("MODE", bits[33:32], {0: "", 1: ".U", 2: ".DIV", 3: ".CONV"})
_DIV = Modifier("DIV", bits[33:32], {2: ".DIV", 3: ".CONV"}, default=2)
_U = Modifier("MODE", bits[33:32], {1: ".U"}, default=1)
_NOINC = Modifier("NOINC", bits[86], {0: "", 1: ".NOINC"})
_NODEC = Modifier("NODEC", bits[86], {0: "", 1: ".NODEC"})
_ABS, _REL = Suffix(".ABS"), Suffix(".REL")

_PAIR = Register("A", bits[31:24], READ, width=2)
_UNIFORM_PAIR = UniformRegister("A", bits[29:24], READ, width=2)
_CONSTANT = ConstantOperand("B")


def convergence(name: str, place: Bits, mode: str) -> Named:
    """A convergence barrier, B0 to B15."""
    return Named(name, place, {n: f"B{n}" for n in range(16)}, accesses=(Access(name, "B", name, mode),))


_SET, _MEET, _LEAVE = (convergence("barrier", bits[19:16], mode) for mode in (WRITE, READ, READ))
_BREAKS = Access("barrier", "B", "barrier", WRITE)


def _control(
    mnemonic: str,
    opcode: int,
    operands: tuple[Operand, ...] = (),
    modifiers: tuple[Modifier, ...] = (),
    *,
    uniform: bool = False,
    variant: str = "",
    fixed: dict[Bits, int] | None = None,
    implicit: tuple[Access, ...] = (),
) -> Form:
    return Form(
        mnemonic, opcode, CONTROL, NO_RESULT, (_ALSO, *operands), modifiers, variant=variant,
        fixed={bits[91]: int(uniform)} | (fixed or {}), implicit=implicit,
    )  # fmt: skip


def _sources(immediate: Slot | None, register: Slot) -> tuple[tuple[int, Slot, bool, str], ...]:
    """(form digit << 9, operand, uniform, variant) of the control rows that take any kind of source."""
    kinds: tuple[tuple[int, Slot | None, bool, str], ...] = (
        (0x200, register, False, "register"),
        (0x800, immediate, False, "immediate"),
        (0xA00, _CONSTANT, False, "constant"),
        (0xC00, UniformRegister("B", bits[37:32], READ), True, "uniform"),
    )
    return tuple((form, slot, uniform, variant) for form, slot, uniform, variant in kinds if slot is not None)


_B = Register("B", bits[39:32], READ)
_WORD = Immediate("B", bits[63:32], HEX)
_EXCLUSIVE = Modifier("EXCLUSIVE", bits[86], {0: "", 1: ".EXCLUSIVE"})
_SLEEP = (Modifier("MODE", bits[86:85], {0: "", 1: ".WARP", 2: ".RAND", 3: ".RAND.WARP"}),)

# fmt: off
FORMS = [
    _control("BRA", 0x947, (_TARGET,), (_COUNT, _MODE)),
    _control("BRA", 0x947, (_MASK, _TARGET), (_COUNT, _DIV), uniform=True, variant="mask"),
    _control("BRA", 0x547, (_BIT, _TARGET), (_COUNT, _U), uniform=True, variant="bit"),
    _control("BRX", 0x949, (OffsetVia("offset", _RELATIVE, _PAIR),), (_COUNT,)),
    _control("BRXU", 0x958, (OffsetVia("offset", _RELATIVE, _UNIFORM_PAIR),), (_COUNT, _MODE), uniform=True),

    _control("JMP", 0x94a, (AbsoluteTarget("place", bits[80:34]),), (_COUNT, _MODE)),
    _control("JMP", 0x94a, (_MASK, AbsoluteTarget("place", bits[80:34])), (_COUNT, _DIV), uniform=True, variant="mask"),
    _control("JMP", 0x54a, (_BIT, AbsoluteTarget("place", bits[80:34])), (_COUNT, _U), uniform=True, variant="bit"),
    _control("JMP", 0xb4a, (_CONSTANT,), (_COUNT, _MODE), variant="constant"),
    _control("JMP", 0xb4a, (_MASK, _CONSTANT), (_COUNT, _DIV), uniform=True, variant="constant-mask"),
    _control("JMP", 0x74a, (_BIT, _CONSTANT), (_COUNT, _U), uniform=True, variant="constant-bit"),
    _control("JMX", 0x94c, (OffsetVia("offset", _RELATIVE, _PAIR),), (_COUNT,)),
    _control("JMXU", 0x959, (OffsetVia("offset", _RELATIVE, _UNIFORM_PAIR),), (_COUNT, _MODE), uniform=True),

    _control("CALL", 0x943, (AbsoluteTarget("place", bits[80:34]),), (_ABS, _NOINC), variant="absolute"),
    _control("CALL", 0x943, (OffsetVia("offset", _RELATIVE, _UNIFORM_PAIR),), (_ABS, _NOINC), uniform=True, variant="absolute-uniform"),
    _control("CALL", 0x343, (OffsetVia("offset", _RELATIVE, _PAIR),), (_ABS, _NOINC), variant="absolute-register"),
    _control("CALL", 0xb43, (_CONSTANT,), (_ABS, _NOINC), variant="absolute-constant"),
    _control("CALL", 0x944, (_TARGET,), (_REL, _NOINC)),
    _control("CALL", 0x944, (LabelVia("target", _RELATIVE, _UNIFORM_PAIR),), (_REL, _NOINC), uniform=True, variant="uniform"),
    _control("CALL", 0x344, (LabelVia("target", _RELATIVE, _PAIR),), (_REL, _NOINC), variant="register"),
    _control("RET", 0x950, (LabelVia("target", _RELATIVE, _PAIR),), (_REL, _NODEC), fixed={bits[85]: 0}),
    _control("RET", 0x950, (LabelVia("target", _RELATIVE, _UNIFORM_PAIR),), (_REL, _NODEC), uniform=True, fixed={bits[85]: 0}, variant="uniform"),
    _control("RET", 0x950, (OffsetVia("offset", _RELATIVE, _PAIR, always=True),), (_ABS, _NODEC), fixed={bits[85]: 1}, variant="absolute"),
    _control("RET", 0x950, (OffsetVia("offset", _RELATIVE, _UNIFORM_PAIR, always=True),), (_ABS, _NODEC), uniform=True,
             fixed={bits[85]: 1}, variant="absolute-uniform"),

    _control("BSSY", 0x945, (_SET, Label_("target", bits[63:34]))),
    _control("BSYNC", 0x941, (_MEET,)),
    _control("BREAK", 0x942, (_LEAVE,), implicit=(_BREAKS,)),
    _control("EXIT", 0x94d, (), (Modifier("MODE", bits[86:84], {
        0: "", 1: ".KEEPREFCOUNT", 2: ".PREEMPTED", 4: ".NO_ATEXIT", 5: ".KEEPREFCOUNT.NO_ATEXIT", 6: ".PREEMPTED.NO_ATEXIT"}),)),
    _control("KILL", 0x95b),
    _control("YIELD", 0x946),

    *(_control("WARPSYNC", 0x148 | form, (source,), (_EXCLUSIVE,) if variant == "register" else (), uniform=uniform, variant=variant)
      for form, source, uniform, variant in _sources(_WORD, _B)),
    *(_control("NANOSLEEP", 0x15d | form, (source,), _SLEEP, uniform=uniform, variant=variant)
      for form, source, uniform, variant in _sources(_WORD, _B)),

    Form("BPT", 0x95c, CONTROL, NO_RESULT, (Immediate("B", bits[36:34], HEX, absent=0),), (Modifier("MODE", bits[86:84], {3: ".TRAP", 4: ".INT"}, default=3),)),
]
# fmt: on
