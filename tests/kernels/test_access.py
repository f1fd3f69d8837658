"""How lanes' addresses join: no request moves more sectors than its bytes fill, none waits for a shared bank.

A warp's request to global memory moves whole sectors of 32 bytes.  Shared memory has 32 banks of four bytes;
accesses of 64 and 128 bits are served by halves and quarters of the warp, each at once where no bank holds
two different words of it (published).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from test_strict import memory_after

from coppelius import catalog
from coppelius.emulator import spaces

SECTOR, BANKS = 32, 32
# one logit of each row: they are 49,152 bytes apart
SCATTERED = {"loss-target-gather"}
# operands in the tensor core's layout are their kernels' own matter
IMAGES = [i for i in catalog.IMAGES if not i.identity.startswith(("attention-", "tiled-"))]


class Request(NamedTuple):
    """One access of one warp: the addresses of its active lanes."""

    text: str
    space: str
    size: int
    addresses: NDArray[np.uint64]

    @property
    def bytes(self) -> int:
        """Different bytes asked for."""
        return len(np.unique(self.addresses)) * self.size

    @property
    def sectors(self) -> int:
        """Sectors moved."""
        return len(np.unique(self.addresses // np.uint64(SECTOR)))

    @property
    def conflicts(self) -> int:
        """How often shared memory serves it beyond once for each part of the warp."""
        lanes = 32 * 4 // max(self.size, 4)
        words = self.addresses[:, None] // np.uint64(4) + np.arange(max(1, self.size // 4), dtype=np.uint64)
        parts = [np.unique(words[at : at + lanes]) for at in range(0, len(words), lanes)]
        return sum(int(np.bincount((part % np.uint64(BANKS)).astype(int)).max()) - 1 for part in parts)


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """Every request of the launches that follow."""
    seen: list[Request] = []

    def noting(access: Callable[..., Any]) -> Callable[..., Any]:
        def noted(op: Any, space: str, g: Any, address: Any, size: int, *more: Any) -> Any:
            for lanes, active in zip(np.broadcast_to(address, (g.count, 32)), g.active, strict=True):
                if active.any():
                    seen.append(Request(op.mnemonic, space, size, lanes[active].astype(np.uint64)))
            return access(op, space, g, address, size, *more)

        return noted

    monkeypatch.setattr(spaces, "load", noting(spaces.load))
    monkeypatch.setattr(spaces, "store", noting(spaces.store))
    return seen


@pytest.mark.parametrize("image", IMAGES, ids=[i.identity for i in IMAGES])
def test_sectors_are_whole_and_banks_are_free(image: catalog.Image, requests: list[Request]) -> None:
    memory_after(image, "bf16", "fast")
    assert requests
    wasteful = {
        f"{r.text}: {r.sectors} sectors for {r.bytes} bytes"
        for r in requests
        if r.space == "global" and r.sectors > -(-r.bytes // SECTOR)
    }
    crowded = {f"{r.text}: {r.conflicts} conflicts" for r in requests if r.space == "shared" and r.conflicts}
    assert bool(wasteful) == (image.identity in SCATTERED), wasteful
    assert not crowded
    assert not any(r.space == "local" for r in requests)


def test_a_request_knows_its_sectors_and_conflicts() -> None:
    lanes = np.arange(32, dtype=np.uint64)
    assert Request("LDG", "global", 4, 4 * lanes).sectors == 4
    assert Request("LDG", "global", 4, 32 * lanes).sectors == 32
    assert Request("LDG", "global", 16, 16 * lanes + np.uint64(16)).sectors == 17
    assert Request("LDS", "shared", 4, 4 * lanes).conflicts == 0
    assert Request("LDS", "shared", 4, 8 * lanes).conflicts == 1
    assert Request("LDS", "shared", 4, 128 * lanes).conflicts == 31
    assert Request("LDS", "shared", 4, 0 * lanes).conflicts == 0
    assert Request("LDS", "shared", 16, 16 * lanes).conflicts == 0
    assert Request("LDS", "shared", 16, 32 * lanes).conflicts == 4
