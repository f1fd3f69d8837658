"""One image as a launch sees it: its material through the real steps, run in the emulator at its real grid.

    run("add", "bf16", out=n, a=a, b=b, count=n)    arrays are inputs, an integer or shape is an output
    run(..., blocks=[0, 7])                         only these blocks, at the whole grid
    run(..., mode="strict")                         the schedule honoured: a result read too early is a fault

Outputs are filled with a pattern first, so that an element nobody wrote shows; inputs are read-only.
Buffers lie apart with gaps that belong to none, so an access outside a buffer is a fault.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coppelius import catalog
from coppelius.arena import grid as grids
from coppelius.emit import emit
from coppelius.emulator.launch import Report, launch
from coppelius.emulator.memory import Memory
from coppelius.emulator.parameters import pack_parameters
from coppelius.lowering.half_format import halve
from coppelius.program.encoding import encode_listing
from coppelius.schedule.late_reads import guard

HALVES = ("bf16", "f16")
COUNTS = (0, 1, 3, 255, 1023, 1025)  # beside the large one: nothing, parts of a quad, around a block's end
LARGE = 6_291_456  # specified: what images with a count are proved at
UNWRITTEN = 0xA5  # the byte that outputs are filled with
DTYPES = {"f32": np.float32, "u32": np.uint32, "u64": np.uint64, "half": np.uint16}

Outputs = dict[str, NDArray[Any]]


def image(identity: str) -> catalog.Image:
    """The catalogue's row."""
    return next(i for i in catalog.IMAGES if i.identity == identity)


@cache
def listing(identity: str, half: str) -> str:
    """The image's guarded listing in that half format."""
    row = image(identity)
    declared = catalog.declaration(row)
    emitted = emit(
        row.kernel,
        row.options,
        parameters=declared["parameters"],
        registers=row.registers,
        block_x=row.block_x,
    )
    return guard(halve(emitted.listing, half)[0])


@cache
def material(identity: str, half: str) -> bytes:
    """The image's encoded bytes in that half format."""
    return encode_listing(listing(identity, half))


def grid_of(row: catalog.Image, names: Mapping[str, int]) -> tuple[int, int, int]:
    """The image's grid for these counts and dimensions."""
    x, y, z = (grids.evaluate(entry, names) for entry in row.grid)
    return x, y, z


def run(identity: str, half: str, *, blocks: Sequence[int] | None = None, **given: Any) -> Outputs:
    """The outputs after one launch; `in_place`: names of arrays that the launch may write, as they are."""
    return report(identity, half, blocks=blocks, **given)[0]


def report(
    identity: str,
    half: str,
    *,
    blocks: Sequence[int] | None = None,
    in_place: Sequence[str] = (),
    mode: str = "fast",
    mma: str = "exact",
    **given: Any,
) -> tuple[Outputs, Report | None]:
    """The outputs and the emulator's report; None where the grid is empty and nothing is launched."""
    row = image(identity)
    memory = Memory()
    outputs: Outputs = {}
    values: list[Any] = []
    known: dict[str, int] = {}
    for parameter in row.parameters:
        value = given.pop(parameter.name)
        if parameter.kind == "scalar":
            values.append(value)
            if parameter.type == "u32":
                known[parameter.name] = int(value)
            continue
        dtype = np.dtype(DTYPES[parameter.type])
        writable = not isinstance(value, np.ndarray) or parameter.name in in_place
        if isinstance(value, np.ndarray):
            array = np.ascontiguousarray(value, dtype)
            assert array is value or parameter.name not in in_place, f"{parameter.name} would be a copy"
        else:
            array = np.empty(value, dtype)
            array.reshape(-1).view(np.uint8).fill(UNWRITTEN)
        for name, size in zip(parameter.dimensions, array.shape, strict=True):
            if isinstance(name, str):
                known.setdefault(name, size)
        if writable:
            outputs[parameter.name] = array
        values.append(memory.place(array, parameter.name, writable=writable))
    assert not given, f"{identity} has no parameter {', '.join(given)}"
    grid = grid_of(row, known)
    if min(grid) == 0:
        return outputs, None
    rows = [(p["kind"], p["type"], p["offset"]) for p in catalog.declaration(row)["parameters"]]
    done = launch(
        material(identity, half),
        grid=grid,
        block=(row.block_x, 1, 1),
        parameters=pack_parameters(rows, values, memory),
        memory=memory,
        shared_bytes=row.shared_bytes,
        blocks=blocks,
        mode=mode,
        mma=mma,
        kernel=identity,
    )
    return outputs, done


def untouched(array: NDArray[Any]) -> bool:
    """Whether nothing was written to an output."""
    return bool((array.reshape(-1).view(np.uint8) == UNWRITTEN).all())


def hostile_f32(count: int, seed: int) -> NDArray[np.float32]:
    """Random floats of every magnitude, every seventh a special value."""
    random = np.random.default_rng(seed)
    values = random.integers(0, 1 << 32, count, dtype=np.uint32).view(np.float32)
    special = np.array(
        [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1.1754942e-38, 1.17549435e-38, 3.4028235e38, -3.4028235e38],
        np.float32,
    )
    # a signalling NaN and one with a payload
    special = np.concatenate([special, np.array([0x7F800001, 0xFFC12345], np.uint32).view(np.float32)])
    values[::7] = special[np.arange(len(values[::7])) % len(special)]
    return values


def hostile_half(count: int, seed: int) -> NDArray[np.uint16]:
    """Every bit pattern as often as any."""
    return np.random.default_rng(seed).permutation(np.resize(np.arange(1 << 16), count)).astype(np.uint16)
