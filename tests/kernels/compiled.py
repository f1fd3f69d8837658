"""Each image's plain CUDA version, compiled by nvcc -O3, beside ours: the same launch, and the path a warp takes in it.

The sources lie in tests/data/cuda/images, written with the same algorithm, mapping and vector width (bf16), and
with the image's parameters in the image's order, so that one launch serves both.  A path is what the first warp of
one block issues, in the emulator: the main path of each program, whichever way its branches are laid out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import harness
import numpy as np
from numpy.typing import NDArray

from coppelius import catalog
from coppelius.container.cubin import Kernel
from coppelius.container.reader import read_kernels
from coppelius.emulator import launch as launching
from coppelius.emulator.engine import Bound, Engine
from coppelius.emulator.group import Group
from coppelius.emulator.memory import Memory
from coppelius.emulator.parameters import pack_parameters
from coppelius.program.cycles import MEMORY_CYCLES, modelled_cycles, resident_warps
from coppelius.program.program import Program

FOLDER = Path(__file__).resolve().parents[1] / "data" / "cuda" / "images"
HALF = "bf16"
NAMES = {"count": 2048, "rows": 1024, "positions": 16, "groups": 1, "vocabulary": 700}
SCALARS: dict[str, float] = {"factor": 0.5, "scale": 0.125, "std": 0.5, "seed": 0x123456789, "value": 7, "stream": 3}
SCALARS |= {"rate": 1e-3, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-5, "decay": 0.01, "gradient_scale": 1 / 3}
SCALARS |= {"correction1": 1 / (1 - 0.9**3), "correction2": 1 / (1 - 0.999**3)}
# whole rows, and a block beside the first where that one is special; softmax's first row is masked but for one column
BLOCKS = {"softmax-forward": 1023, "softmax-backward": 1023}
_MOST_RANDOM = 1 << 20  # elements of a buffer that are not zero
_TOKENS = 200  # tokens in use, so that one is repeated about five times
# elements that a warp moves of the largest buffer, where it is not 128 (32 lanes of four) or rows of a block
PER_WARP = {
    "rotary-table": 64, "argmax": 1536, "qk-rope": 1024, "value-transpose": 512, "head-to-token": 512,
    "token-to-head": 512, "inverse-rope-qkv": 1536, "layernorm-parameters": 512, "cross-entropy": 1536,
    "cross-entropy-backward": 1536, "adamw": 128 * 31, "transpose-g8-r1024-c64": 1024, "transpose-g8-r64-c1024": 1024,
    "loss-target-gather": 32,
}  # fmt: skip


@cache
def kernels() -> Mapping[str, Kernel]:
    """nvcc's kernels by the identity of the image that they serve."""
    found = {}
    for path in sorted(FOLDER.glob("*.cubin")):
        found.update({kernel.name.replace("_", "-"): kernel for kernel in read_kernels(path)})
    return found


def buffers(image: catalog.Image) -> dict[str, NDArray[Any]]:
    """Random contents for every buffer, outputs as well."""
    random = np.random.default_rng(1)
    out = {}
    for parameter in image.parameters:
        if parameter.kind == "scalar":
            continue
        shape = [d if isinstance(d, int) else NAMES[d] for d in parameter.dimensions]
        array = np.zeros(shape, harness.DTYPES[parameter.type])
        some = array.reshape(-1)[:_MOST_RANDOM]
        if parameter.type == "u32":
            some[:] = random.integers(0, _TOKENS, len(some))
        elif parameter.type == "f32":
            some[:] = random.standard_normal(len(some))
        else:
            some[:] = random.integers(0x3000, 0x3C00, len(some))  # moderate
        if parameter.name in ("v", "rstd"):
            np.abs(some, out=some)
        out[parameter.name] = array
    return out


@dataclass
class Run:
    """What a launch left in the buffers, and the ordinals that its first warp issued."""

    arrays: dict[str, NDArray[Any]]
    path: list[int]


def run(image: catalog.Image, material: bytes, shared_bytes: int) -> Run:
    """One block of the image's launch."""
    memory, arrays = Memory(), buffers(image)
    values: list[Any] = []
    for parameter in image.parameters:
        if parameter.kind == "pointer":
            values.append(memory.place(arrays[parameter.name], parameter.name))
        else:
            values.append(NAMES[parameter.name] if parameter.name in NAMES else SCALARS[parameter.name])
    rows = [(p["kind"], p["type"], p["offset"]) for p in catalog.declaration(image)["parameters"]]
    with _watched() as path:
        launching.launch(
            material,
            grid=harness.grid_of(image, NAMES),
            block=(image.block_x, 1, 1),
            parameters=pack_parameters(rows, values, memory),
            memory=memory,
            shared_bytes=shared_bytes,
            blocks=[BLOCKS.get(image.identity, 0)],
            kernel=image.identity,
        )
    return Run(arrays, path)


@contextmanager
def _watched() -> Iterator[list[int]]:
    """Launches inside note each place that their first warp comes to."""
    path: list[int] = []

    class Watched(Engine):
        def _bind(self, place: int) -> Bound:
            bound = super()._bind(place)
            guard = bound.guard

            def noted(group: Group) -> Any:
                if 0 in np.arange(self.machine.warps)[group.select]:
                    path.append(place)
                return np.ones((1, 1), bool) if guard is None else guard(group)

            bound.guard = noted
            return bound

    with patch.object(launching, "Engine", Watched):
        yield path


@dataclass(frozen=True)
class Cost:
    """Modelled cycles of one version: `cycles[memory, warps]`, warps one or as many as a sub-core holds."""

    instructions: int
    registers: int
    warps: int
    cycles: Mapping[tuple[int, bool], float]


def cost(program: Program, path: list[int], registers: int, image: catalog.Image) -> Cost:
    """Cycles of a sub-core an instruction path of one warp takes, alone and among all that fit."""
    warps = resident_warps(registers, block_x=image.block_x, shared_bytes=image.shared_bytes)
    cycles = {
        (memory, many): modelled_cycles(program, path, memory=memory, warps=warps if many else 1)
        / (warps if many else 1)
        for memory in MEMORY_CYCLES
        for many in (False, True)
    }
    return Cost(len(path), registers, warps, cycles)


def costs(image: catalog.Image) -> tuple[Cost, Cost]:
    """Ours and nvcc's."""
    kernel = kernels()[image.identity]
    material = harness.material(image.identity, HALF)
    ours, theirs = Program.decode(material), Program.decode(kernel.code)
    registers = image.registers if image.registers is not None else kernel.registers
    return (
        cost(ours, run(image, material, image.shared_bytes).path, registers, image),
        cost(theirs, run(image, kernel.code, kernel.shared).path, kernel.registers, image),
    )


SMALL = [i for i in catalog.IMAGES[:29] if i.identity != "adamw"]  # whose bank takes seconds
