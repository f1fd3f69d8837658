"""Which bytes of memory are defined, beside the bytes themselves; `spaces` tells of each access.

A store gives its bytes the masks of what is stored (`storing`, one for each 32-bit part); a load leaves those
of what it found (`loaded`).  A mask has a bit for each undefined byte.  Kept as "defined", because pages of
zeros cost nothing until they are touched.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from coppelius.emulator.group import LANES, Group
from coppelius.emulator.machine import Machine
from coppelius.emulator.undefined import NONE, Masks

Array = npt.NDArray[Any]

_ALL = np.uint32(0x01010101)
# mask of undefined bytes -> a word with 1 in each defined byte
_DEFINED = np.array([sum(1 << 8 * k for k in range(4) if not m >> k & 1) for m in range(16)], np.uint32)


class Shadow:
    """Defined bytes of shared memory (a flag each) and of local memory (four bits a word)."""

    def __init__(self, machine: Machine) -> None:
        self.shared = np.zeros(machine.shared.size, np.uint8)
        self.local = np.zeros((len(machine.local), machine.warps * LANES), np.uint8)
        self.storing: list[Masks] = [NONE]
        self.loaded: list[Masks] = []

    def part(self, k: int) -> Masks:
        """The mask of the k-th part that is stored."""
        return self.storing[min(k, len(self.storing) - 1)]

    def note(self, g: Group, parts: list[Masks], good: Array | None, count: int) -> None:
        """A load of these lanes found these masks; of loads of several pieces each adds its own."""
        whole = [_unflatten(g, p, good, count) for p in parts]
        if self.loaded:
            # pieces of one load (spaces of generic addresses, rows of matrices)
            whole = [a | b for a, b in zip(self.loaded, whole, strict=False)]
        self.loaded = whole

    def load_local(self, row: Array, column: Array, offset: Array, size: int) -> list[Masks]:
        """Masks of words `row`, `row + 1`, ... of each column, or of part of one."""
        parts: list[Masks] = [~self.local[row + k, column] & np.uint8(15) for k in range(max(1, size // 4))]
        if size < 4:
            parts[0] = parts[0] >> (offset & 3).astype(np.uint8) & np.uint8((1 << size) - 1)
        return parts

    def store_local(self, row: Array, column: Array, offset: Array, size: int, masks: list[Masks]) -> None:
        """These bytes are now as defined as what is stored."""
        if size >= 4:
            for k, mask in enumerate(masks):
                self.local[row + k, column] = ~mask & np.uint8(15)
            return
        shift = (offset & 3).astype(np.uint8)
        touched = np.uint8((1 << size) - 1) << shift
        kept = self.local[row, column] & ~touched
        self.local[row, column] = kept | (~masks[0] << shift) & touched


def load_bytes(defined: npt.NDArray[np.uint8], at: Array, size: int) -> list[Masks]:
    """Masks of the accesses that begin at these bytes of a memory with a flag a byte."""
    if size < 4:
        mask = np.zeros(len(at), np.uint8)
        for k in range(size):
            mask |= (defined[at + k] ^ np.uint8(1)) << np.uint8(k)
        return [mask]
    words = defined[: len(defined) // 4 * 4].view(np.uint32)
    return [_mask(words[(at >> 2) + k]) for k in range(size // 4)]


def store_bytes(defined: npt.NDArray[np.uint8], at: Array, size: int, masks: list[Masks]) -> None:
    """The accesses' bytes are now as defined as what is stored."""
    if size < 4:
        for k in range(size):
            defined[at + k] = ~(masks[0] >> np.uint8(k)) & np.uint8(1)
        return
    words = defined[: len(defined) // 4 * 4].view(np.uint32)
    for k, mask in enumerate(masks):
        words[(at >> 2) + k] = _DEFINED[mask]


def _mask(words: Array) -> Masks:
    if (words == _ALL).all():
        return np.zeros(len(words), np.uint8)
    missing = words ^ _ALL
    packed = missing | missing >> np.uint32(7) | missing >> np.uint32(14) | missing >> np.uint32(21)
    masks: Masks = (packed & np.uint32(15)).astype(np.uint8)
    return masks


def _unflatten(g: Group, flat: Masks, good: Array | None, count: int) -> Masks:
    if not flat.any():
        return NONE
    if good is not None:
        whole = np.zeros(count, np.uint8)
        whole[good] = flat
        flat = whole
    if g.mask is None:
        return flat.reshape(g.count, LANES)
    out = np.zeros((g.count, LANES), np.uint8)
    out[g.mask] = flat
    return out
