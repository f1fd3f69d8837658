"""Tiled products of any shape and tile, built and run; and what they must give, bit for bit.

`exact` composes the same HMMAs from whole matrices: fragments as PTX lays them out, K upwards in steps of 16.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import harness
import numpy as np
from numpy.typing import NDArray

from coppelius import catalog
from coppelius.check.verdict import judge
from coppelius.emit import emit
from coppelius.emulator.launch import launch
from coppelius.emulator.memory import Memory
from coppelius.emulator.numerics.matrix import hmma
from coppelius.emulator.numerics.rounding import BF16, F16
from coppelius.emulator.parameters import pack_parameters
from coppelius.lowering.half_format import halve
from coppelius.products.admission import registers
from coppelius.products.shape import Product
from coppelius.products.tile import CANDIDATES, Tile
from coppelius.program.encoding import encode_listing
from coppelius.reference import half as halves
from coppelius.schedule.late_reads import guard

Bits = NDArray[np.uint16]
POOL = 1_000_003


@dataclass(frozen=True)
class Case:
    """A product with a candidate's tile, looped or straight."""

    product: Product
    candidate: int
    straight: bool = False

    def __str__(self) -> str:
        return f"{self.candidate}-{self.product.identity}"

    @property
    def tile(self) -> Tile:
        """The candidate's."""
        return CANDIDATES[self.candidate]

    @property
    def parameters(self) -> tuple[catalog.Parameter, ...]:
        """The launch's."""
        text = "c f32[m, n]; a half[m, k]; b half[n, k]" + ("; r f32[m, n]" if self.product.residual else "")
        return catalog.parse_parameters(text)


def small(layouts: str, candidate: int, *, residual: bool = False, rounds: int = 3, blocks: tuple[int, int] = (2, 2),
          straight: bool = False) -> Case:  # fmt: skip
    """A few blocks of the tile, K a few turns of its ring."""
    tile = CANDIDATES[candidate]
    k = 32 * tile.stages * rounds
    return Case(Product(layouts, tile.rows * blocks[0], tile.columns * blocks[1], k, residual), candidate, straight)


@cache
def listing(case: Case) -> str:
    """The emitted listing, within the registers that admission counts."""
    product, tile = case.product, case.tile
    options = {
        "m": product.m, "n": product.n, "depth": product.k, "a_columns": int(product.a_columns),
        "b_columns": int(product.b_columns), "residual": int(product.residual), **vars(tile),
        "straight": int(case.straight),
    }  # fmt: skip
    offsets = catalog.parameter_offsets(case.parameters)
    rows = [
        {"name": p.name, "kind": p.kind, "type": p.type, "offset": at}
        for p, at in zip(case.parameters, offsets, strict=True)
    ]
    kernel = "coppelius.kernels.tiled.product:tiled_product"
    return emit(kernel, options, parameters=rows, registers=registers(tile), block_x=tile.threads).listing


@cache
def material(case: Case, half: str) -> bytes:
    """Its machine code."""
    return encode_listing(guard(halve(listing(case), half)[0]))


def verdict(case: Case, half: str) -> dict[str, Any]:
    """Both checks and the resources, against what the tile declares."""
    declared = {
        "registers": registers(case.tile), "shared_bytes": case.tile.shared_bytes, "block_x": case.tile.threads,
        "half": half,
    }  # fmt: skip
    return judge(material(case, half), declared)


@cache
def _pool(half: str) -> tuple[Bits, NDArray[np.float32]]:
    """Normal numbers to fill matrices of any size from; its prime length keeps rows apart."""
    values = np.random.default_rng(0).standard_normal(POOL)
    return halves.to_bits(values, half), values[::-1].astype(np.float32)


def operands(product: Product, half: str, seed: int) -> tuple[Bits, Bits, NDArray[np.float32]]:
    """A as m x k and B as k x n in halves, R in f32."""
    bits, floats = _pool(half)
    random = np.random.default_rng(seed)

    def drawn(pool: NDArray[Any], shape: tuple[int, int]) -> NDArray[Any]:
        return np.resize(np.roll(pool, random.integers(POOL)), shape)

    m, n, k = product.m, product.n, product.k
    return drawn(bits, (m, k)), drawn(bits, (k, n)), drawn(floats, (m, n))


def stored(product: Product, a: Bits, b: Bits) -> tuple[Bits, Bits]:
    """Both as they lie in memory."""
    return (
        np.ascontiguousarray(a.T if product.a_columns else a),
        np.ascontiguousarray(b if product.b_columns else b.T),
    )


def run(case: Case, half: str, a: Bits, b: Bits, r: NDArray[np.float32], **how: Any) -> NDArray[np.float32]:
    """C after one launch."""
    product, tile = case.product, case.tile
    c = np.empty((product.m, product.n), np.float32)
    c.view(np.uint8).fill(harness.UNWRITTEN)
    memory = Memory()
    values = [memory.place(c, "c")]
    values += [memory.place(x, n, writable=False) for n, x in zip("ab", stored(product, a, b), strict=True)]
    if product.residual:
        values.append(memory.place(r, "r", writable=False))
    offsets = catalog.parameter_offsets(case.parameters)
    rows = [(p.kind, p.type, at) for p, at in zip(case.parameters, offsets, strict=True)]
    launch(
        material(case, half),
        grid=(product.n // tile.columns, product.m // tile.rows, 1),
        block=(tile.threads, 1, 1),
        parameters=pack_parameters(rows, values, memory),
        memory=memory,
        shared_bytes=tile.shared_bytes,
        kernel=product.identity,
        **how,
    )
    return c


_LANE = np.arange(32)
_G, _T = _LANE // 4, _LANE % 4


def exact(a: Bits, b: Bits, half: str, r: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
    """C of A (m x k) and B (k x n) by HMMA.16816.F32, K upwards; R is added last, rounded to nearest."""
    source = BF16 if half == "bf16" else F16
    tiles_m, tiles_n, steps = a.shape[0] // 16, b.shape[1] // 8, a.shape[1] // 16
    # [tile, step, lane, register, half of it]
    rows = a.reshape(tiles_m, 16, steps, 16).transpose(0, 2, 1, 3)
    columns = b.reshape(steps, 16, tiles_n, 8).transpose(2, 0, 1, 3)
    pair = np.arange(2)
    left = np.stack(
        [rows[:, :, (_G + 8 * (x % 2))[:, None], (2 * _T + 8 * (x // 2))[:, None] + pair] for x in range(4)], axis=3
    )
    right = np.stack([columns[:, :, (2 * _T + 8 * x)[:, None] + pair, _G[:, None]] for x in range(2)], axis=3)
    fragments = [np.ascontiguousarray(x).view(np.uint32)[..., 0] for x in (left, right)]
    place_m, place_n = (x.reshape(-1) for x in np.meshgrid(np.arange(tiles_m), np.arange(tiles_n), indexing="ij"))
    total = np.zeros((tiles_m * tiles_n, 32, 4), np.uint32)
    for step in range(steps):
        total = hmma(fragments[0][place_m, step], fragments[1][place_n, step], total, 16, source)
    c = np.empty((tiles_m, tiles_n, 16, 8), np.uint32)
    out = total.reshape(tiles_m, tiles_n, 32, 4)
    for x in range(4):
        c[:, :, _G + 8 * (x // 2), 2 * _T + x % 2] = out[:, :, :, x]
    made = c.transpose(0, 2, 1, 3).reshape(a.shape[0], b.shape[1]).copy().view(np.float32)
    return made if r is None else made + r
