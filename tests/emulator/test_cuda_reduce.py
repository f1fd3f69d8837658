"""Reductions, scans and transposes by nvcc, each compiled four ways, against numpy in the same order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

Run = Callable[..., object]


def _tree(values: np.ndarray) -> np.ndarray:
    """Butterfly sum over the last axis, halves added pairwise."""
    while values.shape[-1] > 1:
        half = values.shape[-1] // 2
        values = values[..., :half] + values[..., half:]
    return values[..., 0]


def test_warp_sum(run: Run, random: np.random.Generator) -> None:
    x, out = random.normal(size=512).astype(np.float32), np.zeros(16, np.float32)
    run("reduce", "warp_sum_f32", 2, 256, out, x)
    np.testing.assert_array_equal(out, _tree(x.reshape(16, 32)))


def test_block_sum(run: Run, random: np.random.Generator) -> None:
    x, out = random.integers(-9, 9, 5000).astype(np.float32), np.zeros(3, np.float32)
    run("reduce", "block_sum_f32", 3, 256, out, x, np.int32(5000))
    owner = np.arange(5000) // 256 % 3
    np.testing.assert_array_equal(out, [x[owner == b].sum() for b in range(3)])


def test_tree_maximum(run: Run, random: np.random.Generator) -> None:
    x, out = random.integers(-(2**31), 2**31 - 1, 500, dtype=np.int32), np.zeros(4, np.int32)
    run("reduce", "tree_max_s32", 4, 128, out, x, np.int32(500))
    np.testing.assert_array_equal(out, [x[128 * b : 128 * b + 128].max() for b in range(4)])


def test_tree_sum_of_doubles(run: Run, random: np.random.Generator) -> None:
    x, out = random.normal(size=192), np.zeros(3)
    run("reduce", "tree_sum_f64", 3, 64, out, x)
    np.testing.assert_array_equal(out, _tree(x.reshape(3, 64)))


def test_reductions_of_a_warp(run: Run, random: np.random.Generator) -> None:
    x, out = random.integers(0, 2**32, 64, dtype=np.uint32), np.zeros(16, np.uint32)
    run("reduce", "warp_redux", 1, 64, out, x)
    for w, v in enumerate(x.reshape(2, 32)):
        s = v.view(np.int32)
        expected = [
            v.sum(dtype=np.uint32),
            s.min(),
            s.max(),
            v.min(),
            v.max(),
            np.bitwise_and.reduce(v),
            np.bitwise_or.reduce(v),
            np.bitwise_xor.reduce(v),
        ]
        np.testing.assert_array_equal(out[8 * w : 8 * w + 8], np.array(expected, np.int64).astype(np.uint32))


def test_argmax(run: Run, random: np.random.Generator) -> None:
    x = random.integers(0, 40, (5, 100)).astype(np.float32)
    value, place = np.zeros(5, np.float32), np.zeros(5, np.int32)
    run("reduce", "argmax_f32", 5, 32, value, place, x, np.int32(100))
    np.testing.assert_array_equal(value, x.max(axis=1))
    np.testing.assert_array_equal(place, x.argmax(axis=1))


def test_scans(run: Run, random: np.random.Generator) -> None:
    x, out = random.integers(-100, 100, 128, dtype=np.int32), np.zeros(128, np.int32)
    run("reduce", "warp_scan_s32", 2, 64, out, x)
    np.testing.assert_array_equal(out, np.cumsum(x.reshape(4, 32), axis=1).reshape(-1))
    y, sums = random.integers(0, 2**32, 512, dtype=np.uint32), np.zeros(512, np.uint32)
    run("reduce", "block_scan_u32", 2, 256, sums, y)
    rows = y.reshape(2, 256)
    np.testing.assert_array_equal(sums.reshape(2, 256), np.cumsum(rows, axis=1, dtype=np.uint32) - rows)


def test_histogram(run: Run, random: np.random.Generator) -> None:
    x, out = random.integers(0, 256, 3000, dtype=np.uint8), np.zeros(256, np.uint32)
    run("reduce", "histogram_u8", 3, 128, out, x, np.int32(3000))
    np.testing.assert_array_equal(out, np.bincount(x, minlength=256))


@pytest.mark.parametrize(("rows", "columns"), [(64, 96), (45, 70)])
def test_transpose(run: Run, random: np.random.Generator, rows: int, columns: int) -> None:
    x, out = random.normal(size=(rows, columns)).astype(np.float32), np.zeros((columns, rows), np.float32)
    grid = -(-columns // 32), -(-rows // 32)
    run("reduce", "transpose_f32", grid, (32, 8), out, x, np.int32(rows), np.int32(columns))
    np.testing.assert_array_equal(out, x.T)


def test_transpose_of_halves(run: Run, random: np.random.Generator) -> None:
    x, out = random.integers(0, 65536, (64, 32), dtype=np.uint16), np.zeros((32, 64), np.uint16)
    run("reduce", "transpose_u16", (1, 2), (32, 32), out, x, np.int32(64), np.int32(32))
    np.testing.assert_array_equal(out, x.T)


def test_tiled_product(run: Run, random: np.random.Generator) -> None:
    a, b = (random.integers(-8, 8, s).astype(np.float32) for s in ((32, 64), (64, 48)))
    c = np.zeros((32, 48), np.float32)
    run("reduce", "sgemm_tiled", (3, 2), (16, 16), c, a, b, np.int32(48), np.int32(64))
    np.testing.assert_array_equal(c, a @ b)
