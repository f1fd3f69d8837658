"""Between tokens' rows and heads' matrices, with the rotary turn of queries and keys.

qkv's columns are q | k | v, `width` each, head-major inside: head h at `depth` h.  Rope's pairs are
adjacent elements (2i, 2i+1) of a head; the inverse turns by the negative angle.  Outputs are float64,
not yet rounded to half; the moves (value_transpose and the like) are exact before that rounding.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coppelius.reference.half import Floats


class Turned(NamedTuple):
    """A rotation's result and the largest term that met in each element."""

    values: Floats
    terms: Floats


def _wide(array: NDArray[Any]) -> Floats:
    return np.asarray(array, np.float64)


def token_to_head(tokens: NDArray[Any], heads: int) -> NDArray[Any]:
    """[S, heads * depth] -> [heads, S, depth], in the source's own type."""
    rows, width = tokens.shape
    return np.ascontiguousarray(tokens.reshape(rows, heads, width // heads).transpose(1, 0, 2))


def head_to_token(heads: NDArray[Any]) -> NDArray[Any]:
    """[heads, S, depth] -> [S, heads * depth], in the source's own type."""
    count, rows, depth = heads.shape
    return np.ascontiguousarray(heads.transpose(1, 0, 2)).reshape(rows, count * depth)


def value_transpose(qkv: NDArray[Any], heads: int) -> NDArray[Any]:
    """The v columns as [heads, depth, S], in the source's own type."""
    width = qkv.shape[1] // 3
    return np.ascontiguousarray(token_to_head(qkv[:, 2 * width :], heads).transpose(0, 2, 1))


def turn(matrices: NDArray[Any], table: NDArray[Any], inverse: bool = False) -> Turned:
    """Rotates the pairs of [heads, S, depth] by the table's angle of each position."""
    even, odd = _wide(matrices)[..., 0::2], _wide(matrices)[..., 1::2]
    cosine, sine = _wide(table)[..., 0], _wide(table)[..., 1] * (-1.0 if inverse else 1.0)
    values = np.stack([even * cosine - odd * sine, even * sine + odd * cosine], axis=-1)
    first = np.maximum(np.abs(even * cosine), np.abs(odd * sine))
    second = np.maximum(np.abs(even * sine), np.abs(odd * cosine))
    shape = matrices.shape
    return Turned(values.reshape(shape), np.stack([first, second], axis=-1).reshape(shape))


def qk_rope(qkv: NDArray[Any], table: NDArray[Any], heads: int) -> tuple[Turned, Turned]:
    """q and k as [heads, S, depth], turned."""
    width = qkv.shape[1] // 3
    q, k = (token_to_head(qkv[:, at * width : (at + 1) * width], heads) for at in (0, 1))
    return turn(q, table), turn(k, table)


def inverse_rope_qkv(dq: NDArray[Any], dk: NDArray[Any], dv: NDArray[Any], table: NDArray[Any]) -> Turned:
    """dqkv [S, 3 * width]: dq and dk turned back, dv as it is."""
    turned = [turn(dq, table, inverse=True), turn(dk, table, inverse=True), Turned(_wide(dv), np.abs(_wide(dv)))]
    values, terms = (np.concatenate([head_to_token(t[at]) for t in turned], axis=1) for at in (0, 1))
    return Turned(values, terms)
