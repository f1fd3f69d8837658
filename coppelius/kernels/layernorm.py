"""layernorm-forward: out = (x - mean) * rstd * gain + bias, rstd = 1 / sqrt(variance + epsilon), biased variance.

Two passes over the row in registers: the mean first, then the squares of what is left, so that a large
mean costs no accuracy.
"""

from __future__ import annotations

from coppelius.builder.kernel import Kernel
from coppelius.builder.registers import Vector
from coppelius.isa.operands import RZ, R
from coppelius.isa.refusal import Refusal
from coppelius.kernels.blocks import block_sum

THREADS = 128
LANES = 4


def layernorm_forward(k: Kernel, *, width: int) -> None:
    """One block a row, four columns a thread; mean and variance by two block reductions in a fixed order."""
    if width != THREADS * LANES:
        raise Refusal(f"layernorm-forward: width {width} is not {THREADS} threads of {LANES} columns")
    k.descriptor()
    with k.region("load"):
        column = k.thread_index("column")
        row = k.block_index("row")
        lanes = k.move("lane.bytes", 4 * LANES)
        stride = k.move("row.bytes", 4 * width)
        x_row = k.IMAD_WIDE_U32("x.row", row, stride, k.parameter("x"))
        x = k.LDG_E_128("x", k.at(k.IMAD_WIDE_U32("x.pointer", column, lanes, x_row)))
        gain = k.LDG_E_128("gain", k.at(k.IMAD_WIDE_U32("gain.pointer", column, lanes, k.parameter("gain"))))
        bias = k.LDG_E_128("bias", k.at(k.IMAD_WIDE_U32("bias.pointer", column, lanes, k.parameter("bias"))))
    with k.region("mean"):
        total = block_sum(k, "mean", _fold(k, "sum", x), thread=column, warps=4, slot=0)
        mean = k.FMUL("mean", total, 1 / width)
    with k.region("variance"):
        for lane in range(LANES):
            k.FADD(x[lane], x[lane], -mean)
        squares = k.FMUL("squares", x[0], x[0])
        for lane in range(1, LANES):
            k.FFMA(squares, x[lane], x[lane], squares)
        scatter = block_sum(k, "variance", squares, thread=column, warps=4, slot=16)
        shifted = k.FFMA("shifted", scatter, k.move("inverse.width", 1 / width), k.parameter("epsilon"))
        rstd = k.MUFU_RSQ("rstd", shifted)
    with k.region("store"):
        packed = _normalised(k, x, gain, bias, rstd)
        halves = k.move("half.bytes", 2 * LANES)
        half_stride = k.move("half.row.bytes", 2 * width)
        out_row = k.IMAD_WIDE_U32("out.row", row, half_stride, k.parameter("out"))
        k.STG_E_64(k.at(k.IMAD_WIDE_U32("out.pointer", column, halves, out_row)), packed)
        first = k.compare("first", "EQ", column, RZ)
        for name, value in (("mean", mean), ("rstd", rstd)):
            k.STG_E(k.at(k.element(f"{name}.pointer", name, row, 4)), value, guard=first)
    k.finish()


def _fold(k: Kernel, name: str, x: Vector) -> R:
    """(x0 + x1) + (x2 + x3)."""
    left = k.FADD(f"{name}.left", x[0], x[1])
    right = k.FADD(f"{name}.right", x[2], x[3])
    total: R = k.FADD(name, left, right)
    return total


def _normalised(k: Kernel, centred: Vector, gain: Vector, bias: Vector, rstd: R) -> Vector:
    """centred * rstd * gain + bias, packed to halves."""
    for lane in range(LANES):
        k.FMUL(centred[lane], centred[lane], rstd)
        k.FFMA(centred[lane], centred[lane], gain[lane], bias[lane])
    packed = k.vector("packed", 2)
    for pair in range(2):
        k.F2FP_PACK_AB(packed[pair], centred[2 * pair + 1], centred[2 * pair])
    return packed
