"""scale: out[i] = a[i] * factor, f32, denormals kept."""

from __future__ import annotations

from coppelius.builder.kernel import Kernel
from coppelius.kernels.quads import LANES, quads


def scale(k: Kernel) -> None:
    """Four elements a thread; one 128-bit load, one 128-bit store."""
    q = quads(k)
    a = q.pointer("a", 4)
    out = q.pointer("out", 4)
    factor = k.parameter("factor")
    with q.whole():
        value = k.LDG_E_128("value", k.at(a))
        for lane in range(LANES):
            k.FMUL(value[lane], value[lane], factor)
        k.STG_E_128(k.at(out), value)

    def one(lane: int) -> None:
        value = k.LDG_E(f"value{lane}", k.at(a, 4 * lane))
        k.FMUL(value, value, factor)
        k.STG_E(k.at(out, 4 * lane), value)

    q.tail(one)
    k.finish()
