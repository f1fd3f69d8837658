"""A machine word is 128 bits, kept as a row of `uint64[n, 2]`: column 0 is bits 63..0, column 1 bits 127..64.

In memory each half is little-endian, the low half first.  A bit position counts from bit 0 of the
low half.  Many words are one array: no pass over a program touches one Python object a bit.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from coppelius.isa.refusal import Refusal

Words = npt.NDArray[np.uint64]
Column = npt.NDArray[np.int64]

WORD_BYTES = 16


def from_bytes(data: bytes | bytearray | memoryview) -> Words:
    """Bytes (16 a word) -> `uint64[n, 2]`, a copy.  Refuses a length that is not whole words."""
    if len(data) % WORD_BYTES:
        raise Refusal(f"{len(data)} bytes are not whole 16-byte instructions")
    return np.frombuffer(data, dtype="<u8").reshape(-1, 2).astype(np.uint64)


def to_bytes(words: Words) -> bytes:
    """`uint64[n, 2]` -> bytes, 16 a word."""
    return np.ascontiguousarray(words, dtype="<u8").tobytes()


def extract(words: Words, low: int, width: int) -> Column:
    """Bits [low+width-1 : low] of each word as `int64[n]`, unsigned; width at most 63, may cross bit 64."""
    mask = np.uint64((1 << width) - 1)
    if low >= 64:
        piece = (words[:, 1] >> np.uint64(low - 64)) & mask
    elif low + width <= 64:
        piece = (words[:, 0] >> np.uint64(low)) & mask
    else:
        piece = ((words[:, 0] >> np.uint64(low)) | (words[:, 1] << np.uint64(64 - low))) & mask
    return piece.astype(np.int64)


def deposit(words: Words, low: int, width: int, values: Column) -> None:
    """Or the low `width` bits of `values` into bits [low+width-1 : low] of each word, in place."""
    piece = values.astype(np.uint64) & np.uint64((1 << width) - 1)
    if low >= 64:
        words[:, 1] |= piece << np.uint64(low - 64)
        return
    words[:, 0] |= piece << np.uint64(low)
    if low + width > 64:
        words[:, 1] |= piece >> np.uint64(64 - low)


def halves(bits: int) -> tuple[int, int]:
    """A 128-bit integer as (low, high)."""
    return bits & 0xFFFF_FFFF_FFFF_FFFF, bits >> 64


def text(word: npt.NDArray[np.uint64]) -> str:
    """One word as `HI64_LO64`, sixteen hexadecimal digits each."""
    return f"{int(word[1]):016x}_{int(word[0]):016x}"
