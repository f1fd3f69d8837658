"""Reductions over a block in a fixed order: lanes by five exchanges, then the warps' results in warp order.

Every exchange combines the same two numbers in both lanes, so all lanes hold the same bits.  A reduction
takes 4 bytes of shared memory a warp and value, at a place of its own, and one barrier.

Two sums go together: in the first exchange each half of a warp gives one sum's numbers away and takes the other's, then
both fold at once, each in its half.  The same numbers meet in the same order as one sum at a time, to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from coppelius.builder.kernel import Kernel
from coppelius.isa.operands import PT, RZ, Address, P, R

Combine = Callable[[str, R, R], R]


@dataclass(frozen=True)
class Block:
    """The block of `thread`; `warps` is a multiple of 4."""

    k: Kernel
    thread: R
    warps: int

    @cached_property
    def warp(self) -> R:
        """The thread's warp."""
        made: R = self.k.SHF_R_U32_HI("warp", RZ, 5, self.thread)
        return made

    @cached_property
    def first(self) -> P:
        """Whether the thread is the first lane of its warp."""
        return ~any_bit(self.k, "warp.later", self.thread, 31)

    def sum(self, name: str, value: R, *, slot: int) -> R:
        """The sum over the block; `slot`: where the warps' sums lie in shared memory."""
        return self.sums([name], [value], slot=slot)[0]

    def sums(self, names: Sequence[str], values: Sequence[R], *, slot: int) -> list[R]:
        """Several sums behind one barrier; what each warp leaves lies side by side."""
        if len(values) == 2:
            return self._pair(names, values, slot)
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
            results.append(chain(name, self.shared(name, slot + 4 * self.warps * at), combine))
        return results

    def _pair(self, names: Sequence[str], values: Sequence[R], slot: int) -> list[R]:
        """Two sums, the second in the upper half of each warp: sum v of warp w lies at slot + 4 (2 w + v)."""
        k, (name, other) = self.k, names
        upper = any_bit(k, f"{name}.upper", self.thread, 16)
        kept = k.FSEL(f"{name}.kept", values[1], values[0], upper)
        given = k.FSEL(f"{name}.given", values[0], values[1], upper)
        total = k.FADD(f"{name}.16", kept, k.shuffle_xor(f"{name}.from16", given, 16))
        (total,) = exchange(k, [name], [total], adding(k), lanes=(8, 4, 2, 1))
        half = k.SHF_R_U32_HI(f"{name}.half", RZ, 4, self.thread)
        k.STS(Address(half, slot, scale=4), total, guard=~any_bit(k, f"{name}.later", self.thread, 15))
        k.BAR_SYNC_DEFER_BLOCKING(0)
        parts = self.shared(name, slot, count=2 * self.warps)
        return [chain(n, parts[v::2], adding(k)) for v, n in enumerate((name, other))]

    def share(self, values: Sequence[R], *, slot: int) -> None:
        """Leave each warp's values in shared memory: value v of warp w at slot + 4 (v warps + w)."""
        for at, value in enumerate(values):
            self.k.STS(Address(self.warp, slot + 4 * self.warps * at, scale=4), value, guard=self.first)

    def shared(self, name: str, slot: int, count: int | None = None) -> list[R]:
        """What the warps left there, in warp order; `count` numbers if not one a warp."""
        places = range(0, count or self.warps, 4)
        quads = [self.k.LDS_128(f"{name}.warps{at}", Address(RZ, slot + 4 * at)) for at in places]
        return [quad[lane] for quad in quads for lane in range(4)]


def block_of(k: Kernel, thread: R, warps: int) -> Block:
    """The block of this thread; `warps` is a multiple of 4."""
    return Block(k, thread, warps)


def any_bit(k: Kernel, name: str, value: R, bits: int) -> P:
    """Whether one of these bits is set."""
    made: P = k.emit("LOP3.LUT", (name, RZ, value, bits, RZ, 0xC0))
    return made


def exchange(
    k: Kernel, names: Sequence[str], values: Sequence[R], combine: Combine, *, lanes: Sequence[int] = (16, 8, 4, 2, 1)
) -> list[R]:
    """Each value combined over the warp's lanes, the values side by side so that their exchanges overlap."""
    totals = list(values)
    for far in lanes:
        others = [k.shuffle_xor(f"{n}.from{far}", t, far) for n, t in zip(names, totals, strict=True)]
        totals = [combine(f"{n}.{far}", t, o) for n, t, o in zip(names, totals, others, strict=True)]
    return totals


def chain(name: str, values: Sequence[R], combine: Combine) -> R:
    """One after another, in this order."""
    result = values[0]
    for at, value in enumerate(values[1:], 1):
        result = combine(f"{name}.{at}", result, value)
    return result


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
