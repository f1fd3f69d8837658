"""Elementwise kernels by nvcc, each compiled four ways, against numpy: one element or vector a thread, guarded by n."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from coppelius.emulator.faults import Fault

N = 1000  # no multiple of a warp
GRID, BLOCK = 8, 128
Run = Callable[..., object]


def _f32(random: np.random.Generator, n: int = N) -> np.ndarray:
    return random.normal(size=n).astype(np.float32)


def _ints(random: np.random.Generator, dtype: type, n: int = N) -> np.ndarray:
    info = np.iinfo(dtype)
    return random.integers(info.min, info.max, n, dtype=dtype, endpoint=True)


def test_saxpy_is_one_rounding(run: Run, random: np.random.Generator) -> None:
    x, y, a = _f32(random), _f32(random), np.float32(1.37)
    expected = (a.astype(np.float64) * x + y).astype(np.float32)  # exact in double but for ties of ties
    run("elementwise", "saxpy", GRID, BLOCK, y, x, a, np.int32(N))
    np.testing.assert_array_equal(y, expected)


def test_clamp_walks_a_grid_stride(run: Run, random: np.random.Generator) -> None:
    x, out = _f32(random), np.zeros(N, np.float32)
    run("elementwise", "clamp_f32", 2, BLOCK, out, x, np.float32(-0.5), np.float32(0.5), np.int32(N))
    np.testing.assert_array_equal(out, np.clip(x, np.float32(-0.5), np.float32(0.5)))


def test_leaky_relu(run: Run, random: np.random.Generator) -> None:
    x, out, slope = _f32(random), np.zeros(N, np.float32), np.float32(0.01)
    run("elementwise", "leaky_relu_f32", GRID, BLOCK, out, x, slope, np.int32(N))
    np.testing.assert_array_equal(out, np.where(x > 0, x, slope * x))


def test_gelu_within_the_functions_error(run: Run, random: np.random.Generator) -> None:
    x, out = _f32(random) * 3, np.zeros(N, np.float32)
    run("elementwise", "gelu_f32", GRID, BLOCK, out, x, np.int32(N))
    v = x.astype(np.float64)
    expected = 0.5 * v * (1 + np.tanh(0.7978845608 * (v + 0.044715 * v**3)))
    np.testing.assert_allclose(out, expected, rtol=2e-6, atol=1e-6)


def test_half_pairs(run: Run, random: np.random.Generator) -> None:
    x, a, b = (random.normal(size=2 * N).astype(np.float16) for _ in range(3))
    out = np.zeros(2 * N, np.float16)
    run("elementwise", "axpb_half2", GRID, BLOCK, out, x, a, b, np.int32(N))
    np.testing.assert_array_equal(out, (a.astype(np.float64) * x + b.astype(np.float64)).astype(np.float16))


def test_bfloat_pairs(run: Run, random: np.random.Generator) -> None:
    x, y = (_to_bf16(random.normal(size=2 * N)) for _ in range(2))
    out = np.zeros(2 * N, np.uint16)
    run("elementwise", "mul_add_bf162", GRID, BLOCK, out, x, y, np.int32(N))
    wide_x, wide_y = _from_bf16(x), _from_bf16(y)
    np.testing.assert_array_equal(out, _to_bf16(wide_x * wide_y + wide_x))


def test_double_fma(run: Run, random: np.random.Generator) -> None:
    x, y = (random.integers(-(1 << 20), 1 << 20, N).astype(np.float64) for _ in range(2))
    z, out = random.normal(size=N), np.zeros(N)
    run("elementwise", "mul_sub_f64", GRID, BLOCK, out, x, y, z, np.int32(N))
    np.testing.assert_array_equal(out, x * y - z)  # the product is exact


@pytest.mark.parametrize(
    ("kernel", "dtype", "formula"),
    [
        ("mix_s32", np.int32, lambda x, y: 3 * x - (y >> 2)),
        ("mix_u64", np.uint64, lambda x, y: x + (y << np.uint64(3))),
        ("add_saturate_u8", np.uint8, lambda x, y: np.minimum(x.astype(int) + y, 255).astype(np.uint8)),
        ("subtract_s16", np.int16, lambda x, y: x - y),
    ],
)
def test_integers(run: Run, random: np.random.Generator, kernel: str, dtype: type, formula: Callable) -> None:
    x, y, out = _ints(random, dtype), _ints(random, dtype), np.zeros(N, dtype)
    run("elementwise", kernel, GRID, BLOCK, out, x, y, np.int32(N))
    np.testing.assert_array_equal(out, formula(x, y))


@pytest.mark.parametrize("n", [1, 3, 255, 1023, 1024])
def test_vector_copy_of_any_length(run: Run, random: np.random.Generator, n: int) -> None:
    x, out = _f32(random, n), np.zeros(n, np.float32)
    run("elementwise", "copy_vector128", 2, BLOCK, out, x, np.int32(n))
    np.testing.assert_array_equal(out, x)


def test_vector_of_eight_halves(run: Run, random: np.random.Generator) -> None:
    x, out = random.normal(size=8 * N).astype(np.float16), np.zeros(8 * N, np.float16)
    run("elementwise", "double_vector_half8", GRID, BLOCK, out, x, np.int32(N))
    np.testing.assert_array_equal(out, x + x)


def test_pairs_of_doubles(run: Run, random: np.random.Generator) -> None:
    x, y, out = random.normal(size=2 * N), random.normal(size=2 * N), np.zeros(2 * N)
    run("elementwise", "add_vector_f64x2", GRID, BLOCK, out, x, y, np.int32(N))
    np.testing.assert_array_equal(out, x + y)


def test_gather(run: Run, random: np.random.Generator) -> None:
    x, index, out = _f32(random, 50), random.integers(0, 50, N, dtype=np.int32), np.zeros(N, np.float32)
    run("elementwise", "gather_f32", GRID, BLOCK, out, x, index, np.int32(N))
    np.testing.assert_array_equal(out, x[index])


def test_gather_outside_its_table_is_named(run: Run, random: np.random.Generator) -> None:
    x, index, out = _f32(random, 50), random.integers(0, 50, N, dtype=np.int32), np.zeros(N, np.float32)
    index[333] = 50
    with pytest.raises(Fault) as raised:
        run("elementwise", "gather_f32", GRID, BLOCK, out, x, index, np.int32(N))
    found = raised.value.finding
    assert (found.rule, found.block, found.thread, found.lanes) == ("memcheck", (2, 0, 0), (77, 0, 0), 1)
    assert "LD" in found.instruction
    assert "0 bytes past the end of buffer" in found.detail


def test_two_dimensions(run: Run, random: np.random.Generator) -> None:
    rows, columns = 13, 45
    x, bias, out = _f32(random, rows * columns), _f32(random, columns), np.zeros(rows * columns, np.float32)
    run("elementwise", "add_bias_2d", (3, 4), (16, 4), out, x, bias, np.int32(rows), np.int32(columns))
    np.testing.assert_array_equal(out.reshape(rows, columns), x.reshape(rows, columns) + bias)


def _to_bf16(values: np.ndarray) -> np.ndarray:
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def _from_bf16(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
