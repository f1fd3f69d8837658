"""softmax: causal rows, row s keeps columns 0 to s; the others count as minus infinity whatever they hold.

Forward: probs = exp(t - max t) / sum, t = scores * scale.  The difference is one FMA, so only its own
rounding counts, and the row's maximum cancels against the sum.  Weights carry a factor 2^8 that cancels
too, so that no bf16 result is flushed on the way.
Backward: dscores = probs * (dprobs - sum(dprobs * probs)) * scale.

A masked element's registers may hold anything, an infinity that was read or what an earlier kernel left: selections
by column keep it out of both sums and of the result.

Left out: more than 16,384 groups, 64 GiB of scores, whose quads 32 bits do not count.
"""

from __future__ import annotations

from coppelius.builder.kernel import Kernel
from coppelius.builder.registers import Vector
from coppelius.isa.operands import RZ, P, R
from coppelius.isa.refusal import Refusal
from coppelius.kernels.blocks import Block, adding, block_of, fold, larger
from coppelius.kernels.exponential import MINUS_INFINITY, exponential

THREADS = 256
WARPS = THREADS // 32
LANES = 4
_SHIFT = 8


def softmax_forward(k: Kernel, *, size: int) -> None:
    """Grid: rows, groups; one block a row, four columns a thread; quads right of the diagonal are not read."""
    quad, block, kept = _place(k, size)
    with k.region("load"):
        x = k.vector("x", LANES)
        k.LDG_E_128(x, k.at(k.element("scores.pointer", "scores", quad, 4 * LANES)), guard=kept[0])
    with k.region("maximum"):
        scale = k.parameter("scale")
        scaled = []
        for lane in range(LANES):
            t = k.FMUL(f"t{lane}", x[lane], scale)
            k.FSEL(t, t, MINUS_INFINITY, kept[lane])
            scaled.append(t)
        own = fold("own", scaled, larger(k))
        top = block.maximum("top", own, slot=0)
    with k.region("sum"):
        shift = k.move("shift", float(_SHIFT))
        for lane in range(LANES):
            k.FFMA(x[lane], x[lane], scale, -top)
        for lane in range(LANES):
            exponential(k, x[lane], shift)
        for lane in range(LANES):
            k.FSEL(x[lane], x[lane], RZ, kept[lane])
        own = fold("weights", [x[lane] for lane in range(LANES)], adding(k))
        total = block.sum("total", own, slot=4 * WARPS)
    with k.region("store"):
        share = k.MUFU_RCP("share", total)
        for lane in range(LANES):
            # masked ones stay 0 even where the row is NaN
            k.FMUL(x[lane], x[lane], share, guard=kept[lane])
        _store(k, "probs", x, quad, 2 * LANES)
    k.finish()


def softmax_backward(k: Kernel, *, size: int) -> None:
    """Grid: rows, groups; one block a row, four columns a thread; both loads in flight."""
    quad, block, kept = _place(k, size)
    with k.region("load"):
        flow, packed = k.vector("flow", LANES), k.vector("packed", 2)
        half = k.size("half", 2 * LANES)
        k.LDG_E_128(flow, k.at(k.element("dprobs.pointer", "dprobs", quad, 4 * LANES)), guard=kept[0])
        k.LDG_E_64(packed, k.at(k.element("probs.pointer", "probs", quad, half)), guard=kept[0])
    with k.region("sum"):
        probs, products = [], []
        for lane in range(LANES):
            own = R(packed[lane // 2].index, half="H1_H1" if lane % 2 else "H0_H0")
            p = k.HADD2_F32(f"prob{lane}", -RZ, own)
            product = k.FMUL(f"product{lane}", p, flow[lane])
            k.FSEL(product, product, RZ, kept[lane])
            probs.append(p)
            products.append(product)
        along = block.sum("along", fold("products", products, adding(k)), slot=0)
    with k.region("store"):
        for lane in range(LANES):
            k.FADD(flow[lane], flow[lane], -along)
            k.FMUL(flow[lane], flow[lane], probs[lane])
            k.FMUL(flow[lane], flow[lane], k.parameter("scale"))
            k.FSEL(flow[lane], flow[lane], RZ, kept[lane])
        _store(k, "dscores", flow, quad, half)
    k.finish()


def _place(k: Kernel, size: int) -> tuple[R, Block, list[P]]:
    """The thread's quad among all groups', its block, and which of its four columns are not masked."""
    if size != THREADS * LANES:
        raise Refusal(f"softmax: {size} columns are not {THREADS} threads of {LANES}")
    k.descriptor()
    thread = k.thread_index()
    row = k.block_index("row")
    group = k.block_index("group", "Y")
    quad = k.IMAD("quad", k.IMAD("line", group, size, row), THREADS, thread)
    column = k.SHF_L_U32("column", thread, 2, RZ)
    before = k.IADD3("before", row, -column, RZ)
    kept = [k.compare(f"kept{lane}", "GE", before, lane, unsigned=False) for lane in range(LANES)]
    return quad, block_of(k, thread, WARPS), kept


def _store(k: Kernel, name: str, values: Vector, quad: R, size: int | R) -> None:
    packed = k.vector("halves", 2)
    for pair in range(2):
        k.F2FP_PACK_AB(packed[pair], values[2 * pair + 1], values[2 * pair])
    k.STG_E_64(k.at(k.element(f"{name}.pointer", name, quad, size)), packed)
