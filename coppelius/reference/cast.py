"""Between f32 and half: down rounds to nearest even, up is exact; denormals, infinities and NaN are kept."""

import numpy as np
from numpy.typing import NDArray

from coppelius.reference import half as halves


def cast_down(source: NDArray[np.float32], half: str) -> halves.Bits:
    """The halves' bit patterns."""
    return halves.to_bits(source, half)


def cast_up(source: halves.Bits, half: str) -> NDArray[np.float32]:
    """The f32 values, each exactly its half."""
    return halves.from_bits(source, half).astype(np.float32)
