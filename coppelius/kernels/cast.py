"""cast-down: f32 to half, round to nearest even; cast-up: half to f32, exact.

Denormals are kept, infinities stay, NaN stays NaN, f16 overflows to infinity.
"""

from __future__ import annotations

from coppelius.builder.kernel import Kernel
from coppelius.isa.operands import RZ, R
from coppelius.kernels.quads import LANES, quads


def cast_down(k: Kernel) -> None:
    """Four elements a thread; one 128-bit load, two packings, one 64-bit store."""
    q = quads(k)
    source = q.pointer("source", 4)
    out = q.pointer("out", 2)
    with q.whole():
        value = k.LDG_E_128("value", k.at(source))
        packed = k.vector("packed", 2)
        for pair in range(2):
            k.F2FP_PACK_AB(packed[pair], value[2 * pair + 1], value[2 * pair])
        k.STG_E_64(k.at(out), packed)

    def one(lane: int) -> None:
        value = k.LDG_E(f"value{lane}", k.at(source, 4 * lane))
        k.F2FP_PACK_AB(value, RZ, value)
        k.STG_E_U16(k.at(out, 2 * lane), value)

    q.tail(one)
    k.finish()


def cast_up(k: Kernel) -> None:
    """Four elements a thread; one 64-bit load, one 128-bit store."""
    q = quads(k)
    source = q.pointer("source", 2)
    out = q.pointer("out", 4)
    with q.whole():
        packed = k.LDG_E_64("packed", k.at(source))
        value = k.vector("value", LANES)
        for lane in range(LANES):
            _widen(k, value[lane], packed[lane // 2], "H1_H1" if lane % 2 else "H0_H0")
        k.STG_E_128(k.at(out), value)

    def one(lane: int) -> None:
        value = k.LDG_E_U16(f"value{lane}", k.at(source, 2 * lane))
        _widen(k, value, value, "H0_H0")
        k.STG_E(k.at(out, 4 * lane), value)

    q.tail(one)
    k.finish()


def _widen(k: Kernel, out: R, packed: R, half: str) -> None:
    """f32 of one half; adding -0 keeps the sign of zero."""
    k.HADD2_F32(out, -RZ, R(packed.index, half=half))
