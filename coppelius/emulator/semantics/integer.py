"""Integer arithmetic modulo 2**32, with carries through predicates.

`.X` takes a carry in, and there a minus is the complement, so that a borrow chain works.
"""

from __future__ import annotations

import numpy as np

from coppelius.emulator.access import Read
from coppelius.emulator.group import Group
from coppelius.emulator.numerics import bitwise, integer
from coppelius.emulator.operation import Operation
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
    op.ignore("U32")
    a, b, c, d = op.integer("A"), op.integer("B"), op.integer("C"), op.destination()
    return lambda g: d(g, a(g) * b(g) + c(g))


def _imad_x(op: Operation) -> Step:
    op.ignore("U32")
    a, b, c, d, carry = op.integer("A"), op.integer("B"), op.word("C"), op.destination(), op.predicate("Ps")
    negate = _negated(op, "C")
    return lambda g: d(g, integer.imad_carry(a(g), b(g), c(g), carry(g), negate_c=negate))


@executes("IMAD.WIDE")
def imad_wide(op: Operation) -> Step:
    a, b, c, d = op.word("A"), op.word("B"), op.integer64("C"), op.destination64()
    signed, out, carry = not op.unsigned, op.destination_predicate("Pd"), _carry_in(op)
    if carry is None and not _writes_predicate(op, "Pd"):
        kind = np.int32 if signed else np.uint32

        def plain(g: Group) -> None:
            product = a(g).view(kind).astype(np.int64) * b(g).view(kind).astype(np.int64)
            d(g, product.view(np.uint64) + c(g))

        return plain

    def step(g: Group) -> None:
        taken = False if carry is None else carry(g)
        total, over = integer.imad_wide(a(g), b(g), c(g), signed=signed, carry=taken)
        d(g, total)
        out(g, over)

    return step


@executes("IMAD.HI")
def imad_hi(op: Operation) -> Step:
    """The high word of A * B + C, where C is a pair."""
    a, b, c, d = op.word("A"), op.word("B"), op.integer64("C"), op.destination()
    signed, out, carry = not op.unsigned, op.destination_predicate("Pd"), _carry_in(op)

    def step(g: Group) -> None:
        taken = False if carry is None else carry(g)
        total, over = integer.imad_hi(a(g), b(g), c(g), signed=signed, carry=taken)
        d(g, total)
        out(g, over)

    return step


def _carry_in(op: Operation) -> Read | None:
    return op.predicate("Ps") if op.marked(".X") else None


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


@executes("IMNMX", "VIMNMX")
def imnmx(op: Operation) -> Step:
    a, b, d, low = op.integer("A"), op.integer("B"), op.destination(), op.predicate("Ps")
    signed = not op.unsigned
    return lambda g: d(g, integer.minimum(a(g), b(g), signed=signed, maximum=~low(g)))


@executes("IABS")
def iabs(op: Operation) -> Step:
    b, d = op.integer("B"), op.destination()
    return lambda g: d(g, integer.iabs(b(g)))


@executes("IDP.4A", "IDP.2A")
def idp(op: Operation) -> Step:
    a, b, c, d = op.word("A"), op.word("B"), op.integer("C"), op.destination()
    signed_a, signed_b = (kind.startswith("S") for kind in op.suffix("TYPE").split("."))
    if op.mnemonic == "IDP.4A":
        return lambda g: d(g, integer.idp4a(a(g), b(g), c(g), signed_a=signed_a, signed_b=signed_b))
    high = op.suffix("HALF") == "HI"
    return lambda g: d(g, integer.idp2a(a(g), b(g), c(g), signed_a=signed_a, signed_b=signed_b, high=high))


@executes("VABSDIFF")
def vabsdiff(op: Operation) -> Step:
    """|A - B| + C."""
    a, b, c, d = op.word("A"), op.word("B"), op.word("C"), op.destination()
    kind = np.uint32 if op.unsigned else np.int32

    def step(g: Group) -> None:
        apart = np.abs(a(g).view(kind).astype(np.int64) - b(g).view(kind).astype(np.int64))
        d(g, apart.astype(np.uint32) + c(g))

    return step


@executes("VABSDIFF4")
def vabsdiff4(op: Operation) -> Step:
    """The bytes' absolute differences; of .ACC their sum added to C."""
    a, b, c, d = op.word("A"), op.word("B"), op.word("C"), op.destination()
    kind = np.uint8 if op.suffix("U8") == "U8" else np.int8
    accumulates = op.suffix("ACC") == "ACC"

    def step(g: Group) -> None:
        x, y = np.broadcast_arrays(a(g), b(g))
        shape = (*x.shape, 4)
        wide = [np.ascontiguousarray(v).view(kind).reshape(shape).astype(np.int32) for v in (x, y)]
        apart = np.abs(wide[0] - wide[1]).astype(np.uint32)
        if accumulates:
            d(g, apart.sum(axis=-1, dtype=np.uint32) + c(g))
        else:
            d(g, apart.astype(np.uint8).view(np.uint32)[..., 0])

    return step


@executes("POPC")
def popc(op: Operation) -> Step:
    b, d = op.integer("B"), op.destination()
    return lambda g: d(g, bitwise.popc(b(g)))


@executes("FLO")
def flo(op: Operation) -> Step:
    b, d, found = op.integer("B"), op.destination(), op.destination_predicate("Pd")
    signed, shift = not op.unsigned, op.flag("SH")

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
