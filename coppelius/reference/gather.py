"""out[r] = table[tokens[r]], a row of zeros for a token at or over the vocabulary."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def gather(table: NDArray[Any], tokens: NDArray[np.uint32], vocabulary: int) -> NDArray[Any]:
    """The gathered rows, in the table's own type: bits are moved, never rounded."""
    known = np.asarray(tokens, np.int64) < vocabulary
    out = np.zeros((len(tokens), table.shape[1]), table.dtype)
    out[known] = table[np.asarray(tokens, np.int64)[known]]
    return out
