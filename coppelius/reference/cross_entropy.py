"""lse = max + ln sum exp; loss = lse - logit[target]; the gradient is (softmax - onehot) scale.

A target at or over the vocabulary is ignored: loss 0, gradient row 0 (its lse is still written).  A row of minus
infinity has lse ln 0, minus infinity too, and no loss (NaN).
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coppelius.reference.half import Floats


class Loss(NamedTuple):
    """Each row's loss and lse, and the largest magnitude in the row."""

    loss: Floats
    lse: Floats
    magnitude: Floats


class Backward(NamedTuple):
    """The gradient of the logits and the largest term that met in each element."""

    dlogits: Floats
    terms: Floats


def cross_entropy(logits: NDArray[Any], targets: NDArray[np.uint32]) -> Loss:
    """Both statistics of each row."""
    wide = np.asarray(logits, np.float64)
    rows, vocabulary = wide.shape
    top = wide.max(axis=1)
    level = np.where(np.isneginf(top), 0.0, top)
    with np.errstate(divide="ignore", invalid="ignore"):
        lse = level + np.log(np.exp(wide - level[:, None]).sum(axis=1))
    known = np.asarray(targets) < vocabulary
    target = wide[np.arange(rows), np.where(known, targets, 0)]
    with np.errstate(invalid="ignore"):
        loss = np.where(known, lse - target, 0.0)
    return Loss(loss, lse, np.maximum(np.abs(wide).max(axis=1), np.abs(lse)))


def cross_entropy_backward(
    logits: NDArray[Any], lse: NDArray[Any], targets: NDArray[np.uint32], scale: float
) -> Backward:
    """dlogits [rows, V] in float64."""
    probs = np.exp(np.asarray(logits, np.float64) - np.asarray(lse, np.float64)[:, None])
    known = np.asarray(targets) < probs.shape[1]
    hot = np.zeros_like(probs)
    hot[np.flatnonzero(known), np.asarray(targets)[known]] = 1.0
    factor = np.where(known, np.float64(np.float32(scale)), 0.0)[:, None]
    return Backward((probs - hot) * factor, np.maximum(probs, hot) * np.abs(factor))
