"""gated-gelu: out = gelu(gate) * up with the tanh form, gelu(x) = x s, s = 1 / (1 + e^-y), and both gradients.

y = 2 sqrt(2/pi) (x + 0.044715 x^3).  With e = exp(-|y|) in (0, 1] nothing overflows and nothing cancels:
s is a = 1 / (1 + e) where x >= 0 and e a below.  The slope is s (1 + x b y'), b = 1 - s being the other of
the two, so that large finite gates give the limits 1 and 0.  Far below zero, where e would be flushed, it
carries a factor 2^64 which the last product takes back.

Left out: gates of infinite size have the slope of large ones.
"""

from __future__ import annotations

import math
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
    """`above`: s, times 2^64 where `scale` is 2^-64; `below`: 1 - s."""

    above: R
    below: R
    scale: R


def _logistic(k: Kernel, name: str, x: R) -> _Logistic:
    """s(y(x)) and 1 - s."""
    square = k.FMUL(f"{name}.square", x, x)
    inner = k.FFMA(f"{name}.inner", square, _SLOPE * _CUBIC * LOG2_E, k.move(f"{name}.linear", _SLOPE * LOG2_E))
    power = k.FMUL(f"{name}.power", inner, x)
    far = k.compare_f32(f"{name}.far", "LT", power, _FAR)
    negative = k.compare_f32(f"{name}.negative", "LT", x, RZ)
    scale = k.FSEL(f"{name}.scale", k.move(f"{name}.lift", 2.0**-_SHIFT), 1.0, far)
    falling = k.FADD(f"{name}.falling", RZ, -abs(power))
    k.FADD(falling, falling, _SHIFT, guard=far)
    e = k.MUFU_EX2(f"{name}.e", falling)
    rest = k.FADD(f"{name}.rest", e, 1.0)
    large = k.MUFU_RCP(f"{name}.large", rest)
    small = k.FMUL(f"{name}.small", e, large)
    above = k.FSEL(f"{name}.above", small, large, negative)
    below = k.FSEL(f"{name}.below", large, small, negative)
    return _Logistic(above, below, scale)


def gated_gelu_forward(k: Kernel) -> None:
    """Four elements a thread; two 128-bit loads in flight, one 64-bit store."""
    q = quads(k)
    gate, up, out = q.pointer("gate", 4), q.pointer("up", 4), q.pointer("out", 2)
    with q.whole():
        x, factor = k.LDG_E_128("x", k.at(gate)), k.LDG_E_128("factor", k.at(up))
        for lane in range(LANES):
            _forward(k, f"x{lane}", x[lane], factor[lane])
        k.STG_E_64(k.at(out), _packed(k, "packed", x))

    def one(lane: int) -> None:
        x, factor = k.LDG_E(f"rest{lane}", k.at(gate, 4 * lane)), k.LDG_E(f"factor{lane}", k.at(up, 4 * lane))
        _forward(k, f"rest{lane}", x, factor)
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
        for lane in range(LANES):
            _backward(k, f"x{lane}", x[lane], factor[lane], flow[lane])
        k.STG_E_64(k.at(gate_out), _packed(k, "dgate", factor))
        k.STG_E_64(k.at(up_out), _packed(k, "dup", flow))

    def one(lane: int) -> None:
        x, factor = k.LDG_E(f"rest{lane}", k.at(gate, 4 * lane)), k.LDG_E(f"factor{lane}", k.at(up, 4 * lane))
        flow = k.LDG_E(f"flow{lane}", k.at(flow_at, 4 * lane))
        _backward(k, f"rest{lane}", x, factor, flow)
        for value, pointer in ((factor, gate_out), (flow, up_out)):
            k.F2FP_PACK_AB(value, RZ, value)
            k.STG_E_U16(k.at(pointer, 2 * lane), value)

    q.tail(one)
    k.finish()


def _forward(k: Kernel, name: str, x: R, up: R) -> None:
    """x becomes gelu(x) * up."""
    s = _logistic(k, name, x)
    k.FMUL(x, x, s.above)
    k.FMUL(x, x, up)
    k.FMUL(x, x, s.scale)


def _backward(k: Kernel, name: str, x: R, up: R, flow: R) -> None:
    """`up` becomes the gradient of the gate, `flow` that of up."""
    s = _logistic(k, name, x)
    # beyond _FLAT the slope's own terms would be infinity times 0
    near = k.FMNMX(f"{name}.near", x, _FLAT, PT)
    k.FMNMX(near, near, -_FLAT, ~PT)
    square = k.FMUL(f"{name}.near.square", near, near)
    steep = k.FFMA(f"{name}.steep", square, 3 * _CUBIC * _SLOPE, k.move(f"{name}.slope", _SLOPE))
    bend = k.FMUL(f"{name}.bend", near, s.below)
    k.FFMA(bend, bend, steep, 1.0)
    k.FMUL(bend, bend, s.above)
    k.FMUL(up, up, flow)
    k.FMUL(up, up, bend)
    k.FMUL(up, up, s.scale)
    k.FMUL(x, x, s.above)
    k.FMUL(flow, flow, x)
    k.FMUL(flow, flow, s.scale)


def _packed(k: Kernel, name: str, values: Vector) -> Vector:
    packed = k.vector(f"{name}.halves", 2)
    for pair in range(2):
        k.F2FP_PACK_AB(packed[pair], values[2 * pair + 1], values[2 * pair])
    return packed
