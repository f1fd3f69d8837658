"""Reductions over a block in a fixed order: lanes by five exchanges, then the warps' results in warp order.

Every exchange combines the same two numbers in both lanes, so all lanes hold the same bits.  A reduction
takes 4 bytes of shared memory a warp and value, at a place of its own, and one barrier.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from coppelius.builder.kernel import Kernel
from coppelius.isa.operands import PT, RZ, Address, P, R

Combine = Callable[[str, R, R], R]


@dataclass(frozen=True)
class Block:
    """`warp`: the thread's warp; `first`: whether it is the first lane of it."""

    k: Kernel
    warps: int
    warp: R
    first: P

    def sum(self, name: str, value: R, *, slot: int) -> R:
        """The sum over the block; `slot`: where the warps' sums lie in shared memory."""
        return self.sums([name], [value], slot=slot)[0]

    def sums(self, names: Sequence[str], values: Sequence[R], *, slot: int) -> list[R]:
        """Several sums behind one barrier."""
        return self._reduce(names, values, slot, adding(self.k))

    def maximum(self, name: str, value: R, *, slot: int) -> R:
        """The largest f32 of the block; NaN only where all are."""
        return self._reduce([name], [value], slot, larger(self.k))[0]

    def minimum(self, name: str, value: R, *, slot: int) -> R:
        """The smallest u32 of the block."""
        return self._reduce([name], [value], slot, lambda name, a, b: self.k.IMNMX_U32(name, a, b, PT))[0]

    def _reduce(self, names: Sequence[str], values: Sequence[R], slot: int, combine: Combine) -> list[R]:
        self.share(exchange(self.k, names, values, combine), slot=slot)
        self.k.BAR_SYNC_DEFER_BLOCKING(0)
        results = []
        for at, name in enumerate(names):
            parts = self.shared(name, slot + 4 * self.warps * at)
            result = parts[0]
            for other in range(1, self.warps):
                result = combine(f"{name}.{other}", result, parts[other])
            results.append(result)
        return results

    def share(self, values: Sequence[R], *, slot: int) -> None:
        """Leave each warp's values in shared memory: value v of warp w at slot + 4 (v warps + w)."""
        for at, value in enumerate(values):
            self.k.STS(Address(self.warp, slot + 4 * self.warps * at, scale=4), value, guard=self.first)

    def shared(self, name: str, slot: int) -> list[R]:
        """What the warps left there, in warp order."""
        quads = [self.k.LDS_128(f"{name}.warps{at}", Address(RZ, slot + 4 * at)) for at in range(0, self.warps, 4)]
        return [quad[lane] for quad in quads for lane in range(4)]


def block_of(k: Kernel, thread: R, warps: int) -> Block:
    """The block of this thread; `warps` is a multiple of 4."""
    warp = k.SHF_R_U32_HI("warp", RZ, 5, thread)
    lane = k.LOP3_LUT("lane", thread, 31, RZ, 0xC0)
    return Block(k, warps, warp, k.compare("warp.first", "EQ", lane, RZ))


def exchange(k: Kernel, names: Sequence[str], values: Sequence[R], combine: Combine) -> list[R]:
    """Each value combined over the warp's lanes, the values side by side so that their exchanges overlap."""
    totals = list(values)
    for lanes in (16, 8, 4, 2, 1):
        others = [k.shuffle_xor(f"{n}.from{lanes}", t, lanes) for n, t in zip(names, totals, strict=True)]
        totals = [combine(f"{n}.{lanes}", t, o) for n, t, o in zip(names, totals, others, strict=True)]
    return totals


def adding(k: Kernel) -> Combine:
    """The sum of two."""
    return lambda name, a, b: k.FADD(name, a, b)


def larger(k: Kernel) -> Combine:
    """The larger of two f32, the number where one is NaN."""
    return lambda name, a, b: k.FMNMX(name, a, b, ~PT)


def fold(name: str, values: Sequence[R], combine: Combine) -> R:
    """Both halves folded, then combined: a short chain in a fixed order, few registers at a time."""
    if len(values) == 1:
        return values[0]
    middle = (len(values) + 1) // 2
    left = fold(f"{name}.l", values[:middle], combine)
    return combine(name, left, fold(f"{name}.r", values[middle:], combine))
