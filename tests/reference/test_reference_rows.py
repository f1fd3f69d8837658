"""Row reductions: hand cases, and gradients against central differences in float64."""

from collections.abc import Callable

import numpy as np
import pytest

from coppelius.reference.cross_entropy import cross_entropy, cross_entropy_backward
from coppelius.reference.layernorm import layernorm_backward, layernorm_forward, layernorm_parameters
from coppelius.reference.softmax import softmax_backward, softmax_forward

RANDOM = np.random.default_rng(1)


def slope(function: Callable[[np.ndarray], float], at: np.ndarray, step: float = 1e-5) -> np.ndarray:
    """The gradient of a scalar function by central differences, element by element."""
    out = np.zeros_like(at)
    for index in np.ndindex(at.shape):
        moved = at.copy()
        moved[index] += step
        above = function(moved)
        moved[index] -= 2 * step
        out[index] = (above - function(moved)) / (2 * step)
    return out


def test_layernorm_by_hand() -> None:
    x = np.array([[1.0, 3.0], [5.0, 5.0]])
    made = layernorm_forward(x, np.array([2.0, 1.0]), np.array([0.5, 0.0]), 3.0)
    assert made.mean.tolist() == [2.0, 5.0]
    assert made.rstd.tolist() == [0.5, 1 / np.sqrt(3.0)]  # biased variance 1, epsilon inside the root
    assert made.out.tolist() == [[-0.5, 0.5], [0.5, 0.0]]
    assert made.terms[1].tolist() == [5.0 / np.sqrt(3.0) * 2, 5.0 / np.sqrt(3.0)]


def test_layernorm_gradients_are_slopes() -> None:
    x, dy = RANDOM.normal(size=(3, 5)), RANDOM.normal(size=(3, 5))
    gain, bias = RANDOM.normal(size=5), RANDOM.normal(size=5)
    made = layernorm_forward(x, gain, bias, 1e-5)
    dx = layernorm_backward(dy, x, made.mean, made.rstd, gain)
    sums = layernorm_parameters(dy, x, made.mean, made.rstd)
    assert np.allclose(dx, slope(lambda v: (layernorm_forward(v, gain, bias, 1e-5).out * dy).sum(), x), atol=1e-7)
    assert np.allclose(sums.dgain, slope(lambda v: (layernorm_forward(x, v, bias, 1e-5).out * dy).sum(), gain))
    assert np.allclose(sums.dbias, slope(lambda v: (layernorm_forward(x, gain, v, 1e-5).out * dy).sum(), bias))
    assert np.allclose(sums.dbias_magnitude, np.abs(dy).sum(0))
    assert np.all(sums.dgain_magnitude >= np.abs(sums.dgain))


def test_softmax_is_causal_and_ignores_what_is_masked() -> None:
    scores = np.array([[[0.0, np.nan, np.inf], [np.log(3.0), 0.0, np.nan], [1.0, 1.0, 1.0]]])
    probs = softmax_forward(scores, 1.0)
    assert np.allclose(probs, [[[1, 0, 0], [0.75, 0.25, 0], [1 / 3, 1 / 3, 1 / 3]]])
    assert np.allclose(softmax_forward(2 * scores, 0.5)[0, 1, :2], [0.75, 0.25])
    assert np.isfinite(softmax_forward(np.full((1, 3, 3), 3e38), 1.0)).all()
    poisoned = np.where(np.tri(3, dtype=bool), 1.0, np.nan)[None]
    assert np.isfinite(softmax_backward(poisoned, np.where(np.tri(3, dtype=bool), probs, np.nan), 1.0).dscores).all()


def test_a_nan_stays_left_of_the_diagonal() -> None:
    scores = np.zeros((1, 3, 3))
    scores[0, 1, 0] = np.nan
    probs = softmax_forward(scores, 1.0)[0]
    assert np.isnan(probs[1, :2]).all()
    assert probs[1, 2] == 0
    assert np.isfinite(probs[[0, 2]]).all()
    made = softmax_backward(scores, np.full((1, 3, 3), 0.5), 1.0).dscores[0]
    assert np.isnan(made[1, :2]).all()
    assert made[1, 2] == 0


def test_softmax_gradient_is_the_slope() -> None:
    scores, dprobs = RANDOM.normal(size=(2, 4, 4)), RANDOM.normal(size=(2, 4, 4))
    made = softmax_backward(dprobs, softmax_forward(scores, 0.25), 0.25)
    expected = slope(lambda v: float((softmax_forward(v, 0.25) * dprobs).sum()), scores)
    assert np.allclose(made.dscores, expected, atol=1e-9)
    assert np.all(made.terms + 1e-12 >= np.abs(made.dscores) / 2)


def test_cross_entropy_by_hand() -> None:
    logits = np.array([[0.0, np.log(3.0)], [1000.0, 0.0], [0.0, 0.0]])
    made = cross_entropy(logits, np.array([1, 1, 2], np.uint32))
    assert made.lse == pytest.approx([np.log(4.0), 1000.0, np.log(2.0)])
    assert made.loss == pytest.approx([np.log(4.0 / 3.0), 1000.0, 0.0])


def test_a_row_of_minus_infinity_has_its_lse_and_no_loss() -> None:
    made = cross_entropy(np.full((2, 4), -np.inf), np.array([1, 4], np.uint32))
    assert (made.lse == -np.inf).all()
    assert np.isnan(made.loss[0])
    assert made.loss[1] == 0


def test_cross_entropy_gradient_is_the_slope() -> None:
    logits, targets = RANDOM.normal(size=(3, 6)), np.array([5, 6, 0], np.uint32)
    made = cross_entropy_backward(logits, cross_entropy(logits, targets).lse, targets, 0.5)
    expected = slope(lambda v: 0.5 * float(cross_entropy(v, targets).loss.sum()), logits)
    assert np.allclose(made.dlogits, expected, atol=1e-9)
    assert not made.dlogits[1].any()
    assert made.terms[0, 5] == 0.5  # the one hot
    assert made.terms[0, 0] == made.dlogits[0, 0]
