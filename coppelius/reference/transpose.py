"""out[g, c, r] = source[g, r, c] for each group's matrix of halves."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def transpose(source: NDArray[Any]) -> NDArray[Any]:
    """The transposed matrices, in the source's own type: bits are moved, never rounded."""
    return np.ascontiguousarray(np.swapaxes(source, -1, -2))
