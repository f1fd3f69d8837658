"""out[i] = value: a 32-bit pattern, whatever it means."""

import numpy as np
from numpy.typing import NDArray


def fill(count: int, value: int) -> NDArray[np.uint32]:
    """The filled buffer."""
    return np.full(count, value, np.uint32)
