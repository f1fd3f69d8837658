"""Normalisation of rows to mean 0 and variance 1, then gain and bias.

The variance is the biased one, about the mean (two passes), with epsilon inside the root.  Written in
float64 from f32 inputs; nothing is rounded.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coppelius.reference.half import Floats


class Forward(NamedTuple):
    """Outputs of the forward pass; `terms` is the largest magnitude that meets in each element of `out`."""

    out: Floats
    mean: Floats
    rstd: Floats
    terms: Floats


class Parameters(NamedTuple):
    """Column sums over the rows, and the sums of magnitudes their bounds are relative to."""

    dgain: Floats
    dbias: Floats
    dgain_magnitude: Floats
    dbias_magnitude: Floats


def _wide(array: NDArray[Any]) -> Floats:
    return np.asarray(array, np.float64)


def layernorm_forward(x: NDArray[Any], gain: NDArray[Any], bias: NDArray[Any], epsilon: float) -> Forward:
    """out = (x - mean) rstd gain + bias, a row at a time."""
    x, gain, bias = _wide(x), _wide(gain), _wide(bias)
    mean = x.mean(axis=1)
    centred = x - mean[:, None]
    rstd = 1.0 / np.sqrt((centred**2).mean(axis=1) + np.float64(np.float32(epsilon)))
    scaled = centred * rstd[:, None] * gain
    # x and mean cancel before rstd and gain scale them
    met = np.maximum(np.abs(x), np.abs(mean)[:, None]) * rstd[:, None] * np.abs(gain)
    return Forward(scaled + bias, mean, rstd, np.maximum(met, np.abs(bias)))


def layernorm_backward(
    dy: NDArray[Any], x: NDArray[Any], mean: NDArray[Any], rstd: NDArray[Any], gain: NDArray[Any]
) -> Floats:
    """dx = rstd (g - mean(g) - n mean(g n)), where g = dy gain and n is the normalised input."""
    normalised = (_wide(x) - _wide(mean)[:, None]) * _wide(rstd)[:, None]
    g = _wide(dy) * _wide(gain)
    along = (g * normalised).mean(axis=1, keepdims=True)
    return np.asarray(_wide(rstd)[:, None] * (g - g.mean(axis=1, keepdims=True) - normalised * along))


def layernorm_parameters(dy: NDArray[Any], x: NDArray[Any], mean: NDArray[Any], rstd: NDArray[Any]) -> Parameters:
    """dgain = sum over rows of dy * normalised x; dbias = sum over rows of dy."""
    dy = _wide(dy)
    products = dy * (_wide(x) - _wide(mean)[:, None]) * _wide(rstd)[:, None]
    return Parameters(products.sum(0), dy.sum(0), np.abs(products).sum(0), np.abs(dy).sum(0))
