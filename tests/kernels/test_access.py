"""How warps touch memory: whole 32-byte sectors of global memory, each bank of shared memory once.

Measured in the emulator on a whole block of each image at its real grid, as `coppelius show --stats` reports it.
The few instructions that fetch more sectors than their bytes need are named here with their reason.
"""

import harness
import pytest

from coppelius import catalog
from coppelius.cli.sampling import sampled_accesses

# rows lie far apart, and each thread has one of its own; a lane's eight statistics are two loads side by side, the
# second of which finds its half of each sector in the first cache level
SCATTERED = {("loss-target-gather", "LDG"): 8, ("attention-key", "LDG"): 2}


@pytest.mark.parametrize("image", catalog.IMAGES, ids=[i.identity for i in catalog.IMAGES])
def test_no_sector_is_fetched_in_part_and_no_bank_twice(image: catalog.Image) -> None:
    accesses = sampled_accesses(image, harness.material(image.identity, harness.HALVES[0]))
    assert {a.space for a in accesses} == ({"global", "shared"} if image.shared_bytes else {"global"})
    wasteful = [
        f"{a.space}+{16 * a.ordinal:#x} {a.mnemonic}: {a.taken} for {a.fewest}, worst {a.worst}"
        for a in accesses
        if a.worst > (SCATTERED.get((image.identity, a.mnemonic), 1) if a.space == "global" else 1)
    ]
    assert not wasteful, "\n".join(wasteful)
