"""add: out[i] = a[i] + b[i], f32, denormals kept."""

from __future__ import annotations

from coppelius.builder.kernel import Kernel
from coppelius.kernels.quads import LANES, quads


def add(k: Kernel) -> None:
    """Four elements a thread; two 128-bit loads in flight, one 128-bit store."""
    q = quads(k)
    a = q.pointer("a", 4)
    b = q.pointer("b", 4)
    out = q.pointer("out", 4)
    with q.whole():
        left = k.LDG_E_128("left", k.at(a))
        right = k.LDG_E_128("right", k.at(b))
        for lane in range(LANES):
            k.FADD(left[lane], left[lane], right[lane])
        k.STG_E_128(k.at(out), left)

    def one(lane: int) -> None:
        left = k.LDG_E(f"left{lane}", k.at(a, 4 * lane))
        right = k.LDG_E(f"right{lane}", k.at(b, 4 * lane))
        k.FADD(left, left, right)
        k.STG_E(k.at(out, 4 * lane), left)

    q.tail(one)
    k.finish()
