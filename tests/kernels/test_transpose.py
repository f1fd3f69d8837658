"""transpose: every half at its mirrored place, bit for bit."""

import harness
import numpy as np
import pytest

from coppelius import catalog
from coppelius.reference import bounds
from coppelius.reference.transpose import transpose

IDENTITIES = [i.identity for i in catalog.IMAGES if i.identity.startswith("transpose-")]


@pytest.mark.parametrize("half", harness.HALVES)
@pytest.mark.parametrize("identity", IDENTITIES)
def test_every_element_at_its_mirrored_place(identity: str, half: str) -> None:
    options = harness.image(identity).options
    groups, rows, columns = options["groups"], options["rows"], options["columns"]
    source = harness.hostile_half(groups * rows * columns, 1).reshape(groups, rows, columns)
    out = harness.run(identity, half, out=(groups, columns, rows), source=source)["out"]
    measured = bounds.exact_bits(out, transpose(source))
    assert measured, measured


def test_one_tile_alone_writes_its_own_elements_only() -> None:
    source = np.arange(8 * 1024 * 64, dtype=np.uint32).astype(np.uint16).reshape(8, 1024, 64)
    identity = "transpose-g8-r1024-c64"
    out = harness.run(identity, "bf16", blocks=[16 * 3 + 5], out=(8, 64, 1024), source=source)["out"]
    tile = out[3, :, 5 * 64 : 6 * 64].copy()
    assert bounds.exact_bits(tile, np.ascontiguousarray(source[3, 5 * 64 : 6 * 64].T))
    out[3, :, 5 * 64 : 6 * 64] = 0xA5A5
    assert harness.untouched(out)
