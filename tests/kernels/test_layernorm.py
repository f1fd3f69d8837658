"""layernorm: rows of the model's width, and rows that cancel: constant, of wide range, of a large mean."""

import harness
import numpy as np
import pytest
from numpy.typing import NDArray

from coppelius import model
from coppelius.reference import bounds
from coppelius.reference.layernorm import layernorm_forward

W = model.WIDTH
EPSILON = model.LAYERNORM_EPSILON


def plain(rows: int, seed: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((rows, W)).astype(np.float32)


def hostile() -> NDArray[np.float32]:
    random = np.random.default_rng(2)
    x = random.standard_normal((16, W)).astype(np.float32)
    x[0] = 3.7
    x[1] = 0.0
    x[2] = -1e30
    x[3] += 1e3
    x[4] += 1e6
    x[5] = x[5] * 1e-3 - 5e4
    x[6] *= 1e-20
    x[7] = 1e-42
    x[8] *= 10.0 ** random.uniform(-10, 10, W)
    x[9, 0] = 1e6
    x[10] = np.where(np.arange(W) % 2, 1e15, -1e15)
    x[11] *= 1e-6
    x[12] += 1e7
    x[13] = -0.0
    x[14] = np.linspace(-4, 4, W)
    x[15] = 1.0
    x[15, 511] = np.float32(1.0000001)
    return x


@pytest.mark.parametrize("half", harness.HALVES)
@pytest.mark.parametrize("x", [plain(model.SEQUENCE, 1), hostile(), plain(1, 3)], ids=["plain", "hostile", "one"])
def test_the_three_outputs(x: NDArray[np.float32], half: str) -> None:
    random = np.random.default_rng(4)
    gain, bias = ((random.standard_normal(W) + at).astype(np.float32) for at in (1, 0))
    given = {"x": x, "gain": gain, "bias": bias, "epsilon": EPSILON}
    rows = len(x)
    out = harness.run("layernorm-forward", half, out=(rows, W), mean=rows, rstd=rows, **given)
    reference = layernorm_forward(x, gain, bias, EPSILON)
    largest = np.abs(x).max(axis=1)
    for measured in (
        bounds.row_reduction(out["mean"], reference.mean, np.maximum(largest, 1e-44)),
        bounds.row_reduction(out["rstd"], reference.rstd),
        bounds.half_output(out["out"], reference.out, half, reference.terms),
    ):
        assert measured, measured


def test_what_is_no_number_spoils_its_own_row_only() -> None:
    x = plain(3, 5)
    x[1, 100] = np.nan
    ones = np.ones(W, np.float32)
    given = {"x": x, "gain": ones, "bias": ones, "epsilon": EPSILON}
    out = harness.run("layernorm-forward", "bf16", out=(3, W), mean=3, rstd=3, **given)
    assert np.isnan(out["mean"]).tolist() == [False, True, False]
    assert np.isnan(out["rstd"]).tolist() == [False, True, False]


def test_a_small_epsilon_alone_keeps_its_precision() -> None:
    x = np.zeros((1, W), np.float32)
    for epsilon in (1e-38, 1e-33, 1e-12):
        given = {"x": x, "gain": np.ones(W), "bias": np.zeros(W), "epsilon": epsilon}
        out = harness.run("layernorm-forward", "f16", out=(1, W), mean=1, rstd=1, **given)
        assert bounds.row_reduction(out["rstd"], np.array([1 / np.sqrt(np.float64(np.float32(epsilon)))]))


def test_no_rows_launch_nothing() -> None:
    given = {"x": np.zeros((0, W)), "gain": np.ones(W), "bias": np.ones(W), "epsilon": EPSILON}
    assert harness.report("layernorm-forward", "bf16", out=(0, W), mean=0, rstd=0, **given)[1] is None
