"""The uniform datapath: one value a warp, in uniform registers and predicates, guarded by uniform predicates.

Its arithmetic has the modifier bits of its vector twin, operands in forms 1, 2 and 4 and bit 91 set.
"""

from __future__ import annotations

from collections.abc import Mapping

from coppelius.isa.bits import Bits, Field, bits
from coppelius.isa.constants import UniformConstant
from coppelius.isa.form import FIXED, SYSTEM, UNIFORM, VARIABLE, Flexible, Form, Operand
from coppelius.isa.forms.compare import HIDDEN_LOWER, UNUSED_LOWER
from coppelius.isa.forms.logic import PREDICATE_LUT, PREDICATE_LUT_2, SHIFT_MODIFIERS
from coppelius.isa.forms.move import BYTES, AllUniformPredicates
from coppelius.isa.forms.shared import (
    BOOLEAN,
    CARRY,
    CARRY_2,
    HIDDEN_CARRY,
    HIDDEN_CARRY_2,
    INTEGER_COMPARE,
    LONE_CARRY_OUT,
    UNSIGNED,
    Pd,
    PdOptional,
    Ps,
    RaPlain,
    UPd,
    UPd2,
    UPd2Optional,
    UPdOptional,
    UPs,
    UPsFalse,
    UPt,
    UPtFalse,
    URa,
    URaInverted,
    URaNegated,
    URd,
    URdPair,
)
from coppelius.isa.forms.special_registers import SPECIAL_REGISTERS
from coppelius.isa.operands import URZ_INDEX
from coppelius.isa.slots import READ, WRITE, Predicate, UniformRegister
from coppelius.isa.values import HEX, Hidden, Immediate, Modifier, Named, Suffix

_X = Suffix(".X")
_B, _C = Flexible("B", HEX, negate=True, signed=True), Flexible("C", negate=True)
_B_X, _C_X = Flexible("B", HEX, invert=True, signed=True), Flexible("C", invert=True)
_CARRIES = (UPdOptional, UPd2Optional)
_FACTOR = Flexible("B", HEX, signed=True)
_TERM, _TERM_X = Flexible("C", HEX, negate=True, signed=True), Flexible("C", HEX, invert=True, signed=True)
_SHIFT = Immediate("S", bits[79:75])
_LEA, _LEA_X = Flexible("B", HEX, negate=True), Flexible("B", HEX, invert=True)
_BITS = Flexible("X", HEX, invert=True)
_LOWER = Predicate("Pu", bits[70:68], READ, inverted=bits[71], uniform=True)
_LUT = Immediate("LUT", bits[79:72])
_NO_TERM: Mapping[Bits, int] = {bits[69:64]: URZ_INDEX}
_WRAP = Modifier("WRAP", bits[75], {0: "", 1: ".W"})
_SIZE = Modifier("SIZE", bits[75:73], {0: ".U8", 1: ".S8", 2: ".U16", 3: ".S16", 4: "", 5: ".64"}, default=4)
_URaByte = UniformRegister("A", bits[29:24], READ, tail=(Field("byte", bits[77:76], codes=frozenset(BYTES)), BYTES))
_BALLOT = UniformRegister("D", bits[21:16], WRITE, optional=True)
_LOADED = UniformRegister("D", bits[21:16], WRITE, width=("SIZE", {5: 2}))


def _row(
    mnemonic: str,
    opcode: int,
    operands: tuple[Operand, ...],
    modifiers: tuple[Modifier, ...] = (),
    forms: str = "14",
    *,
    fixed: Mapping[Bits, int] | None = None,
    extra: tuple[Field, ...] = (),
    hidden: tuple[Hidden, ...] = (),
    variant: str = "",
) -> Form:
    """A row of the datapath: of fixed latency, its guard a uniform predicate."""
    return Form(
        mnemonic, opcode, UNIFORM, FIXED, operands, modifiers, forms,
        fixed=fixed or {}, hidden=hidden, extra=extra, uniform=True, variant=variant,
    )  # fmt: skip


def _carry_row(
    mnemonic: str,
    opcode: int,
    operands: tuple[Operand, ...],
    modifiers: tuple[Modifier, ...] = (),
    forms: str = "14",
    *,
    fixed: Mapping[Bits, int],
) -> Form:
    """A row that has a carry input and does not look at it."""
    return _row(mnemonic, opcode, operands, modifiers, forms, fixed=fixed, extra=(CARRY,), hidden=(HIDDEN_CARRY,))


# fmt: off
FORMS = [
    _row("UIADD3", 0x090, (URd, *_CARRIES, URaNegated, _B, _C), fixed={bits[74]: 0},
         extra=(CARRY, CARRY_2), hidden=(HIDDEN_CARRY, HIDDEN_CARRY_2, LONE_CARRY_OUT)),
    _row("UIADD3.X", 0x090, (URd, *_CARRIES, URaInverted, _B_X, _C_X, UPsFalse, UPtFalse), fixed={bits[74]: 1},
         hidden=(LONE_CARRY_OUT,)),
    _carry_row("UIMAD", 0x0a4, (URd, URa, _FACTOR, _TERM), (UNSIGNED,), "124", fixed={bits[74]: 0, bits[83:81]: 7}),
    _row("UIMAD", 0x0a4, (URd, URa, _FACTOR, _TERM_X, UPsFalse), (UNSIGNED, _X), "124", fixed={bits[74]: 1, bits[83:81]: 7}, variant="x"),
    _carry_row("UIMAD.WIDE", 0x0a5, (URdPair, UPdOptional, URa, _FACTOR, Flexible("C", negate=True, width=2)), (UNSIGNED,),
         fixed={bits[74]: 0}),
    _row("UIMAD.WIDE", 0x0a5, (URdPair, UPdOptional, URa, _FACTOR, Flexible("C", invert=True, width=2), UPsFalse), (UNSIGNED, _X),
         fixed={bits[74]: 1}, variant="x"),
    _carry_row("ULEA", 0x091, (URd, UPdOptional, URaNegated, _LEA, _SHIFT), fixed={**_NO_TERM, bits[80]: 0, bits[74:73]: 0}),
    _row("ULEA.X", 0x091, (URd, UPdOptional, URaInverted, _LEA_X, _SHIFT, UPsFalse), fixed={**_NO_TERM, bits[80]: 0, bits[74:73]: 2}),
    _carry_row("ULEA.HI", 0x091, (URd, UPdOptional, URaNegated, _LEA, Flexible("C"), _SHIFT), fixed={bits[80]: 1, bits[74:73]: 0}),
    _row("ULEA.HI.X", 0x091, (URd, UPdOptional, URaInverted, _LEA_X, Flexible("C"), _SHIFT, UPsFalse), fixed={bits[80]: 1, bits[74:73]: 2}),
    _carry_row("ULEA.HI.SX32", 0x091, (URd, UPdOptional, URaNegated, _LEA, _SHIFT), fixed={**_NO_TERM, bits[80]: 1, bits[74:73]: 1}),
    _row("ULEA.HI.X.SX32", 0x091, (URd, UPdOptional, URaInverted, _LEA_X, _SHIFT, UPsFalse), fixed={**_NO_TERM, bits[80]: 1, bits[74:73]: 3}),
    _carry_row("ULEA.HI", 0x091, (URd, UPdOptional, URaNegated, Flexible("B"), Flexible("C", HEX), _SHIFT), forms="2",
               fixed={bits[80]: 1, bits[74:73]: 0}),
    _row("ULEA.HI.X", 0x091, (URd, UPdOptional, URaInverted, Flexible("B"), Flexible("C", HEX), _SHIFT, UPsFalse), forms="2",
         fixed={bits[80]: 1, bits[74:73]: 2}),
    _row("ULOP3.LUT", 0x092, (UPdOptional, URd, URa, Flexible("B", HEX), Flexible("C"), _LUT, UPsFalse),
         (Modifier("PAND", bits[80], {0: "", 1: ".PAND"}),)),
    _row("USHF", 0x099, (URd, URa, Flexible("B", HEX), Flexible("C", HEX)), SHIFT_MODIFIERS, "124"),
    _row("UPRMT", 0x096, (URd, URa, Flexible("B", HEX), Flexible("C"))),
    _row("USGXT", 0x09a, (URd, URa, Flexible("X", HEX)), (_WRAP, UNSIGNED)),
    _row("UBMSK", 0x09b, (URd, URa, Flexible("X", HEX)), (_WRAP,)),
    _row("USEL", 0x087, (URd, URa, Flexible("X", HEX), UPs)),
    _row("UISETP", 0x08c, (UPd, UPd2, URa, _FACTOR, UPs), (INTEGER_COMPARE, UNSIGNED, BOOLEAN), fixed={bits[72]: 0},
         extra=(UNUSED_LOWER,), hidden=(HIDDEN_LOWER,)),
    _row("UISETP", 0x08c, (UPd, UPd2, URa, _FACTOR, UPs, _LOWER), (INTEGER_COMPARE, UNSIGNED, BOOLEAN, Suffix(".EX")), fixed={bits[72]: 1},
         variant="ex"),
    _row("UFLO", 0x0bd, (URd, UPdOptional, _BITS), (UNSIGNED, Modifier("SH", bits[74], {0: "", 1: ".SH"}))),
    _row("UBREV", 0x0be, (URd, Flexible("X", HEX))),
    _row("UPOPC", 0x0bf, (URd, _BITS)),
    _row("UPLOP3.LUT", 0x89c, (UPd, UPd2, UPs, UPt, _LOWER, PREDICATE_LUT, PREDICATE_LUT_2), forms="", fixed={bits[67]: 0, bits[91]: 0}),

    # uniform predicates as bits of one byte of a uniform register, under a mask
    _row("UP2UR", 0x083, (URd, AllUniformPredicates(READ), URa, Flexible("X", HEX)), (Modifier("byte", bits[77:76], BYTES),), "46"),
    _row("UR2UP", 0x084, (AllUniformPredicates(WRITE), _URaByte, Flexible("X", HEX)), (), "46"),

    # moves and constants
    _row("UMOV", 0x882, (URd, Immediate("B", bits[63:32])), forms="", fixed={bits[91]: 0}),
    _row("UMOV", 0xc82, (URd, UniformRegister("B", bits[37:32], READ)), forms="", fixed={bits[91]: 1}, variant="register"),
    _row("ULDC", 0xab9, (_LOADED, UniformConstant("B")), (_SIZE,), forms="", fixed={bits[91]: 0}),
    _row("ULDC", 0xab9, (_LOADED, UniformConstant("B", pair=bits[29:24])), (_SIZE,), forms="", fixed={bits[91]: 1}, variant="bindless"),
    _row("ULDC", 0xabb, (_LOADED, UniformConstant("B", index=bits[29:24])), (_SIZE,), forms="", fixed={bits[91]: 1}, variant="indexed"),
    Form("S2UR", 0x9c3, SYSTEM, VARIABLE, (URd, Named("SR", bits[79:72], SPECIAL_REGISTERS)), fixed={bits[91]: 0}, uniform=True),
    Form("R2UR", 0x3c2, SYSTEM, VARIABLE, (PdOptional, URd, RaPlain), fixed={bits[91]: 0}),
    Form("R2UR.OR", 0x3c2, SYSTEM, VARIABLE, (Pd, URd, RaPlain), fixed={bits[91]: 0, bits[84]: 1}),
    Form("VOTEU", 0x886, UNIFORM, FIXED, (_BALLOT, UPd, Ps), (Modifier("MODE", bits[73:72], {0: ".ALL", 1: ".ANY", 2: ".EQ"}),), fixed={bits[91]: 0}),
    Form("REDUX", 0x3c4, SYSTEM, VARIABLE, (URd, RaPlain),
         (Modifier("OP", bits[80:78], {0: "", 1: ".OR", 2: ".XOR", 3: ".SUM", 4: ".MIN", 5: ".MAX"}), Modifier("S32", bits[73], {0: "", 1: ".S32"})),
         fixed={bits[91]: 0}),
]
# fmt: on
