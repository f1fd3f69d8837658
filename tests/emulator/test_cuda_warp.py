"""Votes, matches, shuffles, special registers and barriers by nvcc, each kernel compiled four ways."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Run = Callable[..., object]
LANE = np.arange(32)


def _bits(flags: np.ndarray) -> int:
    return sum(1 << k for k, f in enumerate(flags) if f)


def test_votes(run: Run, random: np.random.Generator) -> None:
    x, out = random.integers(0, 12, 64).astype(np.int32), np.zeros((7, 64), np.uint32)
    x[32:] = 5  # a warp that agrees
    run("warp", "votes", 1, 64, out, x)
    for w in range(2):
        v, got = x[32 * w : 32 * w + 32], out[:, 32 * w : 32 * w + 32]
        np.testing.assert_array_equal(got[0], int((v > 3).any()))
        np.testing.assert_array_equal(got[1], int((v > 3).all()))
        np.testing.assert_array_equal(got[2], int(len(set(v & 1)) == 1))
        np.testing.assert_array_equal(got[3], _bits(v & 2 != 0))
        np.testing.assert_array_equal(got[4, :20], _bits(v[:20] > 5))
        np.testing.assert_array_equal(got[5, :20], int((v[:20] == 9).any()))
        np.testing.assert_array_equal(got[4:6, 20:], [[0] * 12, [1] * 12])


def test_matches(run: Run, random: np.random.Generator) -> None:
    x, out = random.integers(0, 40, 64, dtype=np.uint32), np.zeros((6, 64), np.uint32)
    x[32:] &= 15
    run("warp", "matches", 1, 64, out, x)
    for w in range(2):
        v, got = x[32 * w : 32 * w + 32], out[:, 32 * w : 32 * w + 32]
        peers = [_bits(v == one) for one in v]
        np.testing.assert_array_equal(got[0], peers)
        np.testing.assert_array_equal(got[1], peers)
        alike = len(set(v >> 4)) == 1
        np.testing.assert_array_equal(got[2], 0xFFFFFFFF if alike else 0)
        np.testing.assert_array_equal(got[3], int(alike))
        np.testing.assert_array_equal(got[4:], [[0xFFFFFFFF] * 32, [1] * 32])


def test_shuffles(run: Run, random: np.random.Generator) -> None:
    x, lanes = random.integers(0, 2**32, 32, dtype=np.uint32), random.integers(0, 32, 32).astype(np.int32)
    out = np.zeros((12, 32), np.uint32)
    run("warp", "shuffles", 1, 32, out, x, lanes)
    segment8, back = LANE & ~7, LANE - (lanes & 7)
    clamped = (LANE & 0x18) | (lanes & 7)
    sources = {
        0: np.full(32, 5),
        1: lanes,
        2: np.where(LANE >= 3, LANE - 3, LANE),
        3: np.where(back >= segment8, back, LANE),
        4: np.where((LANE & 15) + 2 < 16, LANE + 2, LANE),
        5: LANE ^ 9,
        6: (LANE & 16) | ((LANE & 15) ^ (lanes & 15)),
        7: np.where(LANE + 4 < 32, LANE + 4, LANE),
        9: clamped,
        11: LANE ^ 1,
    }
    for k, source in sources.items():
        np.testing.assert_array_equal(out[k], x[source], err_msg=f"shuffle {k}")
    np.testing.assert_array_equal(out[8], (LANE + 4 < 32).astype(int))


def test_special_registers_of_three_dimensions(run: Run) -> None:
    grid, block = (2, 3, 2), (5, 3, 4)
    blocks, threads = 12, 60
    out = np.zeros((blocks, threads, 16), np.uint32)
    run("warp", "special_registers", grid, block, out)
    t, b = np.arange(threads), np.arange(blocks).reshape(-1, 1)
    lane = t % 32
    expected = [t % 5, t // 5 % 3, t // 15, b % 2, b // 2 % 3, b // 6, threads, blocks, lane]
    expected += [(1 << lane) - 1, (2 << lane) - 1, (2**32 - (2 << lane)), (2**32 - (1 << lane)), 1 << lane, 0, 32]
    for k, value in enumerate(expected):
        np.testing.assert_array_equal(out[:, :, k], np.broadcast_to(value, (blocks, threads)), err_msg=f"word {k}")


def test_clocks_move_forward(run: Run) -> None:
    out, times = np.zeros(32, np.uint32), np.zeros(32, np.int64)
    run("warp", "clocks", 1, 32, out, times)
    np.testing.assert_array_equal(out, 1)


def test_barrier_with_a_count_that_some_only_arrive_at(run: Run, random: np.random.Generator) -> None:
    x, out = random.integers(0, 100, 64).astype(np.int32), np.zeros(64, np.int32)
    run("warp", "producer_consumer", 1, 128, out, x)
    np.testing.assert_array_equal(out, 2 * x[::-1] + 1)


def test_barrier_reductions(run: Run, random: np.random.Generator) -> None:
    x, out = random.integers(1, 6, 96).astype(np.int32), np.zeros((3, 96), np.int32)
    run("warp", "barrier_reductions", 1, 96, out, x)
    np.testing.assert_array_equal(out, [[(x > 2).sum()] * 96, [1] * 96, [0] * 96])


def test_barriers_named_at_run_time(run: Run, random: np.random.Generator) -> None:
    x, out = random.integers(0, 100, 128).astype(np.int32), np.zeros(256, np.int32)
    run("warp", "named_barriers", 1, 128, out, x)
    np.testing.assert_array_equal(out[:128], x[np.arange(128) ^ 32])
    np.testing.assert_array_equal(out[128:], 128)


def test_exchange_inside_halves_of_a_warp(run: Run, random: np.random.Generator) -> None:
    x, out = random.integers(0, 100, 32).astype(np.int32), np.zeros(32, np.int32)
    run("warp", "warp_exchange", 1, 32, out, x)
    np.testing.assert_array_equal(out, x[np.where(LANE < 16, LANE ^ 1, LANE ^ 8)])


def test_leaders_count_for_their_peers(run: Run, random: np.random.Generator) -> None:
    keys, counts, rank = random.integers(0, 99, 64, dtype=np.uint32), np.zeros(8, np.uint32), np.zeros(64, np.uint32)
    run("warp", "aggregated_counts", 1, 64, counts, rank, keys)
    np.testing.assert_array_equal(counts, np.bincount(keys & 7, minlength=8))
    expected = [int((keys[t // 32 * 32 : t] & 7 == keys[t] & 7).sum()) for t in range(64)]
    np.testing.assert_array_equal(rank, expected)


def test_predicate_logic(run: Run, random: np.random.Generator) -> None:
    x, y = (random.integers(-8, 9, 64).astype(np.int32) for _ in range(2))
    out = np.zeros((6, 64), np.int32)
    run("warp", "predicates", 1, 64, out, x, y)
    p, q, r, s = x > y, x & 3 == 1, y < 0, x == 7
    both = np.where(x < y, 10, 20) + (~(x < y)).astype(int)
    expected = [
        (p & q) | (r & ~s),
        p ^ q ^ r,
        np.where((p | q) & (r | s), x, y),
        np.where(p, np.where(q, 1, 2), np.where(r, 3, 4)),
        p.astype(int) + q + r + s,
        both,
    ]
    for k, value in enumerate(expected):
        np.testing.assert_array_equal(out[k], value, err_msg=f"expression {k}")
