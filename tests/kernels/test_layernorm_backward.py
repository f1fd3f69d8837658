"""layernorm-backward: the gradient of the normalised input, also where its terms cancel."""

from typing import Any

import harness
import numpy as np
import pytest
from numpy.typing import NDArray

from coppelius import model
from coppelius.reference import bounds
from coppelius.reference.layernorm import layernorm_backward, layernorm_forward

W = model.WIDTH
F32 = NDArray[np.float32]
# what rounding to f32 leaves of the smallest numbers, as a magnitude of which the bound is a share
DENORMAL = 4 * 2.0**-149 / bounds.SUM


def given(dy: F32, x: F32, gain: F32 | None = None) -> dict[str, Any]:
    """The inputs, with the statistics that the forward pass leaves."""
    forward = layernorm_forward(x, np.ones(W), np.zeros(W), model.LAYERNORM_EPSILON)
    mean, rstd = forward.mean.astype(np.float32), forward.rstd.astype(np.float32)
    return {"dy": dy, "x": x, "mean": mean, "rstd": rstd, "gain": np.ones(W, np.float32) if gain is None else gain}


def plain(rows: int, seed: int) -> F32:
    return np.random.default_rng(seed).standard_normal((rows, W)).astype(np.float32)


def largest_term(dy: F32, x: F32, mean: F32, rstd: F32, gain: F32) -> NDArray[np.float64]:
    """A row's largest of rstd g, rstd mean(g) and rstd n mean(g n)."""
    wide = [np.asarray(a, np.float64) for a in (dy, x, mean[:, None], rstd[:, None], gain)]
    g, n = wide[0] * wide[4], (wide[1] - wide[2]) * wide[3]
    along = np.abs(n) * np.abs(g * n).mean(axis=1, keepdims=True)
    return np.asarray((np.maximum(np.abs(g), along) * wide[3]).max(axis=1))


@pytest.mark.parametrize("half", harness.HALVES)
@pytest.mark.parametrize("rows", [1, 3, model.SEQUENCE])
def test_plain_rows_against_their_own_largest_gradient(rows: int, half: str) -> None:
    inputs = given(plain(rows, 1), plain(rows, 2), plain(1, 3)[0])
    out = harness.run("layernorm-backward", half, dx=(rows, W), **inputs)["dx"]
    measured = bounds.row_reduction(out, layernorm_backward(**inputs))
    assert measured, measured


def test_hostile_rows_against_their_largest_term() -> None:
    dy, x = plain(16, 4), plain(16, 5)
    random = np.random.default_rng(6)
    dy[0] = 0.3
    dy[1] = 0.0
    dy[2] *= 10.0 ** random.uniform(-12, 12, W)
    dy[3] += 1e4
    dy[4] = 1e30
    dy[5] = 1e-42
    dy[6] = plain(1, 7) * 1e-41
    x[7] = 2.5
    x[8] *= 10.0 ** random.uniform(-8, 8, W)
    x[9] += 1e6
    x[10, 0] = 1e6
    x[11] = 1e-42
    x[12] *= 1e-20
    dy[13] = x[13]
    x[14] = np.linspace(-4, 4, W)
    dy[15], x[15] = np.where(np.arange(W) % 2, 1e15, -1e15), np.where(np.arange(W) % 2, 1e15, -1e15)
    inputs = given(dy, x)
    out = harness.run("layernorm-backward", "bf16", dx=(16, W), **inputs)["dx"]
    measured = bounds.row_reduction(out, layernorm_backward(**inputs), np.maximum(largest_term(**inputs), DENORMAL))
    assert measured, measured


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["dy", "x", "mean", "rstd"])
def test_what_is_no_number_spoils_its_own_row_as_in_the_reference(where: str, bad: float) -> None:
    inputs = given(plain(5, 8), plain(5, 9))
    inputs[where].reshape(5, -1)[2, -1] = bad
    out = harness.run("layernorm-backward", "bf16", dx=(5, W), **inputs)["dx"]
    with np.errstate(invalid="ignore"):
        reference = layernorm_backward(**inputs)
    assert not np.isfinite(reference[2]).any()
    measured = bounds.row_reduction(out, reference, np.where(np.isfinite(reference), np.abs(reference), 0).max(axis=1))
    assert measured, measured


def test_blocks_in_any_order_give_the_same_bits() -> None:
    inputs = given(plain(64, 10), plain(64, 11))
    one, other = (
        harness.run("layernorm-backward", "f16", blocks=blocks, dx=(64, W), **inputs)["dx"]
        for blocks in (None, list(reversed(range(64))))
    )
    assert bounds.exact_bits(one, other)


def test_no_rows_launch_nothing() -> None:
    inputs = given(plain(0, 1), plain(0, 2))
    assert harness.report("layernorm-backward", "bf16", dx=(0, W), **inputs)[1] is None
