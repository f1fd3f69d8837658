"""How warps touch memory: global memory comes in sectors of 32 bytes, shared memory in rounds of 128 bytes.

A warp's access to global memory that needs n distinct bytes fetches every sector that holds one of them, at least
ceil(n / 32).  Shared memory has 32 banks of one word each: in a round go as many lanes as ask for 128 bytes (all
32 up to four bytes each, 16 of eight, eight of sixteen; of a matrix load eight rows), and it takes as many
cycles as the most distinct words that one bank is asked for.  (Published.)

Left out: caches (a sector fetched twice counts twice), atomics, local memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coppelius.emulator.group import LANES, Group
from coppelius.emulator.operation import Operation

SECTOR, ROUND, BANKS = 32, 128, 32
MATRIX_ROWS, ROW_BYTES = 8, 16

Addresses = NDArray[np.int64]


@dataclass
class Access:
    """What one instruction's accesses took in all, sectors or rounds, and the fewest that would do.

    worst: the most that one warp's access took for each that it needed; of shared memory the conflict degree.
    """

    space: str  # global, shared
    ordinal: int
    mnemonic: str
    taken: int = 0
    fewest: int = 0
    worst: float = 1.0

    def add(self, taken: int, fewest: int) -> None:
        """One warp's access."""
        self.taken += taken
        self.fewest += fewest
        self.worst = max(self.worst, taken / fewest)


class Traffic:
    """Watches a launch that is given it: `accesses`, an instruction that is a copy having one in each space."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, str], Access] = {}

    @property
    def accesses(self) -> list[Access]:
        """In the program's order."""
        return [self._found[key] for key in sorted(self._found)]

    def note(self, op: Operation, space: str, g: Group, flat: NDArray[Any], size: int) -> None:
        """The active lanes' addresses of a load or store of `size` bytes."""
        if space not in ("global", "shared") or op.mnemonic.startswith("LDSM"):
            return  # a matrix load says itself what rows it reads
        measure = sectors if space == "global" else rounds
        for addresses in _warps(g, flat):
            self._access(op, space).add(*measure(addresses, size))

    def note_rows(self, op: Operation, rows: NDArray[Any]) -> None:
        """The addresses of a matrix load's rows, `[warps, 8 x matrices]`."""
        for addresses in rows.astype(np.int64):
            self._access(op, "shared").add(*rounds(addresses, ROW_BYTES))

    def _access(self, op: Operation, space: str) -> Access:
        return self._found.setdefault((op.ordinal, space), Access(space, op.ordinal, op.mnemonic))


def _warps(g: Group, flat: NDArray[Any]) -> Iterator[Addresses]:
    """The active lanes' addresses, a warp at a time."""
    active = np.ones((g.count, LANES), np.bool_) if g.mask is None else g.mask
    for part in np.split(flat, np.cumsum(active.sum(axis=1))[:-1]):
        if len(part):
            yield part.astype(np.int64)


def sectors(addresses: Addresses, size: int) -> tuple[int, int]:
    """(sectors that a warp's access fetches, the fewest that hold so many bytes)."""
    every = np.unique(addresses[:, None] + np.arange(size))
    return len(np.unique(every // SECTOR)), -(-len(every) // SECTOR)


def rounds(addresses: Addresses, size: int) -> tuple[int, int]:
    """(cycles that shared memory takes for a warp's access, its rounds, which are the fewest)."""
    together = ROUND // max(size, 4)
    starts = range(0, len(addresses), together)
    taken = 0
    for first in starts:
        words = np.unique(addresses[first : first + together, None] // 4 + np.arange(max(size // 4, 1)))
        taken += int(np.bincount(words % BANKS).max())
    return taken, len(starts)
