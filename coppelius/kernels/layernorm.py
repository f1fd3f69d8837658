"""layernorm-forward: out = (x - mean) * rstd * gain + bias, rstd = 1 / sqrt(variance + epsilon), biased variance.

Two passes over the row in registers: the mean first, then what is left of each element.  Its sum corrects
the mean and its squares give the variance, so that a mean much larger than the spread costs no accuracy:
variance = mean(d^2) - mean(d)^2 with d = x - mean, where mean(d) is only the rounding of the first mean.

layernorm-backward: dx = rstd * (g - mean(g) - n * mean(g n)), where g = dy * gain and n = (x - mean) * rstd.

Left out: rows whose sum of squares leaves f32 (spread over 8e17) have rstd 0, rows whose sum leaves it (numbers of one
sign over 6.6e35) are not numbers; more than 2^25 rows, 64 GiB of f32, whose quads 32 bits do not count.
"""

from __future__ import annotations

from coppelius.builder.kernel import Kernel
from coppelius.builder.registers import Vector
from coppelius.isa.operands import RZ, R
from coppelius.isa.refusal import Refusal
from coppelius.kernels.blocks import adding, block_of, fold

THREADS = 128
WARPS = THREADS // 32
LANES = 4


def layernorm_forward(k: Kernel, *, width: int) -> None:
    """One block a row, four columns a thread; mean and variance by two block reductions in a fixed order."""
    _check(width)
    k.descriptor()
    with k.region("load"):
        column = k.thread_index("column")
        row = k.block_index("row")
        quad, size = _quad(k, row, column), k.size("size", 4 * LANES)
        x = k.LDG_E_128("x", k.at(k.element("x.pointer", "x", quad, size)))
        gain = k.LDG_E_128("gain", k.at(k.element("gain.pointer", "gain", column, size)))
        bias = k.LDG_E_128("bias", k.at(k.element("bias.pointer", "bias", column, size)))
        block = block_of(k, column, WARPS)
    with k.region("mean"):
        total = block.sum("total", _total(k, "row", x), slot=0)
        rough = k.FMUL("rough", total, 1 / width)
    with k.region("variance"):
        for lane in range(LANES):
            k.FADD(x[lane], x[lane], -rough)
        squares = [k.FMUL(f"square{lane}", x[lane], x[lane]) for lane in range(LANES)]
        left, scatter = block.sums(
            ["left", "scatter"],
            [_total(k, "left", x), fold("squares", squares, adding(k))],
            slot=16,
        )
        left = k.FMUL("left.mean", left, 1 / width)
        mean = k.FADD("mean", rough, left)
        spread = k.FMUL("spread", scatter, 1 / width)
        k.FFMA(spread, -left, left, spread)
        rstd = _reciprocal_root(k, spread)
    with k.region("store"):
        packed = _normalised(k, x, left, gain, bias, rstd)
        k.STG_E_64(k.at(k.element("out.pointer", "out", quad, 2 * LANES)), packed)
        first = k.compare("first", "EQ", column, RZ)
        single = k.size("single", 4)
        for name, value in (("mean", mean), ("rstd", rstd)):
            k.STG_E(k.at(k.element(f"{name}.pointer", name, row, single)), value, guard=first)
    k.finish()


def layernorm_backward(k: Kernel, *, width: int) -> None:
    """One block a row, four columns a thread; both means behind one barrier."""
    _check(width)
    k.descriptor()
    with k.region("load"):
        column = k.thread_index("column")
        row = k.block_index("row")
        quad, size, single = _quad(k, row, column), k.size("size", 4 * LANES), k.size("single", 4)
        x = k.LDG_E_128("x", k.at(k.element("x.pointer", "x", quad, size)))
        g = k.LDG_E_128("g", k.at(k.element("g.pointer", "dy", quad, size)))
        gain = k.LDG_E_128("gain", k.at(k.element("gain.pointer", "gain", column, size)))
        mean = k.LDG_E("mean", k.at(k.element("mean.pointer", "mean", row, single)))
        rstd = k.LDG_E("rstd", k.at(k.element("rstd.pointer", "rstd", row, single)))
        block = block_of(k, column, WARPS)
    with k.region("means"):
        products = []
        for lane in range(LANES):
            k.FADD(x[lane], x[lane], -mean)
            k.FMUL(x[lane], x[lane], rstd)
            k.FMUL(g[lane], g[lane], gain[lane])
            products.append(k.FMUL(f"product{lane}", g[lane], x[lane]))
        level, along = block.sums(
            ["level", "along"],
            [_total(k, "level", g), fold("products", products, adding(k))],
            slot=0,
        )
        level = k.FMUL("level.mean", level, 1 / width)
        along = k.FMUL("along.mean", along, 1 / width)
    with k.region("store"):
        for lane in range(LANES):
            k.FADD(g[lane], g[lane], -level)
            k.FFMA(g[lane], -x[lane], along, g[lane])
            k.FMUL(g[lane], g[lane], rstd)
        k.STG_E_128(k.at(k.element("dx.pointer", "dx", quad, size)), g)
    k.finish()


def _check(width: int) -> None:
    if width != THREADS * LANES:
        raise Refusal(f"layernorm: width {width} is not {THREADS} threads of {LANES} columns")


def _quad(k: Kernel, row: R, column: R) -> R:
    """The thread's four columns among all rows'."""
    made: R = k.IMAD("quad", row, THREADS, column)
    return made


def _total(k: Kernel, name: str, x: Vector) -> R:
    """(x0 + x1) + (x2 + x3)."""
    return fold(name, [x[lane] for lane in range(LANES)], adding(k))


def _reciprocal_root(k: Kernel, variance: R) -> R:
    """1 / sqrt(variance + epsilon); MUFU flushes denormals, so a small sum goes in times 2^64."""
    shifted = k.FADD("shifted", variance, k.parameter("epsilon"))
    small = k.compare_f32("small", "LT", shifted, 2.0**-100)
    k.FMUL(shifted, shifted, 2.0**64, guard=small)
    rstd: R = k.MUFU_RSQ("rstd", shifted)
    k.FMUL(rstd, rstd, 2.0**32, guard=small)
    return rstd


def _normalised(k: Kernel, rest: Vector, left: R, gain: Vector, bias: Vector, rstd: R) -> Vector:
    """(rest - left) * rstd * gain + bias, packed to halves."""
    for lane in range(LANES):
        k.FADD(rest[lane], rest[lane], -left)
        k.FMUL(rest[lane], rest[lane], rstd)
        k.FFMA(rest[lane], rest[lane], gain[lane], bias[lane])
    packed = k.vector("packed", 2)
    for pair in range(2):
        k.F2FP_PACK_AB(packed[pair], rest[2 * pair + 1], rest[2 * pair])
    return packed
