"""C = A B, or A B + R, each operand read as it is stored.

A as rows ("r") is m x k, as columns ("c") k x m; B as rows is n x k, as columns k x n.  `layouts` is the
two letters of a product's name, A's first.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from coppelius.reference.half import Floats


def product(a: NDArray[Any], b: NDArray[Any], layouts: str, r: NDArray[Any] | None = None) -> Floats:
    """C [m, n] in float64 from the widened halves."""
    if len(layouts) != 2 or set(layouts) - {"r", "c"}:
        raise ValueError(f"layouts {layouts!r}: two letters, r (rows) or c (columns), A's first")
    left = np.asarray(a, np.float64) if layouts[0] == "r" else np.asarray(a, np.float64).T
    right = np.asarray(b, np.float64).T if layouts[1] == "r" else np.asarray(b, np.float64)
    c = left @ right
    return np.asarray(c if r is None else c + np.asarray(r, np.float64))
