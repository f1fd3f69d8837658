"""Tensor-core kernels by nvcc, compiled four ways: raw fragments in PTX's layout, matrix loads, pipelined products.

Small whole numbers make every order of summation exact, so that bits are compared.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

Run = Callable[..., object]
LANE = np.arange(32)
G, T = LANE // 4, LANE % 4


def _a16(a: np.ndarray) -> np.ndarray:
    """A of m16n8k16 or k8 in 16-bit elements -> uint32[32, registers]: rows g and g + 8, then columns + 8."""
    parts = []
    for column in range(0, a.shape[1], 8):
        for row in (0, 8):
            parts.append(np.stack([a[G + row, column + 2 * T + k] for k in (0, 1)], axis=1))
    return np.ascontiguousarray(np.stack(parts, axis=1)).view(np.uint32)[:, :, 0]


def _b16(b: np.ndarray) -> np.ndarray:
    """B (k x n) -> uint32[32, registers]."""
    parts = [np.stack([b[row + 2 * T + k, G] for k in (0, 1)], axis=1) for row in range(0, len(b), 8)]
    return np.ascontiguousarray(np.stack(parts, axis=1)).view(np.uint32)[:, :, 0]


def _c(c: np.ndarray) -> np.ndarray:
    """C or D -> [32, 4]: row g columns 2t and 2t + 1, then row g + 8."""
    return np.stack([c[G + row, 2 * T + k] for row in (0, 8) for k in (0, 1)], axis=1)


def _whole(random: np.random.Generator, *shape: int) -> np.ndarray:
    return random.integers(-8, 9, shape).astype(np.float32)


def _bf16(x: np.ndarray) -> np.ndarray:
    return (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


@pytest.mark.parametrize(
    ("kernel", "depth", "kind"),
    [
        ("mma_16816_f16_f32", 16, "f16"),
        ("mma_16816_bf16_f32", 16, "bf16"),
        ("mma_1688_f16_f32", 8, "f16"),
        ("mma_1688_bf16_f32", 8, "bf16"),
    ],
)
def test_halves_into_floats(run: Run, random: np.random.Generator, kernel: str, depth: int, kind: str) -> None:
    a, b, c = _whole(random, 16, depth), _whole(random, depth, 8), _whole(random, 16, 8)
    narrow = _bf16 if kind == "bf16" else lambda x: x.astype(np.float16)
    d = np.zeros((32, 4), np.float32)
    run("tensor", kernel, 1, 32, d, _a16(narrow(a)), _b16(narrow(b)), np.ascontiguousarray(_c(c)))
    np.testing.assert_array_equal(d, _c(a @ b + c))


@pytest.mark.parametrize(("kernel", "depth"), [("mma_16816_f16_f16", 16), ("mma_1688_f16_f16", 8)])
def test_halves_into_halves(run: Run, random: np.random.Generator, kernel: str, depth: int) -> None:
    a, b, c = _whole(random, 16, depth), _whole(random, depth, 8), _whole(random, 16, 8)
    half = np.ascontiguousarray(_c(c).astype(np.float16)).view(np.uint32)
    d = np.zeros((32, 2), np.uint32)
    run("tensor", kernel, 1, 32, d, _a16(a.astype(np.float16)), _b16(b.astype(np.float16)), half)
    np.testing.assert_array_equal(d.view(np.float16), _c(a @ b + c).astype(np.float16))


@pytest.mark.parametrize(("kernel", "depth"), [("mma_1688_tf32_f32", 8), ("mma_1684_tf32_f32", 4)])
def test_tf32(run: Run, random: np.random.Generator, kernel: str, depth: int) -> None:
    a, b, c = _whole(random, 16, depth), _whole(random, depth, 8), _whole(random, 16, 8)
    fa = np.stack([a[G + row, T + column] for column in range(0, depth, 4) for row in (0, 8)], axis=1)
    fb = np.stack([b[T + row, G] for row in range(0, depth, 4)], axis=1)
    d = np.zeros((32, 4), np.float32)
    run("tensor", kernel, 1, 32, d, *(np.ascontiguousarray(v) for v in (fa, fb, _c(c))))
    np.testing.assert_array_equal(d, _c(a @ b + c))


@pytest.mark.parametrize(
    ("kernel", "depth", "types", "saturate"),
    [
        ("mma_16832_s8", 32, (np.int8, np.int8), False),
        ("mma_16832_u8_saturate", 32, (np.uint8, np.uint8), True),
        ("mma_16816_s8u8", 16, (np.int8, np.uint8), False),
    ],
)
def test_bytes(
    run: Run, random: np.random.Generator, kernel: str, depth: int, types: tuple[type, type], saturate: bool
) -> None:
    a, b = (
        random.integers(np.iinfo(t).min, np.iinfo(t).max, s, dtype=t, endpoint=True)
        for t, s in zip(types, ((16, depth), (depth, 8)), strict=True)
    )
    c = random.integers(-(2**31), 2**31, (16, 8), dtype=np.int64)
    fa = [
        a[G + row][LANE[:, None], (column + 4 * T)[:, None] + np.arange(4)]
        for column in range(0, depth, 16)
        for row in (0, 8)
    ]
    fb = [b[(row + 4 * T)[:, None] + np.arange(4), G[:, None]] for row in range(0, depth, 16)]
    packed = [np.ascontiguousarray(np.stack(v, axis=1)).view(np.uint32)[:, :, 0] for v in (fa, fb)]
    d = np.zeros((32, 4), np.int32)
    run("tensor", kernel, 1, 32, d, *packed, np.ascontiguousarray(_c(c).astype(np.int32)))
    exact = a.astype(np.int64) @ b.astype(np.int64) + c
    expected = np.clip(exact, -(2**31), 2**31 - 1) if saturate else exact.astype(np.uint64).astype(np.uint32)
    np.testing.assert_array_equal(d.view(np.uint32), _c(expected).astype(np.uint64).astype(np.uint32))


def _packed(elements: np.ndarray, bits: int) -> np.ndarray:
    """Elements of the last axis, the first lowest -> uint32."""
    mask = (1 << bits) - 1
    words = [sum((int(v) & mask) << bits * k for k, v in enumerate(row)) for row in elements.reshape(-1, 32 // bits)]
    return np.array(words, np.uint32).reshape(elements.shape[:-1])


@pytest.mark.parametrize(("kernel", "depth", "low", "high"), [("mma_16864_s4", 64, -8, 8), ("mma_16832_u4", 32, 0, 16)])
def test_nibbles(run: Run, random: np.random.Generator, kernel: str, depth: int, low: int, high: int) -> None:
    a, b = random.integers(low, high, (16, depth)), random.integers(low, high, (depth, 8))
    c = random.integers(-999, 999, (16, 8))
    eight = np.arange(8)
    fa = [a[(G + row)[:, None], (k + 8 * T)[:, None] + eight] for k in range(0, depth, 32) for row in (0, 8)]
    fb = [b[(k + 8 * T)[:, None] + eight, G[:, None]] for k in range(0, depth, 32)]
    packed = [_packed(np.stack(v, axis=1), 4) for v in (fa, fb)]
    d = np.zeros((32, 4), np.int32)
    run("tensor", kernel, 1, 32, d, *packed, np.ascontiguousarray(_c(c).astype(np.int32)))
    np.testing.assert_array_equal(d, _c(a @ b + c))


def test_single_bits(run: Run, random: np.random.Generator) -> None:
    a, b = random.integers(0, 2, (16, 256)), random.integers(0, 2, (256, 8))
    c = random.integers(-999, 999, (16, 8))
    bits = np.arange(32)
    fa = [a[(G + row)[:, None], (k + 32 * T)[:, None] + bits] for k in (0, 128) for row in (0, 8)]
    fb = [b[(k + 32 * T)[:, None] + bits, G[:, None]] for k in (0, 128)]
    packed = [_packed(np.stack(v, axis=1), 1) for v in (fa, fb)]
    d = np.zeros((32, 4), np.int32)
    run("tensor", "mma_168256_b1_xor", 1, 32, d, *packed, np.ascontiguousarray(_c(c).astype(np.int32)))
    differing = (a[:, :, None] != b[None]).sum(axis=1)
    np.testing.assert_array_equal(d, _c(differing + c))


def test_doubles(run: Run, random: np.random.Generator) -> None:
    a, b, c = random.normal(size=(8, 4)), random.normal(size=(4, 8)), random.normal(size=(8, 8))
    fc = np.stack([c[G, 2 * T + k] for k in (0, 1)], axis=1)
    d = np.zeros((32, 2))
    run("tensor", "mma_884_f64", 1, 32, d, a[G, T].copy(), b[T, G].copy(), np.ascontiguousarray(fc))
    expected = a @ b + c
    np.testing.assert_allclose(d, np.stack([expected[G, 2 * T + k] for k in (0, 1)], axis=1), rtol=1e-15, atol=1e-15)


def test_transpose_across_the_warp(run: Run, random: np.random.Generator) -> None:
    x, out = random.integers(0, 2**32, 32, dtype=np.uint32), np.zeros(32, np.uint32)
    run("tensor", "move_matrix", 1, 32, out, x)
    cells = x.view(np.uint16).reshape(8, 8)
    np.testing.assert_array_equal(out.view(np.uint16).reshape(8, 8), cells.T)


def test_matrix_loads_of_every_shape(run: Run, random: np.random.Generator) -> None:
    x, out = random.integers(0, 65536, (32, 16)).astype(np.uint16), np.zeros((32, 14), np.uint32)
    run("tensor", "load_matrix_shapes", 1, 32, out, x)

    def plain(matrix: int, column: int = 0) -> np.ndarray:
        tile = x[8 * matrix : 8 * matrix + 8, column : column + 8]
        return np.ascontiguousarray(np.stack([tile[G, 2 * T + k] for k in (0, 1)], axis=1)).view(np.uint32)[:, 0]

    def turned(matrix: int, column: int = 0) -> np.ndarray:
        tile = x[8 * matrix : 8 * matrix + 8, column : column + 8].T
        return np.ascontiguousarray(np.stack([tile[G, 2 * T + k] for k in (0, 1)], axis=1)).view(np.uint32)[:, 0]

    expected = [plain(0), plain(0), plain(1), *(plain(m) for m in range(4)), turned(0), turned(0, 8), turned(1, 8)]
    expected += [turned(m) for m in range(4)]
    np.testing.assert_array_equal(out, np.stack(expected, axis=1))


def test_tiles_by_the_vendors_library(run: Run, random: np.random.Generator) -> None:
    a, b = (random.integers(-8, 9, (3, 16, 16)).astype(np.float16) for _ in range(2))
    c = np.zeros((3, 16, 16), np.float32)
    run("tensor", "wmma_f16_f32", 3, 32, c, a, b)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_pipelined_product(run: Run, random: np.random.Generator, kind: str) -> None:
    """Asynchronous copies in three stages, matrix loads, 64 x 64 tiles."""
    m, n, k = 64, 128, 160
    a, b = _whole(random, m, k), _whole(random, k, n)
    narrow = _bf16 if kind == "bf16" else lambda x: x.astype(np.float16)
    c = np.zeros((m, n), np.float32)
    run(
        "pipeline", f"gemm_{kind}_pipelined", (n // 64, m // 64), 128, c, narrow(a), narrow(b), np.int32(n), np.int32(k)
    )
    np.testing.assert_array_equal(c, a @ b)


def test_attention(run: Run, random: np.random.Generator) -> None:
    heads, queries, keys = 2, 32, 48
    q, k, v = (random.normal(size=(heads, length, 64)).astype(np.float16) for length in (queries, keys, keys))
    out = np.zeros((heads, queries, 64), np.float16)
    run("pipeline", "attention_f16", (queries // 16, heads), 32, out, q, k, v, np.int32(queries), np.int32(keys))
    scores = q.astype(np.float64) @ k.astype(np.float64).transpose(0, 2, 1) / 8
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    expected = weights / weights.sum(axis=2, keepdims=True) @ v.astype(np.float64)
    np.testing.assert_allclose(out, expected, atol=2e-3)
