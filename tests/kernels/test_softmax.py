"""softmax: causal rows at the model's sequence; what is masked has no effect and is written as zero."""

import harness
import numpy as np
import pytest
from numpy.typing import NDArray

from coppelius import model
from coppelius.reference import bounds
from coppelius.reference import half as halves
from coppelius.reference.softmax import causal, softmax_backward, softmax_forward

S = model.SEQUENCE
KEPT = causal(S, S)


def spoiled(values: NDArray[np.float32], seed: int) -> NDArray[np.float32]:
    """The same with hostile values right of the diagonal."""
    return np.where(KEPT, values, harness.hostile_f32(S * S, seed).reshape(S, S))


def scores(kind: str) -> NDArray[np.float32]:
    random = np.random.default_rng(1)
    x = random.standard_normal((S, S)) * {"plain": 8.0, "wide": 1.0, "level": 0.0}[kind]
    if kind == "wide":
        x *= 10.0 ** random.uniform(-3, 4, (S, 1))
        x[::5] += 1e5
        x[7, :4] = -np.inf
    return x.astype(np.float32)[None]


@pytest.mark.parametrize("half", harness.HALVES)
@pytest.mark.parametrize("kind", ["plain", "wide", "level"])
def test_forward(kind: str, half: str) -> None:
    x = scores(kind)
    given = {"scores": spoiled(x, 2), "scale": model.ATTENTION_SCALE}
    out = harness.run("softmax-forward", half, probs=(1, S, S), **given)["probs"]
    measured = bounds.half_output(out, softmax_forward(x, model.ATTENTION_SCALE), half)
    assert measured, measured
    assert not out[0][~KEPT].any()


@pytest.mark.parametrize("scale", [-0.5, 0.0, 2.0])
def test_any_scale(scale: float) -> None:
    x = scores("plain")
    out = harness.run("softmax-forward", "bf16", probs=(1, S, S), scores=x, scale=scale)["probs"]
    measured = bounds.half_output(out, softmax_forward(x, scale), "bf16")
    assert measured, measured


@pytest.mark.parametrize("half", harness.HALVES)
def test_backward(half: str) -> None:
    random = np.random.default_rng(3)
    probs = halves.to_bits(softmax_forward(scores("plain"), model.ATTENTION_SCALE), half)
    dprobs = (random.standard_normal((1, S, S)) * 10.0 ** random.uniform(-4, 4, (1, S, 1))).astype(np.float32)
    reference = softmax_backward(dprobs, halves.from_bits(probs, half), model.ATTENTION_SCALE)
    unwritten = np.where(KEPT, probs, harness.hostile_half(S * S, 4).reshape(S, S))
    given = {"dprobs": spoiled(dprobs, 5), "probs": unwritten, "scale": model.ATTENTION_SCALE}
    out = harness.run("softmax-backward", half, dscores=(1, S, S), **given)["dscores"]
    measured = bounds.half_output(out, reference.dscores, half, reference.terms)
    assert measured, measured
    assert not out[0][~KEPT].any()


def test_what_is_no_number_spoils_its_own_row_only() -> None:
    x = scores("plain")
    x[0, 100, 50] = np.nan
    x[0, 200, 60] = np.inf
    out = harness.run("softmax-forward", "f16", probs=(1, S, S), scores=x, scale=0.125)["probs"]
    spoiled_rows = halves.is_nan(out[0], "f16").any(axis=1)
    assert np.flatnonzero(spoiled_rows).tolist() == [100, 200]
    assert not out[0][~KEPT].any()
    measured = bounds.half_output(out, softmax_forward(x, 0.125), "f16")
    assert measured, measured


def test_several_groups() -> None:
    x = np.concatenate([scores("plain"), scores("level")])
    out = harness.run("softmax-forward", "bf16", probs=(2, S, S), scores=x, scale=0.125)["probs"]
    assert bounds.half_output(out, softmax_forward(x, 0.125), "bf16")
