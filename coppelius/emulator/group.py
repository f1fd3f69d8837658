"""A group is the warps, and the lanes of them, that execute one instruction together.

Its domain is always whole warps: operands are read as `[warps, 32]` and results written under `mask`.
No mask means that every lane of every warp is active, the fast path without boolean indexing.  Warps
that lie side by side are a slice, so that reading a register copies nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

LANES = 32

Bools = npt.NDArray[np.bool_]
Warps = npt.NDArray[np.intp]
Words32 = npt.NDArray[np.uint32]


class Group:
    """`select` indexes the warp axis of the machine's arrays; `count` warps; `mask bool[count, 32]` or None for all."""

    __slots__ = ("count", "mask", "select")

    def __init__(self, select: slice | Warps, count: int, mask: Bools | None = None) -> None:
        self.select = select
        self.count = count
        self.mask = mask

    @property
    def warps(self) -> Warps:
        """Indices of the warps, `intp[count]`."""
        if isinstance(self.select, slice):
            return np.arange(self.select.start, self.select.stop)
        return self.select

    @property
    def active(self) -> Bools:
        """`bool[count, 32]`: the active lanes."""
        return np.ones((self.count, LANES), dtype=np.bool_) if self.mask is None else self.mask

    @property
    def threads(self) -> int:
        """How many lanes are active."""
        return self.count * LANES if self.mask is None else int(np.count_nonzero(self.mask))

    def under(self, condition: Bools) -> Group | None:
        """The same warps with the lanes where the condition holds, or None where no lane is left."""
        if condition.size == 1:
            return self if condition.flat[0] else None
        if self.mask is None:
            if condition.all():
                return self
            mask = condition if condition.shape == (self.count, LANES) else self._spread(condition)
        else:
            mask = self.mask & condition
        return Group(self.select, self.count, mask) if mask.any() else None

    def split(self, condition: Bools) -> tuple[Group | None, Group | None]:
        """(where it holds, where it does not), each compacted."""
        active = self.active
        condition = self._spread(condition)
        return self._part(active & condition), self._part(active & ~condition)

    def part(self, condition: Bools) -> Group | None:
        """The lanes where the condition holds, compacted."""
        return self._part(self.active & condition)

    def _spread(self, condition: Bools) -> Bools:
        return np.broadcast_to(condition, (self.count, LANES))

    def _part(self, mask: Bools) -> Group | None:
        return of_mask(mask, self.warps)


def of_mask(mask: Bools, warps: Warps) -> Group | None:
    """The group of the active lanes of these warps, warps without any left out."""
    present = mask.any(axis=1)
    if not present.all():
        chosen = np.flatnonzero(present)
        if not len(chosen):
            return None
        warps, mask = warps[chosen], mask[chosen]
    full = None if mask.all() else mask
    first, count = int(warps[0]), len(warps)
    if int(warps[-1]) - first == count - 1:
        return Group(slice(first, first + count), count, full)
    return Group(warps, count, full)


def union(groups: Sequence[Group], total: int) -> Group:
    """All their lanes as one group; `total` is the number of warps of the machine."""
    mask = np.zeros((total, LANES), dtype=np.bool_)
    for group in groups:
        if group.mask is None:
            mask[group.select] = True
        else:
            mask[group.select] |= group.mask
    merged = of_mask(mask, np.arange(total))
    assert merged is not None  # groups are never empty
    return merged


def ballot(mask: Bools) -> Words32:
    """`bool[n, 32]` -> one word a warp, lane 0 lowest, `uint32[n]`."""
    packed = np.packbits(np.ascontiguousarray(mask), axis=1, bitorder="little")
    return packed.view("<u4").ravel().astype(np.uint32, copy=False)


def lanes_of(words: Words32) -> Bools:
    """Inverse of `ballot`: `uint32[n]` -> `bool[n, 32]`."""
    data = np.ascontiguousarray(words, dtype="<u4").reshape(-1, 1).view(np.uint8)
    return np.unpackbits(data, axis=1, bitorder="little").astype(np.bool_)
