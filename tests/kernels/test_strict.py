"""Every image, schedule honoured: a few blocks of its real grid give the same memory as without latencies.

Strict mode lands each result as late as the schedule permits and reports a read that comes too early, so
this holds stalls, barriers and late reads of what is really executed, loops and tails included.
"""

from collections.abc import Sequence
from typing import Any

import harness
import numpy as np
import pytest
from numpy.typing import NDArray

from coppelius import catalog
from coppelius.emulator.launch import launch
from coppelius.emulator.memory import Memory
from coppelius.emulator.parameters import pack_parameters
from coppelius.isa.table import Table

NAMES = {"count": 1025, "rows": 3, "positions": 9, "groups": 1, "vocabulary": 700}
SCALARS = {"f32": 0.5, "u32": 3, "u64": 0x123456789}
MOST_RANDOM = 1 << 20  # elements of a buffer that are not zero: larger ones are mostly untouched


def buffers(image: catalog.Image) -> dict[str, NDArray[Any]]:
    """Random contents for every buffer, outputs as well."""
    random = np.random.default_rng(1)
    out = {}
    for parameter in image.parameters:
        if parameter.kind == "scalar":
            continue
        shape = [d if isinstance(d, int) else NAMES[d] for d in parameter.dimensions]
        array = np.zeros(shape, harness.DTYPES[parameter.type])
        some = array.reshape(-1)[:MOST_RANDOM]
        if parameter.type == "u32":
            some[:] = random.integers(0, 800, len(some))  # some tokens are over the vocabulary
        elif parameter.type == "f32":
            some[:] = random.standard_normal(len(some))
        else:
            some[:] = random.integers(0x3000, 0x3C00, len(some))  # moderate in both formats
        out[parameter.name] = array
    return out


def memory_after(
    image: catalog.Image,
    half: str,
    mode: str,
    *,
    blocks: Sequence[int] | None = None,
    material: bytes | None = None,
    table: Table | None = None,
) -> dict[str, NDArray[Any]]:
    """Every buffer after a few blocks: if not said, the first, the last, and one inside.

    material, table: other words than the image's own, and whose they are.
    """
    memory, arrays = Memory(), buffers(image)
    values = []
    for parameter in image.parameters:
        if parameter.kind == "pointer":
            values.append(memory.place(arrays[parameter.name], parameter.name))
        else:
            values.append(NAMES.get(parameter.name, SCALARS[parameter.type]))
    grid = harness.grid_of(image, NAMES)
    last = grid[0] * grid[1] * grid[2] - 1
    rows = [(p["kind"], p["type"], p["offset"]) for p in catalog.declaration(image)["parameters"]]
    launch(
        harness.material(image.identity, half) if material is None else material,
        grid=grid,
        block=(image.block_x, 1, 1),
        parameters=pack_parameters(rows, values, memory),
        memory=memory,
        shared_bytes=image.shared_bytes,
        blocks=sorted({0, last // 3, last}) if blocks is None else blocks,
        mode=mode,
        kernel=image.identity,
        table=table,
    )
    return arrays


# adamw's bank takes seconds, and its formats differ in one packing
RUNS = [(i, half) for i in catalog.IMAGES for half in harness.HALVES if (i.identity, half) != ("adamw", "f16")]


@pytest.mark.parametrize(("image", "half"), RUNS, ids=[f"{i.identity}-{half}" for i, half in RUNS])
def test_the_schedule_computes_what_the_program_says(image: catalog.Image, half: str) -> None:
    fast, strict = memory_after(image, half, "fast"), memory_after(image, half, "strict")
    before = buffers(image)
    for name, array in strict.items():
        assert _same(array, fast[name]), name
    assert any(not _same(array, before[name]) for name, array in strict.items())


def _same(a: NDArray[Any], b: NDArray[Any]) -> bool:
    word = f"u{a.dtype.itemsize}"
    return bool(np.array_equal(a.view(word), b.view(word)))
