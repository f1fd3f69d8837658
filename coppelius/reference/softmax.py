"""Causal softmax of a group's scores: row s attends columns 0..s.

The scale is inside; the row's maximum is subtracted; masked entries are written as zero, also where the row is
NaN, and have no effect whatever they hold.  Backward: dS = P (dP - sum(dP P)) scale.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coppelius.reference.half import Floats


class Backward(NamedTuple):
    """The gradient of the scores and the largest term that met in each element."""

    dscores: Floats
    terms: Floats


def causal(rows: int, columns: int) -> NDArray[np.bool_]:
    """Which entries are not masked."""
    return np.tri(rows, columns, dtype=np.bool_)


def softmax_forward(scores: NDArray[Any], scale: float) -> Floats:
    """probs [G, S, S] in float64."""
    kept = causal(*scores.shape[-2:])
    scaled = np.where(kept, np.asarray(scores, np.float64) * np.float64(np.float32(scale)), -np.inf)
    with np.errstate(invalid="ignore"):
        weights = np.exp(scaled - scaled.max(axis=-1, keepdims=True))
        return np.where(kept, weights / weights.sum(axis=-1, keepdims=True), 0.0)


def softmax_backward(dprobs: NDArray[Any], probs: NDArray[Any], scale: float) -> Backward:
    """dscores [G, S, S] in float64, from the widened halves of probs."""
    kept = causal(*probs.shape[-2:])
    p = np.where(kept, np.asarray(probs, np.float64), 0.0)
    dp = np.where(kept, np.asarray(dprobs, np.float64), 0.0)
    with np.errstate(invalid="ignore"):
        along = (dp * p).sum(axis=-1, keepdims=True)
        wide = np.float64(np.float32(scale))
        terms = p * np.maximum(np.abs(dp), np.abs(dp * p).max(axis=-1, keepdims=True)) * np.abs(wide)
        return Backward(np.where(kept, p * (dp - along) * wide, 0.0), terms)
