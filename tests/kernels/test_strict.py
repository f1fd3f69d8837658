"""Every image, schedule honoured: a few blocks give the same memory as without latencies, in another order.

Strict mode lands each result as late as the schedule permits and reports a read that comes too early, so
this holds stalls, barriers and late reads of what is really executed, loops and tails included.  Small counts
first, whose last block is a part; then the model's sizes and a seeded sample of blocks.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import harness
import numpy as np
import pytest
from numpy.typing import NDArray

from coppelius import catalog
from coppelius.cli import sampling
from coppelius.emulator.launch import launch
from coppelius.emulator.memory import Memory
from coppelius.emulator.parameters import pack_parameters
from coppelius.isa.table import Table

NAMES = {"count": 1025, "rows": 3, "positions": 9, "groups": 1, "vocabulary": 700}
REAL = sampling.NAMES
SEED, SAMPLE = 86, 2  # blocks of a sample besides the first and the last
SCALARS = {"f32": 0.5, "u32": 3, "u64": 0x123456789}
MOST_RANDOM = 1 << 20  # elements that repeat over a buffer
MOST_FILLED = 1 << 24  # larger buffers, adamw's, hold numbers only where the first four blocks pass


def buffers(image: catalog.Image, names: Mapping[str, int] = NAMES) -> dict[str, NDArray[Any]]:
    """Random contents for every buffer, outputs as well."""
    random = np.random.default_rng(1)
    out = {}
    for parameter in image.parameters:
        if parameter.kind == "scalar":
            continue
        shape = [d if isinstance(d, int) else names[d] for d in parameter.dimensions]
        array = np.zeros(shape, harness.DTYPES[parameter.type])
        flat = array.reshape(-1)
        some = np.empty(min(len(flat), MOST_RANDOM), array.dtype)
        if parameter.type == "u32":
            some[:] = random.integers(0, 800, len(some))  # some tokens are over the vocabulary
        elif parameter.type == "f32":
            some[:] = random.standard_normal(len(some))
        else:
            some[:] = random.integers(0x3000, 0x3C00, len(some))  # moderate in both formats
        passed = len(some) if len(flat) <= MOST_FILLED else 4096
        for first in range(0, len(flat), MOST_RANDOM):
            part = flat[first : first + MOST_RANDOM][:passed]
            part[:] = some[: len(part)]
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
    names: Mapping[str, int] = NAMES,
) -> dict[str, NDArray[Any]]:
    """Every buffer after a few blocks: if not said, the first, the last, and one inside.

    material, table: other words than the image's own, and whose they are.
    """
    memory, arrays = Memory(), buffers(image, names)
    values = []
    for parameter in image.parameters:
        if parameter.kind == "pointer":
            values.append(memory.place(arrays[parameter.name], parameter.name))
        else:
            values.append(names.get(parameter.name, SCALARS[parameter.type]))
    grid = harness.grid_of(image, names)
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


def sample(image: catalog.Image) -> list[int]:
    """The first block, the last, and seeded ones between; of the scatter more, as most find their token taken."""
    x, y, z = harness.grid_of(image, REAL)
    if image.identity == "adamw":
        return [0, 1, 3]
    more = SAMPLE if image.identity != "embedding-scatter" else 16
    inside = np.random.default_rng(SEED).integers(0, x * y * z, more)
    return sorted({0, x * y * z - 1, *inside.tolist()})


# the products have no count: above they run at their real grid
@pytest.mark.parametrize("image", catalog.IMAGES[:32], ids=[i.identity for i in catalog.IMAGES[:32]])
def test_a_sample_of_the_real_grid_gives_the_same_bits_in_any_order(image: catalog.Image) -> None:
    blocks, half = sample(image), harness.HALVES[catalog.IMAGES.index(image) % 2]
    strict = memory_after(image, half, "strict", blocks=blocks, names=REAL)
    other = memory_after(image, half, "fast", blocks=blocks[::-1], names=REAL)
    wrong = [name for name, array in strict.items() if not _same(array, other[name])]
    assert not wrong
    del other
    before = buffers(image, REAL)
    assert any(not _same(array, before[name]) for name, array in strict.items())


def _same(a: NDArray[Any], b: NDArray[Any]) -> bool:
    word = f"u{a.dtype.itemsize}"
    return bool(np.array_equal(a.view(word), b.view(word)))
