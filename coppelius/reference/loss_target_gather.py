"""correct[r] = logits[r, targets[r]], 0 for a target at or over the vocabulary."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def loss_target_gather(logits: NDArray[Any], targets: NDArray[np.uint32]) -> NDArray[Any]:
    """Each row's target logit, in the logits' own type: bits are moved, never rounded."""
    rows, vocabulary = logits.shape
    where = np.asarray(targets, np.int64)
    known = where < vocabulary
    out = np.zeros(rows, logits.dtype)
    out[known] = logits[np.flatnonzero(known), where[known]]
    return out
