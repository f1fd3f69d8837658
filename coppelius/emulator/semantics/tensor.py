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


@executes("IMMA.8816", "IMMA.16816", "IMMA.16832")
def imma(op: Operation) -> Step:
    kinds = op.suffix("TYPE").split(".")
    if any(kind.endswith("4") for kind in kinds):
        raise Refusal(f"{op.encoding.name}: the emulator has no meaning for 4-bit elements")
    shape = op.mnemonic.split(".")[1]
    rows = 8 if shape == "8816" else 16
    depth = {"8816": 16, "16816": 16, "16832": 32}[shape]
    signed_a, signed_b = (kind.startswith("S") for kind in kinds)
    sat = op.flag("SAT")
    a, b = fragment(op, "A", rows * depth // 128), fragment(op, "B", depth // 16)
    width = rows // 4
    c, write = fragment(op, "C", width), scatter(op, width)

    def step(g: Group) -> None:
        write(g, matrix.imma(a(g), b(g), c(g), depth, signed_a=signed_a, signed_b=signed_b, sat=sat, rows=rows))

    return step


@executes("DMMA.884")
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
