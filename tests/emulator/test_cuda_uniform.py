"""Uniform control and a ring of asynchronous copies by nvcc, compiled four ways, against numpy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

Run = Callable[..., object]


@pytest.mark.parametrize("tiles", [1, 2, 7])
def test_ring_of_copies(run: Run, random: np.random.Generator, tiles: int) -> None:
    x, out = random.integers(-9, 9, (tiles, 128)).astype(np.float32), np.zeros(128, np.float32)
    run("uniform", "ring_buffer", 1, 128, out, x, np.int32(tiles))
    np.testing.assert_array_equal(out, (x[:, ::-1] * np.arange(1, tiles + 1, dtype=np.float32)[:, None]).sum(axis=0))


def test_conditions_that_all_threads_share(run: Run, random: np.random.Generator) -> None:
    x, out = random.integers(-99, 99, 128).astype(np.int32), np.zeros(128, np.int32)
    a, b, c, steps = 5, 9, 7, 11
    run("uniform", "uniform_conditions", 1, 128, out, x, *(np.int32(v) for v in (a, b, c, steps)))
    r = x.astype(np.int64)
    for s in range(steps):
        if (a > s and b < 3 * s) or (c == s and a != b):
            r = r + s
        elif c > a + s:
            r = r ^ (s * b)
        r = r * 3 if (a + s) & 4 else r - 1
    np.testing.assert_array_equal(out, r.astype(np.int32))


def test_jump_table_that_all_threads_share(run: Run, random: np.random.Generator) -> None:
    x, out = random.integers(0, 2**32, 128, dtype=np.uint32), np.zeros(128, np.uint32)
    program = random.integers(0, 9, 40).astype(np.int32)
    run("uniform", "uniform_switch", 1, 128, out, x, program, np.int32(40))
    expected = []
    for i, value in enumerate(x.tolist()):
        r = value
        for s, op in enumerate(program.tolist()):
            ways = [
                r + 7,
                r * 3,
                r ^ 0x1234,
                int(f"{r:032b}"[::-1], 2),
                r << 3 | r >> 29,
                r - s,
                ~r,
                r.bit_count() + i,
                r,
            ]
            r = ways[op] & 0xFFFFFFFF
        expected.append(r)
    np.testing.assert_array_equal(out, expected)
