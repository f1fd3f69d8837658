"""Integer arithmetic modulo 2**32, with carries through predicates.

`.X` takes a carry in, and there a minus is the complement, so that a borrow chain works.
"""

from __future__ import annotations

import numpy as np

from coppelius.emulator.group import Group
from coppelius.emulator.numerics import bitwise, integer
from coppelius.emulator.operation import Operation, Read
from coppelius.emulator.registry import Step, executes

NONE = np.zeros((1, 1), dtype=np.bool_)


def _writes_predicate(op: Operation, *names: str) -> bool:
    return any(op.has(n) and op.field(n) != 7 for n in names)


def _negated(op: Operation, name: str) -> bool:
    return bool(op.field(f"{name}.negate", 0))


@executes("IADD3")
def iadd3(op: Operation) -> Step:
    if _writes_predicate(op, "Pd", "Pd2"):
        return _iadd3_carry(op, extended=False)
    a, b, c, d = op.integer("A"), op.integer("B"), op.integer("C"), op.destination()
    return lambda g: d(g, a(g) + b(g) + c(g))


@executes("IADD3.X")
def iadd3_x(op: Operation) -> Step:
    return _iadd3_carry(op, extended=True)


def _iadd3_carry(op: Operation, *, extended: bool) -> Step:
    d, carry, carry2 = op.destination(), op.destination_predicate("Pd"), op.destination_predicate("Pd2")
    raw = [op.word(n) for n in "ABC"]
    negate = (_negated(op, "A"), _negated(op, "B"), _negated(op, "C"))
    first, second = op.predicate("Ps"), op.predicate("Pt")

    def step(g: Group) -> None:
        carries = (first(g), second(g)) if extended else (NONE, NONE)
        a, b, c = (read(g) for read in raw)
        total, out, out2 = integer.iadd3_carry(a, b, c, carries, negate=negate, extended=extended)
        d(g, total)
        carry(g, out)
        carry2(g, out2)

    return step


@executes("IMAD")
def imad(op: Operation) -> Step:
    if op.marked(".X"):
        return _imad_x(op)
    a, b, c, d = op.integer("A"), op.integer("B"), op.integer("C"), op.destination()
    return lambda g: d(g, a(g) * b(g) + c(g))


def _imad_x(op: Operation) -> Step:
    a, b, c, d, carry = op.integer("A"), op.integer("B"), op.word("C"), op.destination(), op.predicate("Ps")
    negate = _negated(op, "C")
    return lambda g: d(g, integer.imad_carry(a(g), b(g), c(g), carry(g), negate_c=negate))


def _carried(op: Operation, c: Read) -> Read:
    """C plus the carry in of `.X`; a carry out of that alone cannot be told, and compilers never chain there."""
    if not op.marked(".X"):
        return c
    carry = op.predicate("Ps")
    return lambda g: c(g) + carry(g).astype(np.uint64)


@executes("IMAD.WIDE")
def imad_wide(op: Operation) -> Step:
    a, b, c, d = op.word("A"), op.word("B"), op.integer64("C"), op.destination64()
    signed, carry, term = not op.unsigned, op.destination_predicate("Pd"), _carried(op, c)

    def step(g: Group) -> None:
        total, out = integer.imad_wide(a(g), b(g), term(g), signed=signed)
        d(g, total)
        carry(g, out)

    return step


@executes("IMAD.HI")
def imad_hi(op: Operation) -> Step:
    """The high word of A * B + C, where C is a pair."""
    a, b, c, d = op.word("A"), op.word("B"), op.integer64("C"), op.destination()
    signed, carry, term = not op.unsigned, op.destination_predicate("Pd"), _carried(op, c)

    def step(g: Group) -> None:
        total, out = integer.imad_hi(a(g), b(g), term(g), signed=signed)
        d(g, total)
        carry(g, out)

    return step


@executes("LEA", "LEA.X")
def lea(op: Operation) -> Step:
    a, b, d, out = op.word("A"), op.integer("B"), op.destination(), op.destination_predicate("Pd")
    shift, negate = op.field("S"), _negated(op, "A")
    extended, carry = op.mnemonic.endswith(".X"), op.predicate("Ps")

    def step(g: Group) -> None:
        total, carry_out = integer.lea(a(g), b(g), shift, negate_a=negate, carry=carry(g) if extended else None)
        d(g, total)
        out(g, carry_out)

    return step


@executes("LEA.HI", "LEA.HI.X", "LEA.HI.SX32", "LEA.HI.X.SX32")
def lea_hi(op: Operation) -> Step:
    a, b, d, out = op.word("A"), op.integer("B"), op.destination(), op.destination_predicate("Pd")
    c = op.word("C") if op.has("C") else None
    shift, negate = op.field("S"), _negated(op, "A")
    extended, carry = ".X" in op.mnemonic.replace("SX32", ""), op.predicate("Ps")

    def step(g: Group) -> None:
        high = None if c is None else c(g)
        taken = carry(g) if extended else None
        total, carry_out = integer.lea_hi(a(g), b(g), high, shift, negate_a=negate, carry=taken)
        d(g, total)
        out(g, carry_out)

    return step


@executes("IMNMX")
def imnmx(op: Operation) -> Step:
    a, b, d, low = op.integer("A"), op.integer("B"), op.destination(), op.predicate("Ps")
    signed = not op.unsigned
    return lambda g: d(g, integer.minimum(a(g), b(g), signed=signed, maximum=~low(g)))


@executes("IABS")
def iabs(op: Operation) -> Step:
    b, d = op.integer("B"), op.destination()
    return lambda g: d(g, integer.iabs(b(g)))


@executes("IDP", "IDP.4A")
def idp(op: Operation) -> Step:
    a, b, c, d = op.word("A"), op.word("B"), op.integer("C"), op.destination()
    signed_a, signed_b = "S8" in op.suffix("TYPE_A"), "S8" in op.suffix("TYPE_B")
    return lambda g: d(g, integer.idp4a(a(g), b(g), c(g), signed_a=signed_a, signed_b=signed_b))


@executes("POPC")
def popc(op: Operation) -> Step:
    b, d = op.integer("B"), op.destination()
    return lambda g: d(g, bitwise.popc(b(g)))


@executes("FLO")
def flo(op: Operation) -> Step:
    b, d, found = op.integer("B"), op.destination(), op.destination_predicate("Pd")
    signed, shift = not op.unsigned, bool(op.field("SH", 0))

    def step(g: Group) -> None:
        position = bitwise.flo(b(g), signed=signed, shift_amount=shift)
        d(g, position)
        found(g, position != np.uint32(0xFFFFFFFF))

    return step


@executes("BREV")
def brev(op: Operation) -> Step:
    b, d = op.integer("B"), op.destination()
    return lambda g: d(g, bitwise.brev(b(g)))


@executes("SGXT")
def sgxt(op: Operation) -> Step:
    a, b, d = op.word("A"), op.word("B"), op.destination()
    signed, wrap = not op.unsigned, op.suffix("WRAP") == "W"
    return lambda g: d(g, bitwise.sgxt(a(g), b(g), signed=signed, wrap=wrap))


@executes("BMSK")
def bmsk(op: Operation) -> Step:
    a, b, d = op.word("A"), op.word("B"), op.destination()
    wrap = op.suffix("WRAP") == "W"
    return lambda g: d(g, bitwise.bmsk(a(g), b(g), wrap=wrap))
