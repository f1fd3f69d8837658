"""Slots and modifiers that many rows share; a bit position is written once."""

from __future__ import annotations

from coppelius.isa.bits import bits
from coppelius.isa.slots import READ, WRITE, Predicate, Register
from coppelius.isa.values import Modifier

Rd = Register("D", bits[23:16], WRITE)
Ra = Register("A", bits[31:24], READ, reuse=bits[122])
RaSigned = Register("A", bits[31:24], READ, negate=bits[72], absolute=bits[73], reuse=bits[122])
RaNegated = Register("A", bits[31:24], READ, negate=bits[72], reuse=bits[122])

Pd = Predicate("Pd", bits[83:81], WRITE)
Pd2 = Predicate("Pd2", bits[86:84], WRITE)
Ps = Predicate("Ps", bits[89:87], READ, inverted=bits[90])

SATURATE = Modifier("SAT", bits[77], {0: "", 1: ".SAT"})
ROUNDING = Modifier("RND", bits[79:78], {0: "", 1: ".RM", 2: ".RP", 3: ".RZ"})
FLUSH = Modifier("FTZ", bits[80], {0: "", 1: ".FTZ"})
