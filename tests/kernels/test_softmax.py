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
    x = random.standard_normal((S, S)) * {"plain": 8.0, "wide": 1.0, "level": 0.0, "denormal": 1e-41}[kind]
    if kind == "wide":
        x *= 10.0 ** random.uniform(-3, 4, (S, 1))
        x[::5] += 1e5
        x[7, :4] = -np.inf
    return x.astype(np.float32)[None]


def gradients(kind: str, half: str) -> tuple[NDArray[np.float32], NDArray[np.uint16]]:
    """dprobs and probs; of all kinds but two the probabilities that the forward pass leaves."""
    random = np.random.default_rng(3)
    dprobs = random.standard_normal((1, S, S))
    wide = softmax_forward(scores("plain"), model.ATTENTION_SCALE)
    if kind == "wide":
        dprobs *= 10.0 ** random.uniform(-4, 4, (1, S, 1))
    if kind == "constant":
        dprobs[:], wide = 0.75, softmax_forward(scores("level"), model.ATTENTION_SCALE)
    if kind == "denormal":
        dprobs *= 1e-41
    probs = halves.to_bits(wide, half)
    if kind == "denormal halves":
        probs = random.integers(0, 0x80, (1, S, S), np.uint16)  # of f16 they are all denormal, of bf16 most
    return dprobs.astype(np.float32), probs


@pytest.mark.parametrize("half", harness.HALVES)
@pytest.mark.parametrize("kind", ["plain", "wide", "level", "denormal"])
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
@pytest.mark.parametrize("kind", ["plain", "wide", "constant", "denormal", "denormal halves"])
def test_backward(kind: str, half: str) -> None:
    dprobs, probs = gradients(kind, half)
    reference = softmax_backward(dprobs, halves.from_bits(probs, half), model.ATTENTION_SCALE)
    unwritten = np.where(KEPT, probs, harness.hostile_half(S * S, 4).reshape(S, S))
    given = {"dprobs": spoiled(dprobs, 5), "probs": unwritten, "scale": model.ATTENTION_SCALE}
    out = harness.run("softmax-backward", half, dscores=(1, S, S), **given)["dscores"]
    measured = bounds.half_output(out, reference.dscores, half, reference.terms)
    assert measured, measured
    assert not out[0][~KEPT].any()


# what a masked element holds: a quiet and a signalling NaN, both infinities, the largest number
MASKED = (0x7FC00000, 0xFF800001, 0x7F800000, 0xFF800000, 0x7F7FFFFF)


@pytest.mark.parametrize("half", harness.HALVES)
@pytest.mark.parametrize("bits", MASKED, ids=hex)
def test_masked_elements_change_no_bit(bits: int, half: str) -> None:
    """Rows 0 to 7 and the last: in quads cut by the diagonal and in quads right of it."""
    bad, rows = np.uint32(bits).view(np.float32), [*range(8), 510, S - 1]
    dprobs, probs = gradients("plain", half)
    zero_bits = np.where(KEPT, probs, 0).astype(np.uint16)
    bad_bits = np.where(KEPT, probs, halves.to_bits(bad, half)).astype(np.uint16)

    def both(masked: np.float32, masked_probs: NDArray[np.uint16]) -> list[NDArray[np.uint16]]:
        x = np.where(KEPT, scores("plain"), masked).astype(np.float32)
        flow = np.where(KEPT, dprobs, masked).astype(np.float32)
        forward = harness.run("softmax-forward", half, blocks=rows, probs=(1, S, S), scores=x, scale=0.125)
        given = {"dprobs": flow, "probs": masked_probs, "scale": 0.125}
        backward = harness.run("softmax-backward", half, blocks=rows, dscores=(1, S, S), **given)
        return [forward["probs"][0, rows], backward["dscores"][0, rows]]

    for clean, spoilt in zip(both(np.float32(0), zero_bits), both(bad, bad_bits), strict=True):
        assert bounds.exact_bits(spoilt, clean)


@pytest.mark.parametrize("half", harness.HALVES)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_gradient_that_is_no_number_spoils_its_own_row_only(bad: float, half: str) -> None:
    dprobs, probs = gradients("plain", half)
    dprobs[0, 100, 50] = bad
    given = {"dprobs": dprobs, "probs": probs, "scale": 0.125}
    out = harness.run("softmax-backward", half, dscores=(1, S, S), **given)["dscores"]
    spoilt = halves.is_nan(out[0], half).any(axis=1)
    assert np.flatnonzero(spoilt).tolist() == [100]
    assert not out[0][~KEPT].any()
    rest = np.arange(S) != 100
    reference = softmax_backward(dprobs, halves.from_bits(probs, half), 0.125)
    measured = bounds.half_output(out[:, rest], reference.dscores[:, rest], half, reference.terms[:, rest])
    assert measured, measured


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
