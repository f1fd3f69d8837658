"""fill: out[i] = value, 32 bits each."""

from __future__ import annotations

from coppelius.builder.kernel import Kernel
from coppelius.isa.operands import RZ
from coppelius.kernels.quads import LANES, quads


def fill(k: Kernel) -> None:
    """Four elements a thread; one 128-bit store."""
    q = quads(k)
    out = q.pointer("out", 4)
    value = k.vector("value", LANES)
    for lane in range(0, LANES, 2):
        # one on each pipe
        k.MOV(value[lane], k.parameter("value"))
        k.IMAD_MOV_U32(value[lane + 1], RZ, RZ, k.parameter("value"))
    with q.whole():
        k.STG_E_128(k.at(out), value)

    def one(lane: int) -> None:
        k.STG_E(k.at(out, 4 * lane), value[lane])

    q.tail(one)
    k.finish()
