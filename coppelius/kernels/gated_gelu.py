"""gated-gelu: out = gelu(gate) * up with the tanh form, gelu(x) = x s, s = 1 / (1 + e^-y), and both gradients.

y = 2 sqrt(2/pi) (x + 0.044715 x^3).  With e = exp(-|y|) in (0, 1] nothing overflows and nothing cancels:
s is a = 1 / (1 + e) where x >= 0 and e a below.  The slope is s (1 + x b y'), b = 1 - s being the other of
the two, so that large finite gates give the limits 1 and 0.  Far below zero, where e would be flushed, it
carries a factor 2^64 which the last product takes back.

Left out: gates of infinite size have the slope of large ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from coppelius.builder.kernel import Kernel
from coppelius.builder.registers import Vector
from coppelius.isa.operands import PT, RZ, R
from coppelius.kernels.exponential import LOG2_E
from coppelius.kernels.quads import LANES, quads

_CUBIC = 0.044715  # the tanh form's constant
_SLOPE = 2 * math.sqrt(2 / math.pi)
_FAR, _SHIFT = -100.0, 64.0  # below 2^-100 the exponential carries 2^64
_FLAT = 32.0  # from here on the exponential is 0 and the slope at its limit


@dataclass(frozen=True)
class _Logistic:
    """Of each lane.  `above`: s, times 2^64 where `scale` is 2^-64; `below`: 1 - s, if asked for."""

    above: list[R]
    below: list[R]
    scale: list[R]


def _logistic(k: Kernel, name: str, xs: Sequence[R], *, both: bool) -> _Logistic:
    """s(y(x)) and 1 - s, all lanes step by step so that none waits for its own."""
    linear = k.move(f"{name}.linear", _SLOPE * LOG2_E)
    lift = k.move(f"{name}.lift", 2.0**-_SHIFT)
    lanes = range(len(xs))
    powers = [k.FMUL(f"{name}{i}.power", xs[i], xs[i]) for i in lanes]
    for i in lanes:
        k.FFMA(powers[i], powers[i], _SLOPE * _CUBIC * LOG2_E, linear)
    for i in lanes:
        k.FMUL(powers[i], powers[i], xs[i])
    # predicates side by side: a guard waits 13 cycles for its own
    far = [k.compare_f32(f"{name}{i}.far", "LT", powers[i], _FAR) for i in lanes]
    scale = [k.FSEL(f"{name}{i}.scale", lift, 1.0, far[i]) for i in lanes]
    for i in lanes:
        k.FADD(powers[i], powers[i], _SHIFT, guard=far[i])
    for power in powers:
        k.MUFU_EX2(power, -abs(power))
    large = [k.FADD(f"{name}{i}.rest", powers[i], 1.0) for i in lanes]
    for register in large:
        k.MUFU_RCP(register, register)
    negative = [k.compare_f32(f"{name}{i}.negative", "LT", xs[i], RZ) for i in lanes]
    for i in lanes:
        k.FMUL(powers[i], powers[i], large[i])
    above, below = [], []
    for i, e in enumerate(powers):
        above.append(k.FSEL(f"{name}{i}.above", e, large[i], negative[i]))
        if both:
            below.append(k.FSEL(f"{name}{i}.below", large[i], e, negative[i]))
    return _Logistic(above, below, scale)


def gated_gelu_forward(k: Kernel) -> None:
    """Four elements a thread; two 128-bit loads in flight, one 64-bit store."""
    q = quads(k)
    gate, up, out = q.pointer("gate", 4), q.pointer("up", 4), q.pointer("out", 2)
    with q.whole():
        x, factor = k.LDG_E_128("x", k.at(gate)), k.LDG_E_128("factor", k.at(up))
        _forward(k, "x", *([vector[n] for n in range(LANES)] for vector in (x, factor)))
        k.STG_E_64(k.at(out), _packed(k, "packed", x))

    def one(lane: int) -> None:
        x, factor = k.LDG_E(f"rest{lane}", k.at(gate, 4 * lane)), k.LDG_E(f"factor{lane}", k.at(up, 4 * lane))
        _forward(k, f"rest{lane}.", [x], [factor])
        k.F2FP_PACK_AB(x, RZ, x)
        k.STG_E_U16(k.at(out, 2 * lane), x)

    q.tail(one)
    k.finish()


def gated_gelu_backward(k: Kernel) -> None:
    """Four elements a thread; three 128-bit loads in flight, two 64-bit stores."""
    q = quads(k)
    flow_at, gate, up = q.pointer("dout", 4), q.pointer("gate", 4), q.pointer("up", 4)
    gate_out, up_out = q.pointer("dgate", 2), q.pointer("dup", 2)
    with q.whole():
        x, factor = k.LDG_E_128("x", k.at(gate)), k.LDG_E_128("factor", k.at(up))
        flow = k.LDG_E_128("flow", k.at(flow_at))
        _backward(
            k, "x", [x[n] for n in range(LANES)], [factor[n] for n in range(LANES)], [flow[n] for n in range(LANES)]
        )
        packed = [(gate_out, _packed(k, "dgate", factor)), (up_out, _packed(k, "dup", flow))]
        for pointer, halves in packed:
            k.STG_E_64(k.at(pointer), halves)

    def one(lane: int) -> None:
        x, factor = k.LDG_E(f"rest{lane}", k.at(gate, 4 * lane)), k.LDG_E(f"factor{lane}", k.at(up, 4 * lane))
        flow = k.LDG_E(f"flow{lane}", k.at(flow_at, 4 * lane))
        _backward(k, f"rest{lane}.", [x], [factor], [flow])
        for value, pointer in ((factor, gate_out), (flow, up_out)):
            k.F2FP_PACK_AB(value, RZ, value)
            k.STG_E_U16(k.at(pointer, 2 * lane), value)

    q.tail(one)
    k.finish()


def _forward(k: Kernel, name: str, xs: Sequence[R], ups: Sequence[R]) -> None:
    """Each x becomes gelu(x) * up."""
    s = _logistic(k, name, xs, both=False)
    for x, up, above, scale in zip(xs, ups, s.above, s.scale, strict=True):
        k.FMUL(x, x, above)
        k.FMUL(x, x, up)
        k.FMUL(x, x, scale)


def _backward(k: Kernel, name: str, xs: Sequence[R], ups: Sequence[R], flows: Sequence[R]) -> None:
    """Each `up` becomes the gradient of its gate, each `flow` that of up."""
    s = _logistic(k, name, xs, both=True)
    slope = k.move(f"{name}.slope", _SLOPE)
    lanes = range(len(xs))
    # beyond _FLAT the slope's own terms would be infinity times 0
    near = [k.FMNMX(f"{name}{i}.near", xs[i], _FLAT, PT) for i in lanes]
    for i in lanes:
        k.FMNMX(near[i], near[i], -_FLAT, ~PT)
    steep = [k.FMUL(f"{name}{i}.steep", near[i], near[i]) for i in lanes]
    for i in lanes:
        k.FFMA(steep[i], steep[i], 3 * _CUBIC * _SLOPE, slope)
    for i in lanes:
        k.FMUL(near[i], near[i], s.below[i])
    for i in lanes:
        k.FFMA(near[i], near[i], steep[i], 1.0)
    for i in lanes:
        k.FMUL(near[i], near[i], s.above[i])
    for i in lanes:
        k.FMUL(ups[i], ups[i], flows[i])
    for i in lanes:
        k.FMUL(ups[i], ups[i], near[i])
    for i in lanes:
        k.FMUL(ups[i], ups[i], s.scale[i])
    for i in lanes:
        k.FMUL(xs[i], xs[i], s.above[i])
    for i in lanes:
        k.FMUL(flows[i], flows[i], xs[i])
    for i in lanes:
        k.FMUL(flows[i], flows[i], s.scale[i])


def _packed(k: Kernel, name: str, values: Vector) -> Vector:
    packed = k.vector(f"{name}.halves", 2)
    for pair in range(2):
        k.F2FP_PACK_AB(packed[pair], values[2 * pair + 1], values[2 * pair])
    return packed
