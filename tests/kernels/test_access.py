"""How warps touch memory: whole 32-byte sectors of global memory, each bank of shared memory once.

Measured in the emulator on the first block of each image, which is whole.  A warp's access that needs n
distinct bytes fetches at least ceil(n / 32) sectors; the few instructions that fetch more are named here
with their reason.  Shared memory serves 128 bytes at a time, one word a bank.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import harness
import numpy as np
import pytest
from numpy.typing import NDArray
from test_strict import memory_after

from coppelius import catalog
from coppelius.emulator import spaces
from coppelius.emulator.group import Group
from coppelius.emulator.operation import Operation

SECTOR, ROUND, BANKS = 32, 128, 32
# rows lie far apart, and each thread has one of its own; a lane's eight statistics are two loads side by side, the
# second of which finds its half of each sector in the first cache level
SCATTERED = {("loss-target-gather", "LDG"): 32, ("attention-key", "LDG"): 2}

Counts = dict[tuple[str, int, str], list[int]]


def warps(g: Group, flat: NDArray[Any]) -> Iterator[NDArray[np.int64]]:
    """The active lanes' addresses, a warp at a time."""
    active = np.ones((g.count, 32), bool) if g.mask is None else g.mask
    ends = np.cumsum(active.sum(axis=1))
    for part in np.split(flat, ends[:-1]):
        if len(part):
            yield part.astype(np.int64)


def sectors(addresses: NDArray[np.int64], size: int) -> tuple[int, int]:
    """(sectors fetched, the fewest that hold so many bytes)."""
    every = np.unique(addresses[:, None] + np.arange(size))
    return len(np.unique(every // SECTOR)), -(-len(every) // SECTOR)


def rounds(addresses: NDArray[np.int64], size: int) -> tuple[int, int]:
    """(rounds that shared memory takes, the fewest): lanes go together as long as they fill 128 bytes."""
    taken = fewest = 0
    for at in range(0, len(addresses), ROUND // size if size > 4 else 32):
        part = addresses[at : at + (ROUND // size if size > 4 else 32)]
        words = np.unique(part[:, None] + np.arange(0, max(size, 4), 4)) // 4
        taken += int(np.bincount(np.unique(words) % BANKS).max())
        fewest += 1
    return taken, fewest


def _spy(real: Any, found: Counts, space: str, measure: Any) -> Any:
    def spy(op: Operation, g: Group, flat: Any, size: int, *rest: Any) -> Any:
        for addresses in warps(g, flat):
            taken, fewest = measure(addresses, size)
            row = found[space, op.ordinal, op.mnemonic]
            row[0], row[1] = row[0] + taken, row[1] + fewest
        return real(op, g, flat, size, *rest)

    return spy


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counts:
    """(space, place, instruction) -> [taken, fewest], filled as kernels run."""
    found: Counts = defaultdict(lambda: [0, 0])
    for table in (spaces._LOADERS, spaces._STORERS):
        for space, measure in (("global", sectors), ("shared", rounds)):
            monkeypatch.setitem(table, space, _spy(table[space], found, space, measure))
    return found


@pytest.mark.parametrize("image", catalog.IMAGES, ids=[i.identity for i in catalog.IMAGES])
def test_no_sector_is_fetched_in_part_and_no_bank_twice(image: catalog.Image, counts: Counts) -> None:
    memory_after(image, harness.HALVES[0], "fast", blocks=[0])
    assert counts
    wasteful = [
        f"{space}+{16 * place:#x} {mnemonic}: {taken} for {fewest}"
        for (space, place, mnemonic), (taken, fewest) in sorted(counts.items())
        if taken > fewest * SCATTERED.get((image.identity, mnemonic), 1)
    ]
    assert not wasteful, "\n".join(wasteful)


def test_the_measures_see_waste() -> None:
    lanes = np.arange(32, dtype=np.int64)
    assert sectors(4 * lanes, 4) == (4, 4)
    assert sectors(64 * lanes, 4) == (32, 4)
    assert sectors(0 * lanes, 4) == (1, 1)
    assert rounds(4 * lanes, 4) == (1, 1)
    assert rounds(128 * lanes, 4) == (32, 1)
    assert rounds(16 * lanes, 16) == (4, 4)
    assert rounds(64 * lanes, 16) == (16, 4)
