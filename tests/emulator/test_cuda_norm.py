"""The shapes of the project's own images by nvcc, compiled four ways, against numpy in double."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Run = Callable[..., object]


def test_softmax_of_rows(run: Run, random: np.random.Generator) -> None:
    x, out = (random.normal(size=(5, 70)) * 4).astype(np.float32), np.zeros((5, 70), np.float32)
    run("norm", "softmax_rows_f32", 5, 32, out, x, np.int32(70))
    wide = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(out, wide / wide.sum(axis=1, keepdims=True), rtol=2e-6)


def test_layernorm_of_halves(run: Run, random: np.random.Generator) -> None:
    x, out = (random.normal(size=(4, 200)) * 3).astype(np.float16), np.zeros((4, 200), np.float16)
    gain, bias = (random.normal(size=200).astype(np.float32) for _ in range(2))
    run("norm", "layernorm_f16", 4, 64, out, x, gain, bias, np.float32(1e-5), np.int32(200))
    wide = x.astype(np.float64)
    centred = wide - wide.mean(axis=1, keepdims=True)
    expected = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5) * gain + bias
    np.testing.assert_allclose(out, expected, rtol=2**-10, atol=1e-5)


def test_root_mean_square_of_bfloats(run: Run, random: np.random.Generator) -> None:
    x, gain = (_bf16(random.normal(size=s)) for s in ((3, 96), (96,)))
    out = np.zeros((3, 96), np.uint16)
    run("norm", "rmsnorm_bf16", 3, 64, out, x, gain, np.float32(1e-5), np.int32(96))
    wide = _wide(x)
    expected = wide / np.sqrt((wide**2).mean(axis=1, keepdims=True) + 1e-5) * _wide(gain)
    np.testing.assert_allclose(_wide(out), expected, rtol=2**-7, atol=1e-6)


def test_rotary(run: Run, random: np.random.Generator) -> None:
    x, out = random.normal(size=(6, 40)).astype(np.float32), np.zeros((6, 40), np.float32)
    base = np.float32(np.log(10000.0))
    run("norm", "rotary_f32", 6, 32, out, x, np.int32(40), base)
    angle = np.arange(6)[:, None] * np.exp(-np.float64(base) * 2 * np.arange(20) / 40)
    a, b = x[:, ::2].astype(np.float64), x[:, 1::2].astype(np.float64)
    c, s = np.cos(angle), np.sin(angle)
    expected = np.stack([a * c - b * s, a * s + b * c], axis=2).reshape(6, 40)
    np.testing.assert_allclose(out, expected, atol=3e-6)


def test_cross_entropy(run: Run, random: np.random.Generator) -> None:
    x, labels = (random.normal(size=(4, 90)) * 3).astype(np.float32), random.integers(0, 90, 4).astype(np.int32)
    loss, gradient = np.zeros(4, np.float32), np.zeros((4, 90), np.float32)
    run("norm", "cross_entropy_f32", 4, 32, loss, gradient, x, labels, np.int32(90))
    wide = x.astype(np.float64)
    lse = np.log(np.exp(wide).sum(axis=1))
    np.testing.assert_allclose(loss, lse - wide[np.arange(4), labels], rtol=1e-5, atol=1e-5)
    expected = np.exp(wide - lse[:, None])
    expected[np.arange(4), labels] -= 1
    np.testing.assert_allclose(gradient, expected, atol=2e-6)


def test_adam(run: Run, random: np.random.Generator) -> None:
    n = 200
    w, m, g = (random.normal(size=n).astype(np.float32) for _ in range(3))
    v = random.uniform(0.1, 1, n).astype(np.float32)
    rate, b1, b2, eps, decay, c1, c2 = (np.float32(s) for s in (1e-3, 0.9, 0.99, 1e-8, 0.1, 2.0, 1.5))
    before = [x.astype(np.float64) for x in (w, m, v)]
    run("norm", "adam_f32", 2, 128, w, m, v, g, rate, b1, b2, eps, decay, c1, c2, np.int32(n))
    first = b1 * before[1] + (1 - b1) * g.astype(np.float64)
    second = b2 * before[2] + (1 - b2) * g.astype(np.float64) ** 2
    step = float(rate) * (first * c1) / (np.sqrt(second * c2) + eps)
    np.testing.assert_allclose(m, first, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(v, second, rtol=1e-6)
    np.testing.assert_allclose(w, before[0] * (1 - float(rate) * decay) - step, rtol=1e-6, atol=1e-7)


def test_weights_of_four_bits(run: Run, random: np.random.Generator) -> None:
    q, x = random.integers(0, 2**32, (3, 40), dtype=np.uint32), random.normal(size=320).astype(np.float16)
    scale, out = random.uniform(0.1, 1, 3).astype(np.float32), np.zeros(3, np.float32)
    run("norm", "dequant_gemv_s4", 3, 32, out, q, x, scale, np.int32(40))
    weights = (q[:, :, None] >> (4 * np.arange(8, dtype=np.uint32)) & 15).astype(np.int64).reshape(3, 320) - 8
    np.testing.assert_allclose(out, (weights @ x.astype(np.float64)) * scale, rtol=1e-5, atol=1e-4)


def test_embedding_writes_zeros_outside(run: Run, random: np.random.Generator) -> None:
    table, ids = random.integers(0, 2**32, (20, 12, 4), dtype=np.uint32), random.integers(-3, 25, 9).astype(np.int32)
    out = np.ones((9, 12, 4), np.uint32)
    run("norm", "embedding_f16", 9, 32, out, table, ids, np.int32(12), np.int32(20))
    inside = (ids >= 0) & (ids < 20)
    np.testing.assert_array_equal(out, np.where(inside[:, None, None], table[np.clip(ids, 0, 19)], 0))


def _bf16(x: np.ndarray) -> np.ndarray:
    return (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def _wide(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
