"""copy: out[i] = source[i], 32 bits each."""

from __future__ import annotations

from coppelius.builder.kernel import Kernel
from coppelius.kernels.quads import quads


def copy(k: Kernel) -> None:
    """Four elements a thread; one 128-bit load, one 128-bit store."""
    q = quads(k)
    source = q.pointer("source", 4)
    out = q.pointer("out", 4)
    with q.whole():
        value = k.LDG_E_128("value", k.at(source))
        k.STG_E_128(k.at(out), value)

    def one(lane: int) -> None:
        value = k.LDG_E(f"value{lane}", k.at(source, 4 * lane))
        k.STG_E(k.at(out, 4 * lane), value)

    q.tail(one)
    k.finish()
