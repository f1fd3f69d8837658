"""The product images at the model's shapes: sampled blocks within bounds and to the bit, whole ones by -m slow."""

from typing import Any

import harness
import numpy as np
import pytest
import tiled_cases
from numpy.typing import NDArray

from coppelius.catalog import declaration
from coppelius.check.verdict import judge
from coppelius.products.admission import recorded
from coppelius.products.shape import PRODUCTS, Product
from coppelius.reference import bounds
from coppelius.reference import half as halves
from coppelius.reference.product import product as reference

IDS = [product.identity for product in PRODUCTS]
SAMPLE = 3
# the ordinary run takes each product in one format, in turn, and one product a layout to the bit; -m slow the rest
SAMPLED = [
    pytest.param(product, half, id=f"{product.identity}-{half}", marks=[] if (n + m) % 2 == 0 else [pytest.mark.slow])
    for n, product in enumerate(PRODUCTS)
    for m, half in enumerate(harness.HALVES)
]
SHORT = ("tiled-rr-m1024-n512-k512-add", "tiled-rc-m1024-n512-k512", "tiled-cc-m512-n512-k1024")
EXACT = [
    pytest.param(product, id=product.identity, marks=[] if product.identity in SHORT else [pytest.mark.slow])
    for product in PRODUCTS
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


@pytest.mark.parametrize(("product", "half"), SAMPLED)
def test_sampled_blocks_are_within_bounds_and_nothing_else_is_written(product: Product, half: str) -> None:
    a, b, r = tiled_cases.operands(product, half, seed=11)
    chosen = blocks_of(product, SAMPLE, seed=12)
    c = launched(product, half, a, b, r, blocks=chosen, mma="fast")
    outside = np.ones(c.shape, bool)
    for block in chosen:
        rows, columns = place(product, block)
        added = r[rows, columns] if product.residual else None
        want = reference(halves.from_bits(a[rows], half), halves.from_bits(b[:, columns], half), "rc", added)
        for measured in bounds.product(c[rows, columns], want, product.k):
            assert measured, f"block {block}: {measured}"
        outside[rows, columns] = False
    assert harness.untouched(np.ascontiguousarray(c[outside]))


@pytest.mark.parametrize("product", EXACT)
def test_a_block_is_exact_to_the_bit_and_within_bounds(product: Product) -> None:
    half = harness.HALVES[PRODUCTS.index(product) % 2]
    a, b, r = tiled_cases.operands(product, half, seed=13)
    (block,) = blocks_of(product, 1, seed=14)
    rows, columns = place(product, block)
    c = launched(product, half, a, b, r, blocks=[block])[rows, columns]
    added = r[rows, columns] if product.residual else None
    composed = tiled_cases.exact(np.ascontiguousarray(a[rows]), np.ascontiguousarray(b[:, columns]), half, added)
    assert np.array_equal(np.ascontiguousarray(c).view(np.uint32), composed.view(np.uint32))
    want = reference(halves.from_bits(a[rows], half), halves.from_bits(b[:, columns], half), "rc", added)
    for measured in bounds.product(c, want, product.k):
        assert measured, str(measured)


def test_fillers_stand_before_every_copy_that_follows_a_shared_access() -> None:
    lacking = {}
    for product in PRODUCTS:
        row = harness.image(product.identity)
        verdict = judge(harness.material(row.identity, "bf16"), {**declaration(row), "half": "bf16"})
        lacking[row.identity] = [note for note in verdict["notes"] if note["rule"] == "filler"]
    assert not any(lacking.values()), lacking


@pytest.mark.slow
@pytest.mark.parametrize("half", harness.HALVES)
@pytest.mark.parametrize("product", PRODUCTS, ids=IDS)
def test_the_whole_shape_is_within_bounds(product: Product, half: str) -> None:
    a, b, r = tiled_cases.operands(product, half, seed=15)
    c = launched(product, half, a, b, r, mma="fast")
    wide = halves.from_bits(a, half), halves.from_bits(b, half)
    for measured in bounds.product(c, reference(*wide, "rc", r if product.residual else None), product.k):
        assert measured, str(measured)


@pytest.mark.slow
@pytest.mark.parametrize("product", PRODUCTS, ids=IDS)
def test_sixteen_blocks_are_exact_and_strict(product: Product) -> None:
    half = harness.HALVES[(PRODUCTS.index(product) + 1) % 2]
    a, b, r = tiled_cases.operands(product, half, seed=16)
    chosen = blocks_of(product, 16, seed=17)
    c = launched(product, half, a, b, r, blocks=chosen)
    strict = launched(product, half, a, b, r, blocks=chosen, mode="strict")
    for block in chosen:
        rows, columns = place(product, block)
        added = r[rows, columns] if product.residual else None
        want = tiled_cases.exact(np.ascontiguousarray(a[rows]), np.ascontiguousarray(b[:, columns]), half, added)
        for got in (c, strict):
            assert np.array_equal(np.ascontiguousarray(got[rows, columns]).view(np.uint32), want.view(np.uint32))
