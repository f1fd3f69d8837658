"""Times of the tiled products' candidates on a card; a time counts only where C was right before and after it.

Every serving candidate of a product gets the same operands.  Each is launched once and its C compared with the
reference within the products' bounds; then candidates take turns, so that clocks that drift meet all of them, a batch
of launches between two events at a time.  A candidate's time is the median batch over its launches; the last C has
the first one's bits.  Operands that fit the second cache stay there, as they do behind the kernel that wrote them.

Left out: cold caches, power limits, other programs on the card.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coppelius import catalog
from coppelius.catalog import Image
from coppelius.cli.emulate import image_material
from coppelius.container.image import ImageParameter, ReleasedImage
from coppelius.container.writer import symbol_name, write_cubin
from coppelius.device.card import Device, poison
from coppelius.isa.targets.layout import layout_of
from coppelius.lowering.lower import lower_listing
from coppelius.products import cost
from coppelius.products.shape import Product
from coppelius.products.tile import CANDIDATES
from coppelius.program.encoding import encode_listing
from coppelius.program.listing import listing_text
from coppelius.program.program import Program
from coppelius.reference import bounds
from coppelius.reference import half as halves
from coppelius.reference.product import product as reference

NATIVE = "sm86"
WARM_UP = 3  # chosen: launches before the first batch
BATCH_MICROSECONDS = 500.0  # chosen: a thousand times the resolution of an event (published: about 0.5)
MOST_LAUNCHES = 200


@dataclass(frozen=True)
class Timing:
    """Of one candidate: microseconds of a launch, how far batches lie apart as a share of it, or what is wrong."""

    candidate: int
    microseconds: float = 0.0
    spread: float = 0.0
    wrong: str = ""


@dataclass(frozen=True)
class _Loaded:
    candidate: int
    kernel: Any
    grid: tuple[int, int, int]
    block_x: int
    dynamic: int


@dataclass(frozen=True)
class Operands:
    """Of one product, in memory of a card: pointers in the parameters' order, and the C that they must give."""

    pointers: Sequence[int]
    shape: tuple[int, int]
    wanted: NDArray[np.float64]


def released(product: Product, candidate: int, half: str, target: str) -> tuple[Image, ReleasedImage]:
    """The candidate's image, made from the sources as a build makes it, lowered where the card needs that."""
    image = catalog.product_image(product, CANDIDATES[candidate])
    code, _ = image_material(image, half)
    if target != NATIVE:
        code = encode_listing(lower_listing(listing_text(Program.decode(code)), target)[0])
    base = layout_of(NATIVE).parameters
    parameters = tuple(
        ImageParameter(p.name, at - base, p.bytes, True, p.type)
        for p, at in zip(image.parameters, catalog.parameter_offsets(image.parameters), strict=True)
    )
    return image, ReleasedImage(
        f"{image.identity}-candidate{candidate}", target, code, 0, image.registers or 0, image.block_x,
        image.shared_bytes + layout_of(target).reserved, True, image.grid, parameters,
    )  # fmt: skip


def place_operands(device: Device, product: Product, half: str, seed: int) -> Operands:
    """Normal numbers for A, B and R, the same for every candidate."""
    random = np.random.default_rng(seed)
    a_shape = (product.k, product.m) if product.a_columns else (product.m, product.k)
    b_shape = (product.k, product.n) if product.b_columns else (product.n, product.k)
    a, b = (halves.to_bits(random.standard_normal(shape), half) for shape in (a_shape, b_shape))
    shape = (product.m, product.n)
    arrays: list[NDArray[Any]] = [poison(shape), a, b]
    r = random.standard_normal(shape, np.float32) if product.residual else None
    arrays += [] if r is None else [r]
    pointers = []
    for array in arrays:
        pointers.append(device.allocate(array.nbytes))
        device.write(pointers[-1], array)
    wanted = reference(halves.from_bits(a, half), halves.from_bits(b, half), product.layouts, r)
    return Operands(pointers, shape, wanted)


def measure_product(device: Device, product: Product, *, half: str, repeats: int, seed: int = 1) -> list[Timing]:
    """Every serving candidate's timing, by number."""
    operands = place_operands(device, product, half, seed)
    loaded = [_load(device, product, number, half) for number in cost.serving(product)]
    wrong: dict[int, str] = {}
    first: dict[int, NDArray[np.float32]] = {}
    for one in loaded:
        first[one.candidate] = _result(device, one, operands)
        if problem := _problem(first[one.candidate], operands, product):
            wrong[one.candidate] = problem
    sound = [one for one in loaded if one.candidate not in wrong]
    times = _batches(device, sound, operands, repeats)
    for one in sound:
        again = _result(device, one, operands)
        if not np.array_equal(again.view(np.uint32), first[one.candidate].view(np.uint32)):
            wrong[one.candidate] = "two launches gave different bits"
    return [_timing(one.candidate, times, wrong) for one in loaded]


def _timing(candidate: int, times: Mapping[int, Sequence[float]], wrong: Mapping[int, str]) -> Timing:
    if candidate in wrong:
        return Timing(candidate, wrong=wrong[candidate])
    median = statistics.median(times[candidate])
    return Timing(candidate, median, (max(times[candidate]) - min(times[candidate])) / median)


def _load(device: Device, product: Product, candidate: int, half: str) -> _Loaded:
    target = device.facts.target
    image, made = released(product, candidate, half, target)
    kernel = device.load(write_cubin([made]), symbol_name(made.identity), image.shared_bytes)
    x, y, z = (int(entry) for entry in image.grid)
    return _Loaded(candidate, kernel, (x, y, z), image.block_x, image.shared_bytes)


def _launch(device: Device, one: _Loaded, operands: Operands, times: int = 1) -> None:
    for _ in range(times):
        device.launch(one.kernel, one.grid, one.block_x, one.dynamic, operands.pointers)


def _result(device: Device, one: _Loaded, operands: Operands) -> NDArray[np.float32]:
    """C after one launch into a place that held none."""
    device.write(operands.pointers[0], poison(operands.shape))
    _launch(device, one, operands)
    return device.read(operands.pointers[0], operands.shape, np.float32)


def _problem(c: NDArray[np.float32], operands: Operands, product: Product) -> str:
    """Why C is not the product; nothing where it is."""
    over = [str(found) for found in bounds.product(c, operands.wanted, product.k) if not found]
    return "; ".join(over)


def _batches(
    device: Device, loaded: Sequence[_Loaded], operands: Operands, repeats: int
) -> dict[int, list[float]]:  # fmt: skip
    """Microseconds of a launch in each batch, by candidate; batches of all candidates take turns."""
    launches = {}
    for one in loaded:
        _launch(device, one, operands, WARM_UP)
        alone = device.microseconds(lambda one=one: _launch(device, one, operands))  # type: ignore[misc]
        launches[one.candidate] = min(MOST_LAUNCHES, max(1, round(BATCH_MICROSECONDS / max(alone, 1e-3))))
    times: dict[int, list[float]] = {one.candidate: [] for one in loaded}
    for _ in range(repeats):
        for one in loaded:
            count = launches[one.candidate]
            whole = device.microseconds(lambda one=one, count=count: _launch(device, one, operands, count))  # type: ignore[misc]
            times[one.candidate].append(whole / count)
    return times
