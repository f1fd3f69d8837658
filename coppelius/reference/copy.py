"""out[i] = source[i]: 32-bit patterns, so that a NaN's payload survives."""

import numpy as np
from numpy.typing import NDArray


def copy(source: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """The copied buffer."""
    return np.array(source, np.uint32)
