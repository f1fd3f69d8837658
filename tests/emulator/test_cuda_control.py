"""Divergence by nvcc, each kernel compiled four ways: nested branches, loops of unlike length, tables, calls, exits."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from coppelius.emulator.faults import Fault

N = 300
Run = Callable[..., object]


def _ints(random: np.random.Generator, low: int = -(2**31), high: int = 2**31, n: int = N) -> np.ndarray:
    return random.integers(low, high, n).astype(np.int32)


def _nested(v: int) -> int:
    if v & 1:
        if v & 2:
            r = sum(k * v for k in range(v & 15))
        else:
            r = v * v - 3
            if v & 4:
                r ^= 0x55
        return r + 1
    return (int(v / 3) if v & 4 else int(math.fmod(v, 5)) + 7) - 1


def test_nested_branches(run: Run, random: np.random.Generator) -> None:
    x, out = _ints(random, -40000, 40000), np.zeros(N, np.int32)
    run("control", "nested_branches", 3, 128, out, x, np.int32(N))
    np.testing.assert_array_equal(out, np.array([_nested(int(v)) for v in x]).astype(np.int32))


def _collatz(v: int, limit: int) -> int:
    steps = 0
    for _ in range(limit):
        if v == 1:
            break
        steps += 1
        v = v >> 1 if v % 2 == 0 else (3 * v + 1) % 2**32
    return steps


def test_loops_that_break(run: Run, random: np.random.Generator) -> None:
    x, out = random.integers(1, 5000, N, dtype=np.uint32), np.zeros(N, np.int32)
    run("control", "collatz_steps", 3, 128, out, x, np.int32(60), np.int32(N))
    np.testing.assert_array_equal(out, [_collatz(int(v), 60) for v in x])


def test_loops_of_unlike_length(run: Run, random: np.random.Generator) -> None:
    x, y = (random.integers(1, 2**32, N, dtype=np.uint32) for _ in range(2))
    out = np.zeros(N, np.uint32)
    run("control", "gcd_u32", 3, 128, out, x, y, np.int32(N))
    np.testing.assert_array_equal(out, np.gcd(x, y))


def _switched(op: int, a: int, b: int) -> int:
    table = {
        0: lambda: a + b,
        1: lambda: a - b,
        2: lambda: a * b,
        3: lambda: a & b,
        4: lambda: (a & 0xFFFFFFFF).bit_count() + b,
        5: lambda: max(a, b),
        6: lambda: max(a, b),
        7: lambda: a << (b & 7),
        8: lambda: 32 - (a & 0xFFFFFFFF).bit_length(),
        9: lambda: int(f"{a & 0xFFFFFFFF:032b}"[::-1], 2),
        10: lambda: int(a / (b | 1)),
        11: lambda: a * a + b * b,
    }
    return table.get(op, lambda: -1)() & 0xFFFFFFFF


def test_jump_table(run: Run, random: np.random.Generator) -> None:
    op, x, y = random.integers(-1, 13, N).astype(np.int32), _ints(random), _ints(random)
    out = np.zeros(N, np.int32)
    run("control", "switch_table", 3, 128, out, op, x, y, np.int32(N))
    expected = [_switched(*(int(v) for v in row)) for row in zip(op, x, y, strict=True)]
    np.testing.assert_array_equal(out.view(np.uint32), np.array(expected, np.uint32))


def test_lanes_that_leave_one_by_one(run: Run, random: np.random.Generator) -> None:
    x, out = _ints(random, 0, 1000), np.zeros(N, np.int32)
    run("control", "early_exit", 3, 128, out, x, np.int32(N))
    np.testing.assert_array_equal(out, [(v & 15) * ((v & 15) - 1) // 2 for v in x.tolist()])


def test_goto_out_of_two_loops(run: Run, random: np.random.Generator) -> None:
    x, out = _ints(random, 0, 10, 60), np.zeros(64, np.int32)
    run("control", "nested_loops", 1, 64, out, x, np.int32(6), np.int32(10), np.int32(500))
    expected = []
    for i in range(64):
        total = np.cumsum(x + i)
        past = np.flatnonzero(total > 500)
        at = int(past[0]) if len(past) else None
        expected.append(6 * 1000 + 10 if at is None else at // 10 * 1000 + at % 10)
    np.testing.assert_array_equal(out, expected)


def test_binary_search(run: Run, random: np.random.Generator) -> None:
    table, keys, out = np.sort(_ints(random, 0, 500, 100)), _ints(random, -5, 510), np.zeros(N, np.int32)
    run("control", "lower_bound_s32", 3, 128, out, table, keys, np.int32(100), np.int32(N))
    np.testing.assert_array_equal(out, np.searchsorted(table, keys))


def test_bitonic_sort(run: Run, random: np.random.Generator) -> None:
    x = _ints(random, n=256)
    expected = np.sort(x)
    run("control", "bitonic_sort_256", 1, 256, x)
    np.testing.assert_array_equal(x, expected)


def test_calls_from_both_sides(run: Run, random: np.random.Generator) -> None:
    x, out, outf = _ints(random, -1000, 1000), np.zeros(N, np.int32), np.zeros(N, np.float32)
    run("control", "calls", 3, 128, out, outf, x, np.int32(N))

    def mix(a: int, b: int) -> int:
        return (a * 31) ^ (b + 7)

    expected = [mix(v, i) + 1 if v & 1 else mix(i, mix(v, 3)) for i, v in enumerate(x.tolist())]
    np.testing.assert_array_equal(out, np.array(expected, np.int64).astype(np.int32))
    a, b = x.astype(np.float32), np.arange(N, dtype=np.float32)
    np.testing.assert_array_equal(outf, a + (b - a) * np.float32(0.25))


def test_recursion_keeps_its_frames(run: Run, random: np.random.Generator) -> None:
    x, out = _ints(random, 0, 256, 64), np.zeros(128, np.int32)
    run("control", "recursion", 1, 64, out, x, np.int32(64))
    fibonacci = [0, 1, 1, 2, 3, 5, 8, 13]
    np.testing.assert_array_equal(out[:64], [fibonacci[v & 7] for v in x.tolist()])
    np.testing.assert_array_equal(out[64:], [(v & 3) + 1 + (v & 1) for v in x.tolist()])


def test_trap_on_the_cold_path_is_named(run: Run) -> None:
    x, out = np.arange(64, dtype=np.int32) ** 2 + 3, np.zeros(64, np.int32)
    run("control", "guarded_root", 1, 64, out, x, np.int32(64))
    np.testing.assert_array_equal(out, [math.isqrt(v) for v in x.tolist()])
    x[40] = -1
    with pytest.raises(Fault, match=r"trap.*thread \(40, 0, 0\)"):
        run("control", "guarded_root", 1, 64, out, x, np.int32(64))
