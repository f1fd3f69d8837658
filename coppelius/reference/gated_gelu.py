"""out = gelu(gate) * up with the tanh form of GELU, and both gradients.

gelu(x) = x (1 + tanh t) / 2 with t = sqrt(2/pi) (x + 0.044715 x^3).  (1 + tanh t) / 2 is the logistic
function of 2t, which keeps its relative precision where 1 + tanh cancels; large finite gates give the
limits.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coppelius.reference.half import Floats

_CUBIC = 0.044715
_SLOPE = np.sqrt(2.0 / np.pi)


class Backward(NamedTuple):
    """Both gradients, and the largest term that met in each element of dgate."""

    dgate: Floats
    dup: Floats
    dgate_terms: Floats


def _logistic(x: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return np.asarray(1.0 / (1.0 + np.exp(-x)))


def _inner(x: Floats) -> Floats:
    """2t."""
    return np.asarray(2.0 * _SLOPE * (x + _CUBIC * x**3))


def gelu(gate: NDArray[Any]) -> Floats:
    """gelu of each gate."""
    x = np.asarray(gate, np.float64)
    return x * _logistic(_inner(x))


def gated_gelu_forward(gate: NDArray[Any], up: NDArray[Any]) -> Floats:
    """out in float64."""
    return gelu(gate) * np.asarray(up, np.float64)


def gated_gelu_backward(dout: NDArray[Any], gate: NDArray[Any], up: NDArray[Any]) -> Backward:
    """dgate = dout up gelu'(gate), dup = dout gelu(gate)."""
    x, flow = np.asarray(gate, np.float64), np.asarray(dout, np.float64)
    through = flow * np.asarray(up, np.float64)
    s, rest = _logistic(_inner(x)), _logistic(-_inner(x))
    # derivative of the logistic is s (1 - s); where it underflows to 0 the slope is finite for f32 gates
    bend = x * s * rest * 2.0 * _SLOPE * (1.0 + 3.0 * _CUBIC * x**2)
    terms = np.abs(through) * np.maximum(s, np.abs(bend))
    return Backward(through * (s + bend), flow * gelu(gate), terms)
