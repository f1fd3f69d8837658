"""Normal numbers from Philox4x32-10 and Box-Muller.

Elements 4i..4i+3 come from counter (i, 0, stream, 0) under key (seed low, seed high).  A word x means
u = (x + 0.5) 2^-32, never 0 nor 1.  Words (0, 1) give elements 4i and 4i+1, words (2, 3) the next two:
r = sqrt(-2 ln u0), then r cos(2 pi u1) and r sin(2 pi u1), times std.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from coppelius.reference.half import Floats

Words = NDArray[np.uint32]
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)  # published: Random123, Philox4x32
_WEYL = (0x9E3779B9, 0xBB67AE85)  # published: Random123, the key's step each round
_LOW = np.uint64(0xFFFFFFFF)


class Normal(NamedTuple):
    """Values in float64 and the absolute error each may have."""

    values: Floats
    bound: Floats


def philox(counter: ArrayLike, key: tuple[int, int], rounds: int = 10) -> Words:
    """Philox4x32: four words for each row of four counter words."""
    words = [column.astype(np.uint64) for column in np.asarray(counter, np.uint32).T]
    keys = [np.uint64(k) for k in key]
    for _ in range(rounds):
        first = words[0] * np.uint64(_MULTIPLIERS[0])
        second = words[2] * np.uint64(_MULTIPLIERS[1])
        words = [
            (second >> np.uint64(32)) ^ words[1] ^ keys[0],
            second & _LOW,
            (first >> np.uint64(32)) ^ words[3] ^ keys[1],
            first & _LOW,
        ]
        keys = [(k + np.uint64(step)) & _LOW for k, step in zip(keys, _WEYL, strict=True)]
    return np.stack(words, axis=-1).astype(np.uint32)


def uniform(words: Words) -> Floats:
    """(x + 0.5) 2^-32, exactly."""
    return np.asarray((words.astype(np.float64) + 0.5) * 2.0**-32, np.float64)


def random_normal(count: int, std: float, seed: int, stream: int) -> Normal:
    """The first `count` elements."""
    blocks = -(-count // 4)
    counter = np.zeros((blocks, 4), np.uint32)
    counter[:, 0] = np.arange(blocks, dtype=np.uint32)
    counter[:, 2] = stream
    u = uniform(philox(counter, (seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF)))
    radius, angle = np.sqrt(-2.0 * np.log(u[:, 0::2])), 2.0 * np.pi * u[:, 1::2]
    wide = np.float64(np.float32(std))
    values = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1) * wide
    bound = np.abs(wide) * (2.0**-20 * radius + 2.0**-23 / radius)
    return Normal(values.reshape(-1)[:count], np.repeat(bound.reshape(-1), 2)[:count])
