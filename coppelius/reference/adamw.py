"""AdamW with decoupled decay, state in f32 and a half copy of the stored parameter.

g' = g gradient_scale; m = beta1 m + (1 - beta1) g'; v = beta2 v + (1 - beta2) g'^2;
p = p - rate (m correction1 / (sqrt(v correction2) + epsilon) + decay p_old), the corrections given as
1 / (1 - beta^t).  Scalars are f32; everything else is float64.  The half copy is the half of the p that
the kernel stored, so it is compared with that and not with this reference.
"""

from dataclasses import astuple, dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coppelius.reference.half import Floats


@dataclass(frozen=True)
class Scalars:
    """The kernel's scalars, in its order."""

    rate: float
    beta1: float
    beta2: float
    epsilon: float
    decay: float
    correction1: float
    correction2: float
    gradient_scale: float


class State(NamedTuple):
    """The new state, and the largest term that met in each element of p and of m."""

    p: Floats
    m: Floats
    v: Floats
    p_terms: Floats
    m_terms: Floats


def adamw(
    p: NDArray[np.float32],
    m: NDArray[np.float32],
    v: NDArray[np.float32],
    g: NDArray[np.float32],
    scalars: Scalars,
) -> State:
    """One step."""
    rate, beta1, beta2, epsilon, decay, correction1, correction2, gradient_scale = (
        np.float64(np.float32(scalar)) for scalar in astuple(scalars)
    )
    old, first, second = (np.asarray(a, np.float64) for a in (p, m, v))
    gradient = np.asarray(g, np.float64) * gradient_scale
    kept, fresh = beta1 * first, (1 - beta1) * gradient
    first = kept + fresh
    second = beta2 * second + (1 - beta2) * gradient**2
    step = rate * first * correction1 / (np.sqrt(second * correction2) + epsilon)
    shrink = rate * decay * old
    new = old - (step + shrink)
    p_terms = np.maximum.reduce([np.abs(old), np.abs(step), np.abs(shrink)])
    return State(new, first, second, p_terms, np.maximum(np.abs(kept), np.abs(fresh)))
