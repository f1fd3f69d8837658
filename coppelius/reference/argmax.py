"""out[r] = the lowest index of the row's largest value; NaN never wins; a row of NaN gives 0."""

import numpy as np
from numpy.typing import NDArray


def argmax(logits: NDArray[np.float32]) -> NDArray[np.uint32]:
    """One index a row.  -0 and +0 are equal, as in any comparison."""
    largest = np.fmax.reduce(logits, axis=1, keepdims=True)  # ignores NaN unless all are
    return np.asarray((logits == largest).argmax(axis=1), np.uint32)  # a row of NaN equals nothing: 0
