"""Matrix products of one warp, `exact` as Ampere accumulates or `fast` as a float32 product; see `numerics.matrix`.

Every lane of the warp takes part.  MOVM transposes an 8 x 8 matrix of 16-bit elements across the lanes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from coppelius.emulator.access import Read, Write
from coppelius.emulator.group import LANES, Group
from coppelius.emulator.numerics import matrix
from coppelius.emulator.numerics.fragment import accumulator, operand_a, operand_b
from coppelius.emulator.numerics.rounding import BF16, F16, F32, Format, Rounding
from coppelius.emulator.operation import Operation
from coppelius.emulator.registry import Step, executes
from coppelius.isa.operands import RZ_INDEX
from coppelius.isa.refusal import Refusal

Array = npt.NDArray[Any]


def fragment(op: Operation, name: str, count: int) -> Read:
    """`count` registers of an operand as `[warps, 32, count]`."""
    index = op.field(name)
    reads = [op.register(index + k if index != RZ_INDEX else RZ_INDEX) for k in range(count)]

    def read(g: Group) -> Array:
        out = np.empty((g.count, LANES, count), np.uint32)
        for k, one in enumerate(reads):
            out[:, :, k] = one(g)
        return out

    return read


def _signed(read: Read, negate: bool, bits: int) -> Read:
    if not negate:
        return read
    sign = np.uint32(0x80008000 if bits == 16 else 0x80000000)
    return lambda g: read(g) ^ sign


def _hmma(op: Operation) -> Step:
    _, shape, accumulator, *kind = op.mnemonic.split(".")
    depth = {"16816": 16, "1688": 8, "1684": 4}[shape]
    source: Format = {"BF16": BF16, "TF32": matrix.TF32}.get("".join(kind), F16)
    target = F32 if accumulator == "F32" else F16
    bits = 32 if source is matrix.TF32 else 16
    a = _signed(fragment(op, "A", 16 * depth * bits // 1024), bool(op.field("A.negate", 0)), bits)
    b = _signed(fragment(op, "B", 8 * depth * bits // 1024), bool(op.field("B.negate", 0)), bits)
    width = 4 if target is F32 else 2
    c, write = fragment(op, "C", width), scatter(op, width)
    exact = op.machine.mma == "exact"
    return lambda g: write(g, matrix.hmma(a(g), b(g), c(g), depth, source, target, exact=exact))


_HALF_ROWS = ("16816.F32", "16816.F16", "1688.F32", "1688.F16")
_OTHER_ROWS = ("16816.F32.BF16", "1688.F32.BF16", "1684.F32.TF32", "1688.F32.TF32")
executes(*(f"HMMA.{row}" for row in (*_HALF_ROWS, *_OTHER_ROWS)))(_hmma)


def scatter(op: Operation, count: int) -> Write:
    """Writes `[warps, 32, count]` to the registers of D."""
    writes = [op.destination("D", k) for k in range(count)]

    def write(g: Group, value: Array) -> None:
        for k, one in enumerate(writes):
            one(g, value[:, :, k])

    return write


# rows, depth of the product of bytes that has the same registers
_BYTES = {"8816": (8, 16), "16816": (16, 16), "16832": (16, 32)}
_NIBBLES = {"8832": (8, 16), "16832": (16, 16), "16864": (16, 32)}


@executes("IMMA.8816", "IMMA.16816", "IMMA.16832", "IMMA.8832", "IMMA.16864")
def imma(op: Operation) -> Step:
    """Of 4-bit elements, two products of bytes: even elements with even ones, odd with odd."""
    kinds, shape = op.suffix("TYPE").split("."), op.mnemonic.split(".")[1]
    nibbles = kinds[0].endswith("4")
    rows, depth = (_NIBBLES if nibbles else _BYTES)[shape]
    signed_a, signed_b = (kind.startswith("S") for kind in kinds)
    sat, width = op.flag("SAT"), rows // 4
    a, b = fragment(op, "A", rows * depth // 128), fragment(op, "B", depth // 16)
    c, write = fragment(op, "C", width), scatter(op, width)

    def product(x: Array, y: Array, z: Array, *, clamp: bool) -> Array:
        return matrix.imma(x, y, z, depth, signed_a=signed_a, signed_b=signed_b, sat=clamp, rows=rows)

    def step(g: Group) -> None:
        x, y, z = a(g), b(g), c(g)
        if not nibbles:
            write(g, product(x, y, z, clamp=sat))
            return
        even, odd = ((_nibbles(x, signed_a, k), _nibbles(y, signed_b, k)) for k in (0, 1))
        part = product(*even, np.zeros_like(z), clamp=False)
        part = product(*odd, part, clamp=False).view(np.int32).astype(np.int64) + z.view(np.int32)
        if sat:
            part = np.clip(part, -(1 << 31), (1 << 31) - 1)
        write(g, part.astype(np.uint64).astype(np.uint32))

    return step


def _nibbles(words: Array, signed: bool, odd: int) -> Array:
    """The even or odd 4-bit elements as bytes, extended by their sign or by zeros."""
    taken = words >> np.uint32(4 * odd) & np.uint32(0x0F0F0F0F)
    if not signed:
        return taken
    extended: Array = taken | (taken & np.uint32(0x08080808)) * np.uint32(0x1E)
    return extended


@executes("BMMA.88128", "BMMA.168128", "BMMA.168256")
def bmma(op: Operation) -> Step:
    """C plus the number of ones in A xor B, or A and B, word by word of each row and column."""
    rows, words = {"88128": (8, 4), "168128": (16, 4), "168256": (16, 8)}[op.mnemonic.split(".")[1]]
    together = np.bitwise_and if op.suffix("OP") == "AND" else np.bitwise_xor
    op.ignore(".POPC")
    layouts = operand_a(rows, words, 32), operand_b(words, 32), accumulator(rows, 32)
    a, b = fragment(op, "A", rows * words // 32), fragment(op, "B", words // 4)
    width = rows // 4
    c, write = fragment(op, "C", width), scatter(op, width)

    def step(g: Group) -> None:
        x = layouts[0].gather(a(g)).reshape(g.count, rows, 1, words)
        y = layouts[1].gather(b(g)).reshape(g.count, words, 8).transpose(0, 2, 1).reshape(g.count, 1, 8, words)
        ones = np.bitwise_count(together(x, y)).sum(axis=3, dtype=np.uint32)
        write(g, layouts[2].scatter(layouts[2].gather(c(g)) + ones.reshape(g.count, rows * 8)))

    return step


@executes("DMMA.884", "DMMA.8x8x4")
def dmma(op: Operation) -> Step:
    """Sign and magnitude act on the whole fragment of doubles."""
    a, b = (_doubles(op, name, 2) for name in "AB")
    c, write, rounding = _doubles(op, "C", 4), scatter(op, 4), Rounding(op.field("RND", 0))
    return lambda g: write(g, matrix.dmma(a(g), b(g), c(g), rounding))


def _doubles(op: Operation, name: str, count: int) -> Read:
    read = fragment(op, name, count)
    negate, absolute = op.field(f"{name}.negate", 0), op.field(f"{name}.absolute", 0)
    if not negate and not absolute:
        return read

    def signed(g: Group) -> Array:
        value = read(g)
        if absolute:
            value[:, :, 1::2] &= np.uint32(0x7FFFFFFF)
        if negate:
            value[:, :, 1::2] ^= np.uint32(0x80000000)
        return value

    return signed


@executes("MOVM.16")
def movm(op: Operation) -> Step:
    """Lane l holds row l / 4, columns 2 (l % 4) and the next; after, of the transposed matrix."""
    if op.suffix("MODE") != "MT88":
        raise Refusal(f"{op.encoding.name}: the emulator has no meaning for {op.suffix('MODE')}")
    a, d = op.word("A"), op.destination()

    def step(g: Group) -> None:
        words = np.ascontiguousarray(np.broadcast_to(a(g), (g.count, LANES)))
        cells = words.view(np.uint16).reshape(g.count, 8, 8)
        turned = np.ascontiguousarray(cells.transpose(0, 2, 1)).reshape(g.count, 64)
        d(g, turned.view(np.uint32))

    return step
