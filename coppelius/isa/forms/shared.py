"""Slots and modifiers that many rows share; a bit position is written once."""

from __future__ import annotations

from coppelius.isa.bits import Field, bits
from coppelius.isa.slots import READ, WRITE, Predicate, Register, UniformRegister
from coppelius.isa.values import Hidden, Modifier

# general registers
Rd = Register("D", bits[23:16], WRITE)
RdPair = Register("D", bits[23:16], WRITE, width=2)
Ra = Register("A", bits[31:24], READ, reuse=bits[122])
RaSigned = Register("A", bits[31:24], READ, negate=bits[72], absolute=bits[73], reuse=bits[122])
RaNegated = Register("A", bits[31:24], READ, negate=bits[72], reuse=bits[122])
RaInverted = Register("A", bits[31:24], READ, negate=bits[72], reuse=bits[122], invert=True)
# without a reuse cache before them: the slower units
RaPlain = Register("A", bits[31:24], READ)
RaPlainSigned = Register("A", bits[31:24], READ, negate=bits[72], absolute=bits[73])

# uniform registers
URd = UniformRegister("D", bits[21:16], WRITE)
URdPair = UniformRegister("D", bits[21:16], WRITE, width=2)
URa = UniformRegister("A", bits[29:24], READ)
URaNegated = UniformRegister("A", bits[29:24], READ, negate=bits[72])
URaInverted = UniformRegister("A", bits[29:24], READ, negate=bits[72], invert=True)

# predicates written
Pd = Predicate("Pd", bits[83:81], WRITE)
Pd2 = Predicate("Pd2", bits[86:84], WRITE)
PdOptional = Predicate("Pd", bits[83:81], WRITE, optional={"Pd": 7})
Pd2Optional = Predicate("Pd2", bits[86:84], WRITE, optional={"Pd2": 7})
UPd = Predicate("Pd", bits[83:81], WRITE, uniform=True)
UPd2 = Predicate("Pd2", bits[86:84], WRITE, uniform=True)
UPdOptional = Predicate("Pd", bits[83:81], WRITE, uniform=True, optional={"Pd": 7})
UPd2Optional = Predicate("Pd2", bits[86:84], WRITE, uniform=True, optional={"Pd2": 7})

# predicates read; the inverted ones of a logic or carry operation read as false where nothing is said
Ps = Predicate("Ps", bits[89:87], READ, inverted=bits[90])
PsFalse = Predicate("Ps", bits[89:87], READ, inverted=bits[90], default_not=1)
UPs = Predicate("Ps", bits[89:87], READ, inverted=bits[90], uniform=True)
UPsFalse = Predicate("Ps", bits[89:87], READ, inverted=bits[90], uniform=True, default_not=1)
# the second carry in, the second of three logic inputs
Pt = Predicate("Pt", bits[79:77], READ, inverted=bits[80])
PtFalse = Predicate("Pt", bits[79:77], READ, inverted=bits[80], default_not=1)
UPt = Predicate("Pt", bits[79:77], READ, inverted=bits[80], uniform=True)
UPtFalse = Predicate("Pt", bits[79:77], READ, inverted=bits[80], uniform=True, default_not=1)

# the same places where the instruction does not look: compilers of different years write different values
CARRY = Field("carry", bits[90:87], default=15)
CARRY_2 = Field("carry2", bits[80:77], default=15)
HIDDEN_CARRY = Hidden("carry", "carry", usual=15)
HIDDEN_CARRY_2 = Hidden("carry2", "carry2", usual=15)
# a lone second carry out prints where the first one would
LONE_CARRY_OUT = Hidden("Pd2", "Pd2", usual=7, prefix="P", when={"Pd": 7})

SATURATE = Modifier("SAT", bits[77], {0: "", 1: ".SAT"})
ROUNDING = Modifier("RND", bits[79:78], {0: "", 1: ".RM", 2: ".RP", 3: ".RZ"})
FLUSH = Modifier("FTZ", bits[80], {0: "", 1: ".FTZ"})
UNSIGNED = Modifier("U32", bits[73], {1: "", 0: ".U32"}, default=1)
BOOLEAN = Modifier("BOOL", bits[75:74], {0: ".AND", 1: ".OR", 2: ".XOR"})
FLOAT_COMPARE = [
    ".F",
    ".LT",
    ".EQ",
    ".LE",
    ".GT",
    ".NE",
    ".GE",
    ".NUM",
    ".NAN",
    ".LTU",
    ".EQU",
    ".LEU",
    ".GTU",
    ".NEU",
    ".GEU",
    ".T",
]  # by code 0..15
COMPARE = Modifier("CMP", bits[79:76], dict(enumerate(FLOAT_COMPARE)))
INTEGER_COMPARE = Modifier("CMP", bits[78:76], dict(enumerate([".F", ".LT", ".EQ", ".LE", ".GT", ".NE", ".GE", ".T"])))
