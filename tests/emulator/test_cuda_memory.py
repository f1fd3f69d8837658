"""Memory spaces, widths, atomics and asynchronous copies by nvcc, each kernel compiled four ways."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Run = Callable[..., object]
N = 200


def _words(random: np.random.Generator, shape: int | tuple[int, ...], dtype: type = np.uint32) -> np.ndarray:
    info = np.iinfo(dtype)
    return random.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)


def test_constant_bank_at_a_lanes_index(run: Run, random: np.random.Generator) -> None:
    x, out = random.integers(0, 1000, N).astype(np.int32), np.zeros(N, np.int32)
    run("memory", "constant_index", 2, 128, out, x, np.int32(N))
    primes = np.array([2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53])
    letters = np.frombuffer(b"the quick brown fox jumps over\0\0", np.uint8)
    np.testing.assert_array_equal(out, primes[x & 15] * 1000 + letters[x & 31])


def test_filter_from_a_constant_bank(run: Run, random: np.random.Generator) -> None:
    x, out = random.integers(0, 64, (11, 19)).astype(np.float32), np.zeros((11, 19), np.float32)
    run("memory", "filter_3x3", (3, 2), (8, 8), out, x, np.int32(19), np.int32(11))
    taps = np.outer([1, 2, 1], [1, 2, 1]) / 16
    padded = np.pad(x, 1)
    expected = sum(taps[a, b] * padded[a : a + 11, b : b + 19] for a in range(3) for b in range(3))
    np.testing.assert_array_equal(out, expected)


def test_local_arrays(run: Run, random: np.random.Generator) -> None:
    x = random.integers(-50, 50, (N, 12)).astype(np.int32)
    out = np.zeros_like(x)
    run("memory", "local_sort", 2, 128, out, x, np.int32(N))
    np.testing.assert_array_equal(out, np.sort(x, axis=1))


def test_local_bytes(run: Run, random: np.random.Generator) -> None:
    x, out = _words(random, (N, 2)), np.zeros(N, np.uint32)
    run("memory", "local_bytes", 2, 128, out, x, np.int32(N))
    expected = []
    for a, b in x.tolist():
        count = [0] * 16
        for k in range(8):
            count[a >> 4 * k & 15] += 1
            count[b >> 4 * k & 15] += 2
        h = 0
        for c in count:
            h = (h * 31 + c) % 2**32
        expected.append(h)
    np.testing.assert_array_equal(out, expected)


def test_spilled_registers(run: Run, random: np.random.Generator) -> None:
    x, out = random.integers(-3, 4, (N, 16)).astype(np.float32), np.zeros(N, np.float32)
    run("memory", "register_pressure", 2, 128, out, x, np.int32(N))
    c = (x[:, :8, None] * x[:, None, 8:]).reshape(N, 64)
    s = np.zeros(N)
    for j in range(64):
        s = (c[:, j].astype(np.float64) * c[:, 63 - j] + (s * np.float32(0.5)).astype(np.float32)).astype(np.float32)
    np.testing.assert_array_equal(out, s)


def test_dynamic_shared_memory(run: Run, random: np.random.Generator) -> None:
    x, out, outd = random.integers(0, 99, 128).astype(np.int32), np.zeros(128, np.int32), np.zeros(128)
    run("memory", "dynamic_shared", 2, 64, out, outd, x, shared=64 * 12)
    turned = x.reshape(2, 64)[:, ::-1].reshape(-1)
    np.testing.assert_array_equal(out, turned)
    np.testing.assert_array_equal(outd, turned * 0.5)


def test_global_widths(run: Run, random: np.random.Generator) -> None:
    b, ub = _words(random, N, np.int8), _words(random, N, np.uint8)
    s, us = _words(random, N, np.int16), _words(random, N, np.uint16)
    w, q = _words(random, (N, 2), np.int32), _words(random, (N, 2), np.int64)
    out = np.zeros(N, np.int64)
    run("memory", "global_widths", 2, 128, out, b, ub, s, us, w, q, np.int32(N))
    wide = [v.astype(np.int64) for v in (b, ub, s, us, w)]
    expected = wide[0] + 3 * wide[1] + 5 * wide[2] + 7 * wide[3] + 11 * wide[4][:, 0] + 13 * wide[4][:, 1]
    np.testing.assert_array_equal(out, expected + q[:, 0] - q[:, 1])


def test_generic_pointers(run: Run, random: np.random.Generator) -> None:
    x, out, t = random.integers(0, 99, 32).astype(np.int32), np.zeros(32, np.int32), np.arange(32)
    before = x.copy()
    run("memory", "generic_pointers", 1, 32, out, x)
    tile, first, second = t + 100, 3 * t, np.full(32, 5)
    place = before & 1
    x_new = np.where(t % 3 == 0, before + 7, before)
    tile = np.where(t % 3 == 1, tile + 7, tile)
    mine = np.where(t % 3 == 2, 7, 0)
    chosen_first, chosen_second = first + mine * (place == 0), second + mine * (place == 1)
    np.testing.assert_array_equal(x, x_new)
    late = np.where(x_new & 1, chosen_second, chosen_first)
    pointed = np.where(t % 3 == 0, x_new, np.where(t % 3 == 1, tile, np.where(place, chosen_second, chosen_first)))
    np.testing.assert_array_equal(out, pointed + tile + late)


def test_order_and_hints_change_no_value(run: Run, random: np.random.Generator) -> None:
    x, out = random.integers(0, 99, N).astype(np.int32), np.zeros(N, np.int32)
    run("memory", "memory_order", 2, 128, out, x, np.int32(N))
    np.testing.assert_array_equal(out, x + 4)
    f, hinted = random.integers(0, 99, N).astype(np.float32), np.zeros(5 * N, np.float32)
    run("memory", "cache_hints", 2, 128, hinted, f, np.int32(N))
    np.testing.assert_array_equal(hinted.reshape(5, N), np.broadcast_to(13 * f, (5, N)))


def test_reductions_in_memory(run: Run, random: np.random.Generator) -> None:
    x = random.integers(-(2**31), 2**31, N).astype(np.int32)
    out = np.array([0, 2**31 - 1, -(2**31), -1, 0, -1, 0, 0], np.int32)
    run("atomics", "global_reductions_s32", 2, 128, out, x, np.int32(N))
    u = x.view(np.uint32)
    expected = [x.sum(dtype=np.int32), x.min(), x.max(), u.min(), u.max()]
    expected += [np.bitwise_and.reduce(u), np.bitwise_or.reduce(u), np.bitwise_xor.reduce(u)]
    np.testing.assert_array_equal(out.view(np.uint32), np.array(expected, np.int64).astype(np.uint32))


def test_atomics_with_old_values(run: Run, random: np.random.Generator) -> None:
    words, x = _words(random, (8, N)), _words(random, N)
    words[3, ::2] = x[::2] & 1
    before, old = words.copy(), np.zeros((8, N), np.uint32)
    run("atomics", "global_atomics_u32", 2, 128, words, old, x, np.int32(N))
    np.testing.assert_array_equal(old, before)
    b = before
    expected = [
        b[0] + x,
        b[1] - x,
        x,
        np.where(b[3] == x & 1, x, b[3]),
        np.where(b[4] >= x, 0, b[4] + 1),
        np.where((b[5] == 0) | (b[5] > x), x, b[5] - 1),
        np.minimum(b[6], x),
        np.maximum(b[7], x),
    ]
    np.testing.assert_array_equal(words, expected)


def test_wide_atomics(run: Run, random: np.random.Generator) -> None:
    words, x = _words(random, (8, N), np.uint64), _words(random, N, np.uint64)
    before, old = words.copy(), np.zeros((8, N), np.uint64)
    run("atomics", "global_atomics_u64", 2, 128, words, old, x, np.int32(N))
    b = before
    signed = np.maximum(b[4].view(np.int64), x.view(np.int64)).view(np.uint64)
    expected = [b[0] + x, x, np.where(b[2] == x & np.uint64(1), x, b[2]), np.minimum(b[3], x), signed]
    expected += [b[5] & x, b[6] | x, b[7] ^ x]
    np.testing.assert_array_equal(old, before)
    np.testing.assert_array_equal(words, expected)


def test_shared_atomics(run: Run, random: np.random.Generator) -> None:
    x, out = _words(random, 96), np.zeros(9, np.uint32)
    run("atomics", "shared_atomics", 1, 96, out, x)
    wide = int((x.astype(np.uint64) << np.uint64(16)).sum())
    expected = [x.sum(dtype=np.uint32), x.min(), x.max()]
    expected += [np.bitwise_and.reduce(x), np.bitwise_or.reduce(x), np.bitwise_xor.reduce(x)]
    np.testing.assert_array_equal(out[:6], expected)
    assert (int(out[6]) | int(out[7]) << 32, int(out[8])) == (wide % 2**64, 1)


def test_compare_and_swap_loops(run: Run, random: np.random.Generator) -> None:
    x, out = random.uniform(1, 9, N).astype(np.float32), np.zeros(1, np.float32)
    run("atomics", "cas_loop_max_f32", 2, 128, out, x, np.int32(N))
    assert out[0] == x.max()
    y, sums = random.integers(0, 50, 128).astype(np.float32), np.zeros(4, np.float32)
    run("atomics", "shared_add_f32", 2, 64, sums, y)
    np.testing.assert_array_equal(sums, y.reshape(2, 32, 2).sum(axis=1).reshape(-1))


def test_float_atomics(run: Run, random: np.random.Generator) -> None:
    f, d = random.normal(size=N).astype(np.float32), random.normal(size=N)
    h, b = random.integers(0, 64, 2 * N).astype(np.float16), np.full(2 * N, 0x4080, np.uint16)
    old, start = np.zeros(4 * N, np.float32), (f.copy(), d.copy(), h.copy())
    run("atomics", "global_atomics_float", 2, 128, f, d, h, b, old, np.int32(N))
    np.testing.assert_array_equal(f, start[0] + np.float32(1.5))
    np.testing.assert_array_equal(d, start[1] + 0.25)
    np.testing.assert_array_equal(h, start[2] + np.tile(np.array([1, 2], np.float16), N))
    np.testing.assert_array_equal(b.reshape(N, 2), [[0x40A0, 0x40C0]] * N)
    np.testing.assert_array_equal(old[3 * N :], 8.0)


def test_last_block_sums_all(run: Run, random: np.random.Generator) -> None:
    x, parts = random.integers(-9, 9, 160).astype(np.float32), np.zeros(5, np.float32)
    out, count = np.zeros(1, np.float32), np.zeros(1, np.uint32)
    run("atomics", "last_block_sum", 5, 32, out, parts, count, x)
    assert (out[0], count[0]) == (x.sum(), 5)


def test_asynchronous_copies(run: Run, random: np.random.Generator) -> None:
    x, out = random.normal(size=512).astype(np.float32), np.zeros(512, np.float32)
    run("pipeline", "copy_async_widths", 1, 128, out, x)
    expected = x.copy()
    expected[384:].reshape(32, 4)[:, 2:] = 0
    np.testing.assert_array_equal(out, expected)
