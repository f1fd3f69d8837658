"""adamw: one step over the whole bank, state in f32, and the half copy of each stored parameter.

    g' = g gradient_scale; m = beta1 m + (1 - beta1) g'; v = beta2 v + (1 - beta2) g'^2
    p = p - rate (m correction1 / (sqrt(v correction2) + epsilon) + decay p)

The bank is bandwidth-bound with instructions to spare, so m, v, the root and the quotient carry a low part
(the rounding error of each step, exact by FMA) until p is rounded: where beta1 m and the gradient cancel,
the step is still that of the exact m.  1 - beta is exact for beta >= 1/2.

NaN stays NaN and an infinite moment infinite.  Left out: negative v; g' over 1.8e19, whose square is infinite before
1 - beta2 takes it back; an m or v below 2^-102 has no low part that f32 could hold, so that its step is that of the
stored one.

Threads walk quads of four elements with the stride of the whole grid; count and stride are baked.  A thread
leaves once its index passes the last quad, so that the index may lie one stride past it and must fit 32 bits.
"""

from __future__ import annotations

from typing import NamedTuple

from coppelius.builder.kernel import Kernel
from coppelius.builder.lanes import Lanes, Together
from coppelius.builder.registers import Vector
from coppelius.isa.operands import PT, RZ, Constant, R
from coppelius.isa.refusal import Refusal

THREADS = 256
LANES = 4
_WORD = 1 << 32
_TOGETHER = 2  # elements side by side: as many as 40 registers hold
_INFINITY, _FINITE = float("inf"), 2.0**127
# MUFU flushes denormals, so a small v goes into the root times 2^64; the root of 0 is taken as 2^-60 at most
_SMALL, _LEAST = 2.0**-64, 2.0**-120


class Long(NamedTuple):
    """An unrounded value a lane, high + low."""

    high: Lanes
    low: Lanes


class Walk(NamedTuple):
    """`stride` quads are stepped at once, `passes` times in all; the last pass may be a part."""

    quads: int
    stride: int
    passes: int


def walk(elements: int, blocks: int) -> Walk:
    """How the grid walks the bank; refuses by name a bank or a grid that the image's bounds cannot say."""
    quads, rest = divmod(elements, LANES)
    stride = blocks * THREADS
    if rest or quads < 1:
        raise Refusal(f"adamw: {elements} elements are not whole quads; make the bank a multiple of {LANES}")
    if quads >= _WORD:
        raise Refusal(f"adamw: {quads} quads leave the 32-bit bound; split the bank into launches")
    if stride < 1:
        raise Refusal(f"adamw: {blocks} blocks reach no quad; launch at least one")
    if quads - 1 + stride >= _WORD:
        raise Refusal(f"adamw: {blocks} blocks reach past 32 bits after {quads} quads; launch fewer blocks")
    return Walk(quads, stride, -(-quads // stride))


def adamw(k: Kernel, *, elements: int, blocks: int = 1024) -> None:
    """256 threads, four 128-bit loads in flight, three 128-bit stores and a 64-bit one."""
    count, stride, _ = walk(elements, blocks)
    k.descriptor()
    thread = k.thread_index()
    index = k.IMAD("index", k.block_index(), THREADS, thread)
    k.exit_when(k.compare("past", "GE", index, count))
    fresh = [
        k.FADD(f"fresh{n}", k.move(f"one{n}", 1.0), -k.parameter(beta)) for n, beta in ((1, "beta1"), (2, "beta2"))
    ]
    again = k.label("again")
    k.place(again)
    with k.region("load"):
        size = k.size("from.size", 4 * LANES)
        g, m, v, p = (k.LDG_E_128(name, k.at(k.element(f"{name}.from", name, index, size))) for name in "gmvp")
    with k.region("step"):
        for first in range(0, LANES, _TOGETHER):
            side = Together(k, _TOGETHER)
            old = [Lanes(vector[first + n] for n in range(_TOGETHER)) for vector in (p, m, v, g)]
            _step(side, old[0], old[1], old[2], old[3], fresh)
    with k.region("store"):
        # addresses anew: between loads and stores their registers serve the steps
        size = k.size("to.size", 4 * LANES)
        for name, value in (("m", m), ("v", v), ("p", p)):
            k.STG_E_128(k.at(k.element(f"{name}.to", name, index, size)), value)
        packed = _packed(k, p)
        k.STG_E_64(k.at(k.element("half.to", "half_copy", index, 2 * LANES)), packed)
    k.IADD3(index, index, stride, RZ)
    k.BRA(again, guard=k.compare("more", "LT", index, count))
    k.finish()


def _packed(k: Kernel, values: Vector) -> Vector:
    packed = k.vector("packed", 2)
    for pair in range(2):
        k.F2FP_PACK_AB(packed[pair], values[2 * pair + 1], values[2 * pair])
    return packed


def _step(k: Together, p: Lanes, m: Lanes, v: Lanes, g: Lanes, fresh: list[R]) -> None:
    """The elements side by side: p, m and v become the new ones."""
    gradient = _product(k, "gradient", g, k.parameter("gradient_scale"))
    square = _square(k, gradient)
    first = _mixed(k, "m", m, k.parameter("beta1"), gradient, fresh[0])
    second = _mixed(k, "v", v, k.parameter("beta2"), square, fresh[1])
    k.MOV(m, first.high)
    k.MOV(v, second.high)
    top = _scaled(k, "top", first, k.parameter("correction1"))
    root = _root(k, _scaled(k, "spread", second, k.parameter("correction2")))
    step = _quotient(k, top, root)
    k.FFMA(step, p, k.parameter("decay"), step)
    k.FFMA(p, step, -k.parameter("rate"), p)


def _product(k: Together, name: str, a: Lanes, b: Lanes | R | Constant) -> Long:
    high = k.FMUL(name, a, b)
    return Long(high, k.FFMA(f"{name}.low", a, b, -high))


def _scaled(k: Together, name: str, a: Long, b: R | Constant) -> Long:
    out = _product(k, name, a.high, b)
    k.FFMA(out.low, a.low, b, out.low)
    return out


def _square(k: Together, a: Long) -> Long:
    out = _product(k, "square", a.high, a.high)
    twice = k.FADD("twice", a.high, a.high)
    k.FFMA(out.low, twice, a.low, out.low)
    return out


def _sum(k: Together, name: str, a: Lanes, b: Lanes) -> Long:
    """a + b and its rounding error, whichever is larger."""
    high = k.FADD(name, a, b)
    from_b = k.FADD(f"{name}.b", high, -a)
    from_a = k.FADD(f"{name}.a", high, -from_b)
    k.FADD(from_a, a, -from_a)
    k.FADD(from_b, b, -from_b)
    return Long(high, k.FADD(f"{name}.low", from_a, from_b))


def _mixed(k: Together, name: str, old: Lanes, beta: Constant, new: Long, fresh: R) -> Long:
    """beta old + (1 - beta) new, its high part rounded to nearest."""
    kept = _product(k, f"{name}.kept", old, beta)
    added = _scaled(k, f"{name}.added", new, fresh)
    total = _sum(k, f"{name}.sum", kept.high, added.high)
    k.FADD(total.low, total.low, added.low)
    k.FADD(total.low, total.low, kept.low)
    # an infinity's low part is no number, which would become the sum; any finite one leaves the infinity
    k.FMNMX(total.low, total.low, _FINITE, PT)
    high = k.FADD(f"{name}.new", total.high, total.low)
    taken = k.FADD(f"{name}.taken", high, -total.high)
    k.FADD(total.low, total.low, -taken)
    return Long(high, total.low)


def _root(k: Together, a: Long) -> Long:
    """sqrt(a): r = a / sqrt(a) by the slow unit, then r + (a - r^2) / 2 r."""
    small = k.compare_f32("small", "LT", a.high, _SMALL)
    k.FMUL(a.high, a.high, 2.0**64, guard=small)
    k.FMUL(a.low, a.low, 2.0**64, guard=small)
    inverse = k.MUFU_RSQ("inverse", k.FMNMX("floor", a.high, _LEAST, ~PT))
    root = k.FMUL("root", a.high, inverse)
    left = k.FFMA("left", -root, root, a.high)
    k.FADD(left, left, a.low)
    k.FMUL(inverse, inverse, 0.5)
    k.FMUL(left, left, inverse)
    # the root of infinity is infinity; its low part no longer counts
    bounded = k.compare_f32("bounded", "NEU", a.high, _INFINITY)
    k.FSEL(root, root, _INFINITY, bounded)
    k.FMUL(root, root, 2.0**-32, guard=small)
    k.FMUL(left, left, 2.0**-32, guard=small)
    return Long(root, left)


def _quotient(k: Together, top: Long, root: Long) -> Lanes:
    """top / (root + epsilon), corrected once by what the first quotient leaves."""
    epsilon = k.move("epsilon", k.parameter("epsilon"))
    bottom = _sum(k, "bottom", root.high, epsilon)
    k.FADD(bottom.low, bottom.low, root.low)
    inverse = k.MUFU_RCP("reciprocal", bottom.high)
    quotient: Lanes = k.FMUL("quotient", top.high, inverse)
    left = k.FFMA("quotient.left", -quotient, bottom.high, top.high)
    k.FFMA(left, -quotient, bottom.low, left)
    k.FADD(left, left, top.low)
    # an infinite divisor or quotient leaves no number to correct by
    usable = k.compare_f32("usable", "LT", abs(left), _INFINITY)
    k.FFMA(quotient, left, inverse, quotient, guard=usable)
    return quotient
