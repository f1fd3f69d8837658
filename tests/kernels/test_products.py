"""The product images at the model's shapes: whole within bounds, sampled blocks also to the bit, strictly, sanitized.

`tests/bench/bench_whole.py` runs all of it, the slow parts too, and prints the errors beside their bounds.
"""

from collections.abc import Collection
from typing import Any

import harness
import numpy as np
import pytest
import tiled_cases
from numpy.typing import NDArray

from coppelius.catalog import declaration
from coppelius.check.verdict import judge
from coppelius.products.admission import recorded
from coppelius.products.record import CHOICES
from coppelius.products.shape import PRODUCTS, Product
from coppelius.products.tile import K_STAGE
from coppelius.reference import bounds
from coppelius.reference import half as halves
from coppelius.reference.product import product as reference

# one a layout for what takes a block or three; -m slow the rest
SHORT = ("tiled-rr-m1024-n512-k512-add", "tiled-rc-m1024-n512-k512", "tiled-cc-m512-n512-k1024")
SAMPLE = 3
MODEL_ROWS = 256


def products(quick: Collection[str] = SHORT) -> list[Any]:
    """Every product; those that `quick` does not name are slow."""
    return [
        pytest.param(product, id=product.identity, marks=[] if product.identity in quick else [pytest.mark.slow])
        for product in PRODUCTS
    ]


# each whole shape in both formats: the ordinary run takes the formats in turn, -m slow the other one
WHOLE = [
    pytest.param(product, half, id=f"{product.identity}-{half}", marks=[] if (n + m) % 2 == 0 else [pytest.mark.slow])
    for n, product in enumerate(PRODUCTS)
    for m, half in enumerate(harness.HALVES)
]


def blocks_of(product: Product, count: int, seed: int) -> list[int]:
    """A seeded sample of the grid, the last block among them."""
    tile = recorded(product)
    total = (product.m // tile.rows) * (product.n // tile.columns)
    chosen = np.random.default_rng(seed).permutation(total - 1)[: count - 1]
    return sorted([*(int(b) for b in chosen), total - 1])


def place(product: Product, block: int) -> tuple[slice, slice]:
    """Rows and columns of C."""
    tile = recorded(product)
    row, column = divmod(block, product.n // tile.columns)
    return (
        slice(row * tile.rows, (row + 1) * tile.rows),
        slice(column * tile.columns, (column + 1) * tile.columns),
    )


def launched(product: Product, half: str, a: Any, b: Any, r: NDArray[np.float32], **how: Any) -> NDArray[Any]:
    given = dict(zip("ab", tiled_cases.stored(product, a, b), strict=True))
    if product.residual:
        given["r"] = r
    return harness.report(product.identity, half, c=(product.m, product.n), **given, **how)[0]["c"]


def added(product: Product, r: NDArray[np.float32], at: tuple[slice, slice]) -> NDArray[np.float32] | None:
    """The residual's part."""
    return r[at] if product.residual else None


def modelled(product: Product, half: str, a: Any, b: Any, r: NDArray[np.float32], at: tuple[slice, slice]) -> Any:
    """The same HMMAs in the same order, by numpy, of these rows and columns."""
    rows, columns = at
    return tiled_cases.exact(
        np.ascontiguousarray(a[rows]), np.ascontiguousarray(b[:, columns]), half, added(product, r, at)
    )


def within_bounds(c: Any, product: Product, half: str, a: Any, b: Any, r: NDArray[np.float32], at: Any = None) -> None:
    """These rows and columns of C, or all, against float64."""
    rows, columns = at = at or (slice(None), slice(None))
    wide = halves.from_bits(a[rows], half), halves.from_bits(b[:, columns], half)
    for measured in bounds.product(c[at], reference(*wide, "rc", added(product, r, at)), product.k):
        assert measured, f"{at}: {measured}"


@pytest.mark.parametrize(("product", "half"), WHOLE)
def test_the_whole_shape_is_within_bounds(product: Product, half: str) -> None:
    a, b, r = tiled_cases.operands(product, half, seed=15)
    within_bounds(launched(product, half, a, b, r, mma="fast"), product, half, a, b, r)


@pytest.mark.parametrize("half", harness.HALVES)
@pytest.mark.parametrize("product", products())
def test_sampled_blocks_are_within_bounds_and_nothing_else_is_written(product: Product, half: str) -> None:
    a, b, r = tiled_cases.operands(product, half, seed=11)
    chosen = blocks_of(product, SAMPLE, seed=12)
    c = launched(product, half, a, b, r, blocks=chosen, mma="fast")
    outside = np.ones(c.shape, bool)
    for block in chosen:
        within_bounds(c, product, half, a, b, r, place(product, block))
        outside[place(product, block)] = False
    assert harness.untouched(np.ascontiguousarray(c[outside]))


def test_fillers_stand_before_every_copy_that_follows_a_shared_access() -> None:
    lacking = {}
    for product in PRODUCTS:
        row = harness.image(product.identity)
        verdict = judge(harness.material(row.identity, "bf16"), {**declaration(row), "half": "bf16"})
        lacking[row.identity] = [note for note in verdict["notes"] if note["rule"] == "filler"]
    assert not any(lacking.values()), lacking


@pytest.mark.parametrize("product", products())
def test_the_straight_form_passes_both_checks_as_the_image_does(product: Product) -> None:
    """With the recorded tile and all of K: the unrolling whose schedule says what the loop's rounds do."""
    straight = tiled_cases.Case(product, CHOICES[product.identity].candidate, straight=True)
    products = product.k // K_STAGE * straight.tile.products
    assert tiled_cases.listing(straight).count("HMMA.16816") == products
    row = harness.image(product.identity)
    for half in harness.HALVES:
        unrolled = tiled_cases.verdict(straight, half)
        assert unrolled["accepted"], unrolled["hazards"][:3]
        looped = judge(harness.material(product.identity, half), {**declaration(row), "half": half})
        assert looped["accepted"], looped["hazards"][:3]


@pytest.mark.parametrize("half", harness.HALVES)
@pytest.mark.parametrize("product", products())
def test_sixteen_blocks_are_exact_and_the_schedule_honoured(product: Product, half: str) -> None:
    """Strictly, under every sanitizer."""
    a, b, r = tiled_cases.operands(product, half, seed=16)
    chosen = blocks_of(product, 16, seed=17)
    c = launched(product, half, a, b, r, blocks=chosen, mode="strict")
    for block in chosen:
        at = place(product, block)
        measured = bounds.exact_bits(c[at], modelled(product, half, a, b, r, at))
        assert measured, f"block {block}: {measured}"


@pytest.mark.parametrize("half", harness.HALVES)
@pytest.mark.parametrize("product", products(quick=()))
def test_the_whole_shape_is_exact_to_the_bit_and_within_bounds(product: Product, half: str) -> None:
    a, b, r = tiled_cases.operands(product, half, seed=18)
    c = launched(product, half, a, b, r)
    # rows of the model at a time: its fragments of all of C would take gigabytes
    for first in range(0, product.m, MODEL_ROWS):
        at = slice(first, first + MODEL_ROWS), slice(None)
        measured = bounds.exact_bits(c[at], modelled(product, half, a, b, r, at))
        assert measured, f"rows from {first}: {measured}"
    within_bounds(c, product, half, a, b, r)
