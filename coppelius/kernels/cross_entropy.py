"""cross-entropy: lse = max + ln(sum exp(x - max)), loss = lse - logit[target], both of each row.

Each thread keeps a running maximum and the sum of exponentials below it, rescaled where the maximum
rises; then the lanes' and the warps' pairs are joined the same way, in a fixed order.  The loss is
(max - logit) + ln(sum), so that two large numbers are subtracted before anything is added.

Backward: dlogits = (exp(x - lse) - onehot) * scale.  A target at or over the vocabulary is ignored: loss 0,
gradient row 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from coppelius.builder.kernel import Kernel
from coppelius.builder.lanes import Lanes, Together
from coppelius.builder.registers import Vector
from coppelius.isa.operands import PT, RZ, P, R
from coppelius.isa.refusal import Refusal
from coppelius.kernels.blocks import Block, adding, block_of, exchange, fold, larger
from coppelius.kernels.exponential import exponential, finite_top

THREADS = 256
WARPS = THREADS // 32
LANES = 4
_STEP = THREADS * LANES
_SHIFT = 24  # of the gradient's exponentials: small ones survive a scale up to 2^16


class Running(NamedTuple):
    """A thread's maximum, and the sum of its exponentials below that."""

    top: R
    total: R


def cross_entropy(k: Kernel, *, vocabulary: int, batch: int = 4) -> None:
    """One block a row; quad j of thread t is elements 1024 j + 4 t onwards, two batches of quads in flight."""
    steps = _steps("cross-entropy", vocabulary, batch)
    k.descriptor()
    with k.region("load"):
        thread = k.thread_index()
        row = k.block_index("row")
        start = k.element("row.start", "logits", row, 4 * vocabulary)
        source = k.offset_pointer("source", start, thread, 4 * LANES)
        block = block_of(k, thread, WARPS)
    with k.region("thread"):
        batches = [_load(k, source, first, batch) for first in range(0, min(2 * batch, steps), batch)]
        running = None
        for at in range(steps // batch):
            values = [quad[lane] for quad in batches[at] for lane in range(LANES)]
            top, level = _top(k, f"batch{at}", values, running)
            if (at + 1) * batch == steps:
                # the warp agrees on its maximum while the last exponentials are made
                (warp_top,) = exchange(k, ["warp.top"], [top], larger(k))
            running = _take(k, f"batch{at}", values, running, top, level)
            if (at + 2) * batch < steps:
                batches.append(_load(k, source, (at + 2) * batch, batch))
    assert running is not None
    with k.region("join"):
        top, total = _join(k, block, running, warp_top)
    with k.region("store"):
        _finish_row(k, thread, row, vocabulary, top, total)
    k.finish()


def _steps(name: str, vocabulary: int, batch: int) -> int:
    """How many quads a thread has."""
    steps, rest = divmod(vocabulary, _STEP)
    if rest or not steps or steps % batch:
        raise Refusal(f"{name}: {vocabulary} columns are not a multiple of {batch} times {_STEP}")
    return steps


def _load(k: Kernel, source: Vector, first: int, count: int) -> list[Vector]:
    return [k.LDG_E_128(f"quad{j}", k.at(source, 4 * _STEP * j)) for j in range(first, first + count)]


def _top(k: Kernel, name: str, values: Sequence[R], running: Running | None) -> tuple[R, R]:
    """The maximum with a batch brought in, and its level."""
    top = fold(f"{name}.largest", values, larger(k))
    if running is not None:
        k.FMNMX(top, top, running.top, ~PT)
    return top, finite_top(k, f"{name}.level", top)


def _take(k: Kernel, name: str, values: Sequence[R], running: Running | None, top: R, level: R) -> Running:
    """The sum with a batch brought in; the first batch has none before it."""
    if running is not None:
        _rescale(k, f"{name}.old", running.top, running.total, level)
    for value in values:
        k.FADD(value, value, -level)
        exponential(k, value)
    own = fold(f"{name}.sum", values, adding(k))
    if running is None:
        return Running(top, own)
    k.FADD(running.total, running.total, own)
    return Running(top, running.total)


def _rescale(k: Kernel | Together, name: str, top: R | Lanes, total: R | Lanes, level: R) -> None:
    """total *= exp(top - level)."""
    rise = k.FADD(f"{name}.rise", top, -level)
    exponential(k, rise)
    k.FMUL(total, total, rise)


def _join(k: Kernel, block: Block, running: Running, largest: R) -> tuple[R, R]:
    """The maximum and sum of the block from those of its threads; `largest`: the warp's."""
    _rescale(k, "lane", running.top, running.total, finite_top(k, "warp.level", largest))
    (total,) = exchange(k, ["warp.total"], [running.total], adding(k))
    block.share([largest, total], slot=0)
    k.BAR_SYNC_DEFER_BLOCKING(0)
    tops = block.shared("tops", 0)
    largest = fold("block.top", tops, larger(k))
    level = finite_top(k, "block.level", largest)
    sums = block.shared("totals", 4 * block.warps)
    # side by side, so that no exponential waits for another's product
    side = Together(k, block.warps)
    _rescale(side, "warp", Lanes(tops), Lanes(sums), level)
    total = sums[0]
    for part in sums[1:]:
        k.FADD(total, total, part)
    return largest, total


def _finish_row(k: Kernel, thread: R, row: R, vocabulary: int, top: R, total: R) -> None:
    """lse and loss, by the first thread."""
    k.exit_when(k.compare("follower", "NE", thread, RZ))
    target = k.LDG_E("target", k.at(k.element("target.pointer", "targets", row, 4)))
    known = k.compare("known", "LT", target, vocabulary)
    start = k.element("target.row", "logits", row, 4 * vocabulary)
    logit = k.zero("logit")
    k.LDG_E(logit, k.at(k.offset_pointer("logit.pointer", start, target, 4)), guard=known)
    logarithm = k.MUFU_LG2("logarithm", total)
    k.FMUL(logarithm, logarithm, math.log(2))
    lse = k.FADD("lse", top, logarithm)
    k.STG_E(k.at(k.element("lse.pointer", "lse", row, 4)), lse)
    loss = k.FADD("loss", top, -logit)
    k.FADD(loss, loss, logarithm)
    k.FSEL(loss, loss, RZ, known)
    k.STG_E(k.at(k.element("loss.pointer", "loss", row, 4)), loss)


def cross_entropy_backward(k: Kernel, *, vocabulary: int, batch: int = 3) -> None:
    """One block a row; quads as in the forward pass, two batches in flight; 256-byte stores of a warp."""
    steps = _steps("cross-entropy-backward", vocabulary, batch)
    k.descriptor()
    with k.region("load"):
        thread = k.thread_index()
        row = k.block_index("row")
        target = k.LDG_E("target", k.at(k.element("target.pointer", "targets", row, 4)))
        lse = k.LDG_E("lse", k.at(k.element("lse.pointer", "lse", row, 4)))
        start = k.element("row.start", "logits", row, 4 * vocabulary)
        source = k.offset_pointer("source", start, thread, 4 * LANES)
        batches = [_load(k, source, first, batch) for first in range(0, min(2 * batch, steps), batch)]
        out_row = k.element("out.row", "dlogits", row, 2 * vocabulary)
        out = k.offset_pointer("out", out_row, thread, 2 * LANES)
        known = k.compare("known", "LT", target, vocabulary)
        shift = k.move("shift", float(_SHIFT))
        # the target's distance from the thread's first element
        distance = k.IMAD("distance", thread, -LANES, target)
    for at in range(steps // batch):
        with k.region(f"batch{at}"):
            for j, quad in enumerate(batches[at], at * batch):
                _gradient(k, f"quad{j}", quad, lse, shift, distance, j, known)
                packed = k.vector(f"packed{j}", 2)
                for pair in range(2):
                    k.F2FP_PACK_AB(packed[pair], quad[2 * pair + 1], quad[2 * pair])
                k.STG_E_64(k.at(out, 2 * _STEP * j), packed)
            if (at + 2) * batch < steps:
                batches.append(_load(k, source, (at + 2) * batch, batch))
    k.finish()


def _gradient(k: Kernel, name: str, quad: Vector, lse: R, shift: R, distance: R, j: int, known: P) -> None:
    """(exp(x - lse) - onehot) * scale in place; 0 for an ignored row."""
    for lane in range(LANES):
        k.FADD(quad[lane], quad[lane], -lse)
        exponential(k, quad[lane], shift)
    for lane in range(LANES):
        x = quad[lane]
        hot = k.compare(f"{name}.hot{lane}", "EQ", distance, _STEP * j + lane)
        one = k.FSEL(f"{name}.one{lane}", RZ, 1.0, ~hot)
        k.FFMA(x, x, 2.0**-_SHIFT, -one)
        k.FMUL(x, x, k.parameter("scale"))
        k.FSEL(x, x, RZ, known)
