"""Causal attention of each head: out = softmax(Q K^T scale) V, and its gradients.

Row s of Q attends rows 0..s of K and V.  lse is the natural logarithm of the row's sum of exponentials;
delta = sum(dout * out).  With P = exp(scale Q K^T - lse) and dS = P (dout V^T - delta):
dQ = scale dS K, dK = scale dS^T Q, dV = P^T dout.  All of it in float64 from the widened halves.

The transposed operands that the kernels also take (kt, qt, doutt) are the same numbers and are left out.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coppelius.reference.half import Floats
from coppelius.reference.softmax import causal

Matrices = NDArray[Any]  # [heads, S, depth]


class Forward(NamedTuple):
    """Outputs of the forward pass."""

    out: Floats
    lse: Floats


class Query(NamedTuple):
    """Outputs of the query pass."""

    dq: Floats
    delta: Floats


class Key(NamedTuple):
    """Outputs of the key pass."""

    dk: Floats
    dv: Floats


def _wide(array: NDArray[Any]) -> Floats:
    return np.asarray(array, np.float64)


def _transposed(array: NDArray[Any]) -> Floats:
    return np.swapaxes(_wide(array), -1, -2)


def _logits(q: Matrices, k: Matrices, scale: float) -> Floats:
    kept = causal(q.shape[-2], k.shape[-2])
    return np.where(kept, _wide(q) @ _transposed(k) * np.float64(np.float32(scale)), -np.inf)


def attention_forward(q: Matrices, k: Matrices, v: Matrices, scale: float) -> Forward:
    """out [heads, S, depth] and lse [heads, S]."""
    logits = _logits(q, k, scale)
    top = logits.max(axis=-1, keepdims=True)
    weights = np.exp(logits - top)
    total = weights.sum(axis=-1, keepdims=True)
    return Forward(weights / total @ _wide(v), (top + np.log(total))[..., 0])


def _score_gradient(
    q: Matrices, k: Matrices, v: Matrices, dout: Matrices, lse: NDArray[Any], delta: NDArray[Any], scale: float
) -> tuple[Floats, Floats]:
    """P and dS."""
    p = np.exp(_logits(q, k, scale) - _wide(lse)[..., None])
    return p, p * (_wide(dout) @ _transposed(v) - _wide(delta)[..., None])


def attention_query(
    q: Matrices, k: Matrices, v: Matrices, out: Matrices, dout: Matrices, lse: NDArray[Any], scale: float
) -> Query:
    """dq and delta."""
    delta = (_wide(dout) * _wide(out)).sum(axis=-1)
    _, gradient = _score_gradient(q, k, v, dout, lse, delta, scale)
    return Query(gradient @ _wide(k) * np.float64(np.float32(scale)), delta)


def attention_key(
    q: Matrices, k: Matrices, v: Matrices, dout: Matrices, lse: NDArray[Any], delta: NDArray[Any], scale: float
) -> Key:
    """dk and dv."""
    p, gradient = _score_gradient(q, k, v, dout, lse, delta, scale)
    return Key(_transposed(gradient) @ _wide(q) * np.float64(np.float32(scale)), _transposed(p) @ _wide(dout))
