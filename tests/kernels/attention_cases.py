"""Streaming attention of any sequence and heads, built and run, beside float64 from the same halves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import harness
import numpy as np
from numpy.typing import NDArray

from coppelius import catalog, model
from coppelius.emit import emit
from coppelius.emulator.launch import launch
from coppelius.emulator.memory import Memory
from coppelius.emulator.parameters import pack_parameters
from coppelius.lowering.half_format import halve
from coppelius.program.encoding import encode_listing
from coppelius.reference import attention as reference
from coppelius.reference import half as halves
from coppelius.schedule.late_reads import guard

Bits = NDArray[np.uint16]
Outputs = dict[str, NDArray[Any]]
DEPTH = model.HEAD_WIDTH
ROWS = 64  # of a block


@cache
def image(identity: str, sequence: int, heads: int) -> catalog.Image:
    """The catalogue's row for that sequence and heads."""
    row = harness.image(identity)
    sizes = {str(model.SEQUENCE): str(sequence), str(model.HEADS): str(heads)}
    shapes = [", ".join(sizes.get(d.strip(), d.strip()) for d in p.shape.split(",")) for p in row.parameters]
    return replace(
        row,
        options={"sequence": sequence, "heads": heads, "depth": DEPTH},
        grid=(heads, sequence // ROWS, 1),
        parameters=tuple(replace(p, shape=s) for p, s in zip(row.parameters, shapes, strict=True)),
    )


@cache
def _listing(identity: str, sequence: int, heads: int) -> str:
    row = image(identity, sequence, heads)
    parameters = catalog.declaration(row)["parameters"]
    return emit(row.kernel, row.options, parameters=parameters, registers=row.registers, block_x=row.block_x).listing


@cache
def material(identity: str, sequence: int, heads: int, half: str) -> bytes:
    """Its encoded bytes in that half format."""
    return encode_listing(guard(halve(_listing(identity, sequence, heads), half)[0]))


def run(
    identity: str, half: str, given: dict[str, Any], *, blocks: Sequence[int] | None = None, **modes: Any
) -> Outputs:
    """What one launch wrote; every buffer that is not given is an output."""
    heads, sequence, _ = given["q"].shape
    row = image(identity, sequence, heads)
    memory, values = Memory(), []
    outputs: Outputs = {}
    for parameter in row.parameters:
        if parameter.kind == "scalar":
            values.append(given[parameter.name])
            continue
        shape = tuple(int(d) for d in parameter.dimensions)
        array = given.get(parameter.name)
        if array is None:
            size = np.dtype(harness.DTYPES[parameter.type]).itemsize
            words = np.full(math.prod(shape) * size, harness.UNWRITTEN, np.uint8)
            array = outputs[parameter.name] = words.view(harness.DTYPES[parameter.type]).reshape(shape)
        assert array.shape == shape
        values.append(memory.place(array, parameter.name, writable=parameter.name in outputs))
    launch(
        material(identity, sequence, heads, half),
        grid=row.grid,  # type: ignore[arg-type]
        block=(row.block_x, 1, 1),
        parameters=pack_parameters(
            [(p["kind"], p["type"], p["offset"]) for p in catalog.declaration(row)["parameters"]], values, memory
        ),
        memory=memory,
        blocks=blocks,
        kernel=identity,
        **modes,
    )
    return outputs


def turned(matrices: Bits) -> Bits:
    """The transposed matrices of each head."""
    return np.ascontiguousarray(np.swapaxes(matrices, -1, -2))


@dataclass
class Case:
    """Halves that all three passes take, and what float64 makes of them."""

    half: str
    q: Bits
    k: Bits
    v: Bits
    dout: Bits
    scale: float = model.ATTENTION_SCALE

    def __post_init__(self) -> None:
        wide = {name: halves.from_bits(getattr(self, name), self.half) for name in ("q", "k", "v", "dout")}
        q, k, v, dout = wide.values()
        self.forward = reference.attention_forward(q, k, v, self.scale)
        self.out = halves.to_bits(self.forward.out, self.half)
        self.lse = self.forward.lse.astype(np.float32)
        out = halves.from_bits(self.out, self.half)
        self.query = reference.attention_query(q, k, v, out, dout, self.lse, self.scale)
        self.delta = self.query.delta.astype(np.float32)
        self.key = reference.attention_key(q, k, v, dout, self.lse, self.delta, self.scale)

    def given(self, identity: str) -> dict[str, Any]:
        """What that pass takes."""
        shared = {"q": self.q, "k": self.k, "scale": self.scale}
        if identity == "attention-forward":
            return shared | {"vt": turned(self.v)}
        shared |= {"v": self.v, "dout": self.dout, "lse": self.lse}
        if identity == "attention-query":
            return shared | {"kt": turned(self.k), "out": self.out}
        return shared | {"qt": turned(self.q), "doutt": turned(self.dout), "delta": self.delta}

    def expected(self, identity: str) -> dict[str, NDArray[np.float64]]:
        """What it should write."""
        kind: Any = {"forward": self.forward, "query": self.query, "key": self.key}[identity.split("-")[1]]
        return kind._asdict()  # type: ignore[no-any-return]


def case(half: str, sequence: int, heads: int, *, seed: int = 1, scale: float = model.ATTENTION_SCALE,
         **size: float) -> Case:  # fmt: skip
    """Normal random inputs, `size` their standard deviations where not 1."""
    random = np.random.default_rng(seed)
    made = {
        name: halves.to_bits(random.standard_normal((heads, sequence, DEPTH)) * size.get(name, 1.0), half)
        for name in ("q", "k", "v", "dout")
    }
    return Case(half, **made, scale=scale)
