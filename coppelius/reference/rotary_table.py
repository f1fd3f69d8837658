"""out[position, pair] = cos and sin of position * frequencies[pair], the frequencies as given in f32."""

import numpy as np
from numpy.typing import NDArray

from coppelius.reference.half import Floats

ERROR = 1e-6  # decided: the absolute error allowed for positions below 4096


def model_frequencies(pairs: int = 32) -> NDArray[np.float32]:
    """float32(10000^(-pair / pairs)), the model's frequencies."""
    return (10000.0 ** (-np.arange(pairs) / pairs)).astype(np.float32)


def rotary_table(frequencies: NDArray[np.float32], positions: int) -> Floats:
    """[positions, pairs, 2]; the angle is exact in float64 for positions below 2^29."""
    angles = np.arange(positions, dtype=np.float64)[:, None] * frequencies.astype(np.float64)
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1)
