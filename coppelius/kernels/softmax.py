"""softmax: causal rows, row s keeps columns 0 to s; the others count as minus infinity whatever they hold.

Forward: probs = exp(t - max t) / sum, t = scores * scale.  The difference is one FMA, so only its own
rounding counts, and the row's maximum cancels against the sum.  Weights carry a factor 2^8 that cancels
too, so that no bf16 result is flushed on the way.
Backward: dscores = probs * (dprobs - sum(dprobs * probs)) * scale.
"""

from __future__ import annotations

from coppelius.builder.kernel import Kernel
from coppelius.builder.registers import Vector
from coppelius.isa.operands import RZ, P, R
from coppelius.isa.refusal import Refusal
from coppelius.kernels.blocks import adding, block_of, fold, larger
from coppelius.kernels.exponential import MINUS_INFINITY, exponential

THREADS = 256
WARPS = THREADS // 32
LANES = 4
_SHIFT = 8


def softmax_forward(k: Kernel, *, size: int) -> None:
    """Grid: rows, groups; one block a row, four columns a thread; quads right of the diagonal are not read."""
    thread, line, kept = _place(k, size)
    with k.region("load"):
        x = k.vector("x", LANES)
        for lane in range(LANES):
            k.MOV(x[lane], RZ)
        k.LDG_E_128(x, k.at(_pointer(k, "scores", line, thread, size, 4)), guard=kept[0])
        block = block_of(k, thread, WARPS)
    with k.region("maximum"):
        scale = k.move("scale", k.parameter("scale"))
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
        _store(k, "probs", x, line, thread, size)
    k.finish()


def softmax_backward(k: Kernel, *, size: int) -> None:
    """Grid: rows, groups; one block a row, four columns a thread; both loads in flight."""
    thread, line, kept = _place(k, size)
    with k.region("load"):
        flow, packed = k.vector("flow", LANES), k.vector("packed", 2)
        for register in (*(flow[lane] for lane in range(LANES)), *(packed[pair] for pair in range(2))):
            k.MOV(register, RZ)
        k.LDG_E_128(flow, k.at(_pointer(k, "dprobs", line, thread, size, 4)), guard=kept[0])
        k.LDG_E_64(packed, k.at(_pointer(k, "probs", line, thread, size, 2)), guard=kept[0])
        block = block_of(k, thread, WARPS)
    with k.region("sum"):
        probs, products = [], []
        for lane in range(LANES):
            half = R(packed[lane // 2].index, half="H1_H1" if lane % 2 else "H0_H0")
            p = k.HADD2_F32(f"prob{lane}", -RZ, half)
            k.FSEL(p, p, RZ, kept[lane])
            k.FSEL(flow[lane], flow[lane], RZ, kept[lane])
            probs.append(p)
            products.append(k.FMUL(f"product{lane}", p, flow[lane]))
        own = fold("products", products, adding(k))
        along = block.sum("along", own, slot=0)
    with k.region("store"):
        for lane in range(LANES):
            k.FADD(flow[lane], flow[lane], -along)
            k.FMUL(flow[lane], flow[lane], probs[lane])
            k.FMUL(flow[lane], flow[lane], k.parameter("scale"))
            k.FSEL(flow[lane], flow[lane], RZ, kept[lane])
        _store(k, "dscores", flow, line, thread, size)
    k.finish()


def _place(k: Kernel, size: int) -> tuple[R, R, list[P]]:
    """The thread, its line among all groups', and which of its four columns are not masked."""
    if size != THREADS * LANES:
        raise Refusal(f"softmax: {size} columns are not {THREADS} threads of {LANES}")
    k.descriptor()
    thread = k.thread_index()
    row = k.block_index("row")
    group = k.block_index("group", "Y")
    line = k.IMAD("line", group, size, row)
    column = k.SHF_L_U32("column", thread, 2, RZ)
    before = k.IADD3("before", row, -column, RZ)
    kept = [k.compare(f"kept{lane}", "GE", before, lane, unsigned=False) for lane in range(LANES)]
    return thread, line, kept


def _pointer(k: Kernel, name: str, line: R, thread: R, size: int, bytes_each: int) -> Vector:
    """The address of the thread's columns in that line of parameter `name`."""
    start = k.element(f"{name}.line", name, line, bytes_each * size)
    return k.offset_pointer(f"{name}.pointer", start, thread, bytes_each * LANES)


def _store(k: Kernel, name: str, values: Vector, line: R, thread: R, size: int) -> None:
    packed = k.vector("halves", 2)
    for pair in range(2):
        k.F2FP_PACK_AB(packed[pair], values[2 * pair + 1], values[2 * pair])
    k.STG_E_64(k.at(_pointer(k, name, line, thread, size, 2)), packed)
