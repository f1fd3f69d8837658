"""dtable[token] = ((dtable[token] + r1) + r2) + ..., rows in position order, each sum rounded to f32.

Rows of tokens not named are untouched; a token at or over the vocabulary is skipped.
"""

import numpy as np
from numpy.typing import NDArray


def embedding_scatter(
    dtable: NDArray[np.float32], drows: NDArray[np.float32], tokens: NDArray[np.uint32]
) -> NDArray[np.float32]:
    """The table's gradient after the rows were added, bit for bit."""
    out = np.array(dtable, np.float32)
    for row, token in zip(drows, tokens, strict=True):
        if token < len(out):
            out[token] += row
    return out
