"""out = a + b in f32, one rounding, denormals kept."""

import numpy as np
from numpy.typing import NDArray

from coppelius.reference.half import Floats


def add(a: NDArray[np.float32], b: NDArray[np.float32]) -> Floats:
    """The sum in float64, to be compared after rounding to f32."""
    with np.errstate(invalid="ignore"):  # opposite infinities meet in NaN
        return np.asarray(a.astype(np.float64) + b.astype(np.float64))


def add_exactly(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.float32]:
    """The sum as IEEE f32 arithmetic gives it: the kernel's own bits, NaN payloads apart."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(a, np.float32) + np.asarray(b, np.float32)
