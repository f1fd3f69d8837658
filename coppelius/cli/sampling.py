"""How one block of an image touches memory at its real grid: the block runs in the emulator, its accesses counted.

Sizes are the model's, counts the one that kernels with a count are proved at.  Buffers hold zeros, so that their
pages exist only where the block touches them, and token numbers are seeded, some of them repeated: where a thread
looks depends on those alone.  The block is the grid's last, which is whole and whose rows have the fewest masked
elements; or its first, where the last has less to do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from coppelius import model
from coppelius.arena import grid as grids
from coppelius.catalog import Image, Parameter, declaration
from coppelius.emulator.launch import launch
from coppelius.emulator.memory import Memory
from coppelius.emulator.parameters import pack_parameters
from coppelius.emulator.traffic import Access, Traffic

COUNT = 6_291_456  # specified: what images with a count are proved at
NAMES = {
    "count": COUNT,
    "rows": model.SEQUENCE,
    "positions": model.SEQUENCE,
    "groups": model.HEADS,
    "vocabulary": model.VOCABULARY,
}
# later blocks of the scatter find their token taken; later ones of the bank make a pass less
FROM_THE_FIRST = ("embedding-scatter", "adamw")
_TOKENS = 200  # in use, so that each is named about five times
_DTYPES = {"f32": np.float32, "u32": np.uint32, "u64": np.uint64, "half": np.uint16}
_SCALARS = {"f32": 0.5, "u32": 3, "u64": 3}


def sampled_accesses(image: Image, material: bytes) -> list[Access]:
    """Each load and store of global and shared memory that one block of the image came to."""
    memory, traffic = Memory(), Traffic()
    values: list[Any] = []
    for parameter in image.parameters:
        if parameter.kind == "pointer":
            values.append(memory.place(_buffer(parameter), parameter.name))
        else:
            values.append(NAMES.get(parameter.name, _SCALARS[parameter.type]))
    x, y, z = (grids.evaluate(entry, NAMES) for entry in image.grid)
    rows = [(p["kind"], p["type"], p["offset"]) for p in declaration(image)["parameters"]]
    launch(
        material,
        grid=(x, y, z),
        block=(image.block_x, 1, 1),
        parameters=pack_parameters(rows, values, memory),
        memory=memory,
        shared_bytes=image.shared_bytes,
        blocks=[0 if image.identity in FROM_THE_FIRST else x * y * z - 1],
        mma="fast",
        kernel=image.identity,
        traffic=traffic,
    )
    return traffic.accesses


def _buffer(parameter: Parameter) -> NDArray[Any]:
    shape = [d if isinstance(d, int) else NAMES[d] for d in parameter.dimensions]
    if parameter.type == "u32" and shape == [NAMES["rows"]]:
        return np.random.default_rng(1).integers(0, _TOKENS, shape, np.uint32)
    return np.zeros(shape, _DTYPES[parameter.type])
