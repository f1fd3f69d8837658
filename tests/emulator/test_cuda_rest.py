"""Kernels of many small kinds by nvcc: byte lanes, scopes, cache policies, widths, votes, comparisons of halves."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

N = 150
Run = Callable[..., object]


def _words(random: np.random.Generator, n: int = N) -> np.ndarray:
    return random.integers(0, 2**32, n, dtype=np.uint32)


def _bytes(x: np.ndarray) -> np.ndarray:
    return x.view(np.uint8).reshape(-1, 4).astype(np.int64)


def _join(parts: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(parts.astype(np.uint8)).view(np.uint32)[:, 0]


def test_byte_lanes(run: Run, random: np.random.Generator) -> None:
    x, y, out = _words(random), _words(random), np.zeros((10, N), np.uint32)
    run("integer", "byte_lanes_u32", 3, 64, out, x, y, np.int32(N))
    a, b = _bytes(x), _bytes(y)
    halves = (x.view(np.uint16) + y.view(np.uint16)).view(np.uint32)
    least = np.minimum(x.view(np.int16), y.view(np.int16)).view(np.uint32)
    s, t = x.view(np.int32).astype(np.int64), y.view(np.int32).astype(np.int64)
    wrapped = (x + y).view(np.int32)
    expected = [_join(a + b), _join(np.maximum(a, b)), _join((a + b + 1) // 2), _join(np.abs(a - b))]
    expected += [_join((a > b) * 255), halves, least, np.abs(a - b).sum(axis=1)]
    expected += [np.maximum(wrapped, 5), np.maximum(np.maximum(s, t), 7)]
    for k, e in enumerate(expected):
        np.testing.assert_array_equal(out[k], e.astype(np.int64).astype(np.uint32), err_msg=str(k))


def test_xorshift(run: Run) -> None:
    out, s = np.zeros(N + 42, np.uint32), np.arange(N + 42, dtype=np.uint32) * np.uint32(2654435761) ^ np.uint32(99)
    run("integer", "random_xorshift", 3, 64, out, np.uint32(99))
    for _ in range(16):
        s ^= s << np.uint32(13)
        s ^= s >> np.uint32(17)
        s ^= s << np.uint32(5)
    np.testing.assert_array_equal(out, s)


def test_cache_policies_change_no_value(run: Run, random: np.random.Generator) -> None:
    x, out = random.normal(size=N).astype(np.float32), np.zeros(N, np.float32)
    run("memory", "cache_policy", 3, 64, out, x, np.int32(N))
    np.testing.assert_array_equal(out, x * 2)


def test_widths_of_shared_memory(run: Run, random: np.random.Generator) -> None:
    x, out, t = _words(random, 256), np.zeros(64, np.uint32), np.arange(64)
    run("memory", "shared_widths", 1, 64, out, x)
    b, s, w = x.view(np.uint8).astype(np.int64), x.view(np.int16).astype(np.int64), x.astype(np.int64)
    r = b[t * 5] + 3 * x.view(np.int8).astype(np.int64)[t * 7] + 5 * s[t * 3] + 7 * (s[t * 7] & 0xFFFF)
    r += w[2 * (127 - t)] * 11 + w[2 * (127 - t) + 1] * 13 + w.reshape(64, 4)[t ^ 17].sum(axis=1)
    after = x.copy()
    after.view(np.uint8)[t] = t
    after.view(np.int16)[64 + t] = -t
    np.testing.assert_array_equal(out, (r + after[t]).astype(np.uint32))


def test_votes_in_a_loop(run: Run, random: np.random.Generator) -> None:
    x, out = random.integers(0, 2**20, 128).astype(np.int32), np.zeros(128, np.int32)
    run("uniform", "vote_loop", 1, 128, out, x, np.int32(100))
    expected = []
    for warp in x.reshape(4, 32):
        steps = 0
        while (warp > 100).any() and steps < 30:
            warp, steps = warp >> 1, steps + 1
        expected.append(warp * 1000 + steps + 100 * bool((warp & 1).all()))
    np.testing.assert_array_equal(out.reshape(4, 32), expected)


@pytest.mark.parametrize("op", [0, 2, 3, 4, 5, 6, 7, 8])
def test_switch_by_a_parameter(run: Run, random: np.random.Generator, op: int) -> None:
    x, out = random.integers(-(2**20), 2**20, 64).astype(np.int32), np.full(64, 5, np.int32)
    run("uniform", "uniform_switch_parameter", 1, 64, out, x, np.int32(op))
    reverse = np.array([int(f"{v:032b}"[::-1], 2) for v in x.view(np.uint32).tolist()], np.uint32).view(np.int32)
    pairs, thirds = x.reshape(-1, 2)[:, ::-1].reshape(-1), np.trunc(x / 3).astype(np.int32)
    table = {0: x + 7, 2: x ^ 0x1234, 3: reverse, 4: pairs, 5: thirds, 6: ~x, 7: np.full(64, 6, np.int32)}
    np.testing.assert_array_equal(out, table.get(op, x))


@pytest.mark.parametrize(
    ("op", "function"), [(2, lambda v: v * v), (3, np.sqrt), (4, np.negative), (5, lambda v: 1 / v)]
)
def test_switch_of_functions(
    run: Run, random: np.random.Generator, op: int, function: Callable[..., np.ndarray]
) -> None:
    x, out = random.uniform(0.1, 9, N).astype(np.float32), np.zeros(N, np.float32)
    run("control", "switch_uniform", 3, 64, out, x, np.int32(op), np.int32(N))
    np.testing.assert_array_equal(out, function(x))


def test_reductions_without_a_result(run: Run, random: np.random.Generator) -> None:
    x = random.integers(-9, 9, N).astype(np.float32)
    f, d, h = np.zeros(1, np.float32), np.zeros(1), np.zeros(4, np.float16)
    run("atomics", "global_reductions_float", 3, 64, f, d, h, x, np.int32(N))
    assert (f[0], d[0]) == (x.sum(), x.sum())
    np.testing.assert_array_equal(h, np.array([N, -N, N, 0], np.float16))


def test_scopes_of_atomics(run: Run, random: np.random.Generator) -> None:
    words, old = _words(random, 4 * N).reshape(4, N), np.zeros((5, N), np.uint32)
    small, before = np.zeros(N, np.uint16), words.copy()
    run("atomics", "scoped_atomics", 3, 64, words, old, small, np.int32(N))
    np.testing.assert_array_equal(old[:4], before)
    np.testing.assert_array_equal(words[:3], before[:3] + np.array([[1], [2], [3]], np.uint32))
    assert (words[3] == 4).all()
    np.testing.assert_array_equal(small, np.where(np.arange(N) % 2 == 0, 7, 0))


def test_shared_atomics_with_old_values(run: Run, random: np.random.Generator) -> None:
    x, out, old = _words(random, 128), np.zeros((5, 128), np.uint32), np.zeros((5, 128), np.uint32)
    run("atomics", "shared_atomics_old", 1, 128, out, old, x)
    start = 3 * np.arange(128, dtype=np.uint32) + np.arange(5, dtype=np.uint32)[:, None]
    np.testing.assert_array_equal(old, start)
    expected = [start[0] + x, x, x, np.where(start[3] >= x, 0, start[3] + 1), np.minimum(start[4], x)]
    np.testing.assert_array_equal(out, expected)


def test_values_of_compared_halves(run: Run, random: np.random.Generator) -> None:
    x = random.choice(np.array([0, -0.0, 1, -2, np.nan, np.inf, 3], np.float16), 2 * N)
    y, out = random.permutation(x), np.zeros((13, 2 * N), np.float16)
    run("half", "half2_compare_values", 3, 64, out, x, y, np.int32(N))
    nan = np.isnan(x) | np.isnan(y)
    with np.errstate(invalid="ignore"):
        ordered = [x == y, (x != y) & ~nan, x < y, x <= y, x > y, x >= y]
    expected = [*ordered, *(o | nan for o in ordered), np.isnan(x)]
    np.testing.assert_array_equal(out, np.array(expected, np.float16))


def test_masks_of_compared_halves(run: Run, random: np.random.Generator) -> None:
    x, out = _words(random), np.zeros((6, N), np.uint32)
    y = np.where(random.random(N) < 0.3, x, _words(random))
    run("half", "half_compare_masks", 3, 64, out, x, y, np.int32(N))
    a, b = x.view(np.float16), y.view(np.float16)
    wide = [(v.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32) for v in (x, y)]
    expected = []
    for p, q in ((a, b), wide):
        with np.errstate(invalid="ignore"):
            expected += [p == q, p < q, (p >= q) | np.isnan(p) | np.isnan(q)]
    masks = [np.where(e, np.uint16(0xFFFF), np.uint16(0)).view(np.uint32) for e in expected]
    np.testing.assert_array_equal(out, masks)


def test_conversions_of_doubles_to_long(run: Run, random: np.random.Generator) -> None:
    x, d, out = random.normal(size=N).astype(np.float32) * 1e5, random.normal(size=N) * 1e12, np.zeros((7, N), np.int64)
    run("convert", "float_to_long", 3, 64, out, x.astype(np.float32), d, np.int32(N))
    x = x.astype(np.float32)
    expected = [
        np.rint(x),
        np.trunc(x),
        np.maximum(np.trunc(x), 0),
        np.rint(d),
        np.trunc(d),
        np.maximum(np.trunc(d), 0),
    ]
    np.testing.assert_array_equal(out[:6], [e.astype(np.int64) for e in expected])
    np.testing.assert_array_equal(out[6], d.view(np.int64))


def test_a_table_passed_by_value(run: Run, random: np.random.Generator) -> None:
    table, out = random.integers(0, 2**31, 3000).astype(np.int32), np.zeros(N, np.int32)
    run("elementwise", "large_parameter", 3, 64, out, table.tobytes(), np.int32(11), np.int32(N))
    np.testing.assert_array_equal(out, table[(np.arange(N) * 7 + 11) % 3000])
