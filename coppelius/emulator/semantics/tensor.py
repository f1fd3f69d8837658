"""Matrix products of one warp, `exact` as Ampere accumulates or `fast` as a float32 product; see `numerics.matrix`.

Every lane of the warp takes part.  MOVM transposes an 8 x 8 matrix of 16-bit elements across the lanes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from coppelius.emulator.group import LANES, Group
from coppelius.emulator.numerics import matrix
from coppelius.emulator.numerics.rounding import BF16, F16, F32, Format
from coppelius.emulator.operation import Operation, Read
from coppelius.emulator.registry import Step, executes
from coppelius.isa.operands import RZ_INDEX

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


@executes("HMMA")
def hmma(op: Operation) -> Step:
    shape, kind = op.suffix("SHAPE"), op.suffix("TYPE")
    depth = {"16816": 16, "1688": 8, "1684": 4}[shape]
    source: Format = {"BF16": BF16, "TF32": matrix.TF32}.get(kind, F16)
    target = F32 if op.suffix("ACCUMULATE") == "F32" else F16
    bits = 32 if source is matrix.TF32 else 16
    a = _signed(fragment(op, "A", 16 * depth * bits // 1024), bool(op.field("A.negate", 0)), bits)
    b = _signed(fragment(op, "B", 8 * depth * bits // 1024), bool(op.field("B.negate", 0)), bits)
    width = 4 if target is F32 else 2
    c = fragment(op, "C", width)
    writes = [op.destination("D", k) for k in range(width)]
    exact = op.machine.mma == "exact"

    def step(g: Group) -> None:
        result = matrix.hmma(a(g), b(g), c(g), depth, source, target, exact=exact)
        for k, write in enumerate(writes):
            write(g, result[:, :, k])

    return step


@executes("IMMA")
def imma(op: Operation) -> Step:
    shape = op.suffix("SHAPE")
    depth = {"16832": 32, "16816": 16, "8816": 16}[shape]
    rows = 8 if shape == "8816" else 16
    signed_a, signed_b = "S8" in op.suffix("TYPE_A"), "S8" in op.suffix("TYPE_B")
    sat = bool(op.field("SAT", 0))
    a, b = fragment(op, "A", rows * depth // 128), fragment(op, "B", depth // 16)
    width = rows // 4
    c, writes = fragment(op, "C", width), [op.destination("D", k) for k in range(width)]

    def step(g: Group) -> None:
        result = matrix.imma(a(g), b(g), c(g), depth, signed_a=signed_a, signed_b=signed_b, sat=sat, rows=rows)
        for k, write in enumerate(writes):
            write(g, result[:, :, k])

    return step


@executes("DMMA")
def dmma(op: Operation) -> Step:
    a, b, c = fragment(op, "A", 2), fragment(op, "B", 2), fragment(op, "C", 4)
    writes = [op.destination("D", k) for k in range(4)]

    def step(g: Group) -> None:
        result = matrix.dmma(a(g), b(g), c(g))
        for k, write in enumerate(writes):
            write(g, result[:, :, k])

    return step


@executes("MOVM")
def movm(op: Operation) -> Step:
    """Lane l holds row l / 4, columns 2 (l % 4) and the next; after, of the transposed matrix."""
    a, d = op.word("A"), op.destination()

    def step(g: Group) -> None:
        words = np.ascontiguousarray(np.broadcast_to(a(g), (g.count, LANES)))
        cells = words.view(np.uint16).reshape(g.count, 8, 8)
        turned = np.ascontiguousarray(cells.transpose(0, 2, 1)).reshape(g.count, 64)
        d(g, turned.view(np.uint32))

    return step
