"""out = a * factor in f32, one rounding, denormals kept."""

import numpy as np
from numpy.typing import NDArray

from coppelius.reference.half import Floats


def scale(a: NDArray[np.float32], factor: float) -> Floats:
    """The product in float64 (exact: two 24-bit significands), to be compared after rounding to f32."""
    with np.errstate(invalid="ignore"):  # infinity times zero is NaN
        return np.asarray(a.astype(np.float64) * np.float64(np.float32(factor)))


def scale_exactly(a: NDArray[np.float32], factor: float) -> NDArray[np.float32]:
    """The product as IEEE f32 arithmetic gives it: the kernel's own bits, NaN payloads apart."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return np.asarray(a, np.float32) * np.float32(factor)
