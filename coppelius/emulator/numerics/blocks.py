"""Long arrays are worked through in blocks that stay in the cache.

A vectorised function makes a dozen temporaries. Beyond some 128 KiB each of them is fresh memory from the system,
and touching it costs several times the arithmetic (# measured: FFMA 60 M/s in one piece of 131,072
elements, several times that in blocks). So the public functions are wrapped here, once.
"""

import math
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

BLOCK = 1 << 13  # elements; a float64 temporary is then 64 KiB

F = TypeVar("F", bound=Callable[..., Any])


def in_blocks(operands: int) -> Callable[[F], F]:
    """The first `operands` positional arguments broadcast together; the result, or each of a tuple, has
    their common shape. Arrays among the options broadcast along. A dimensionless operand is one element."""

    def decorate(function: F) -> F:
        @wraps(function)
        def blocked(*args: Any, **options: Any) -> Any:
            lanes = [x for x in options.values() if isinstance(x, np.ndarray)]
            shape = _common_shape((*args[:operands], *lanes))
            if math.prod(shape) <= BLOCK:
                return function(*args, **options)
            arrays = [np.asarray(x) for x in args[:operands]]
            return _in_pieces(function, arrays, shape, args[operands:], options)

        return blocked  # type: ignore[return-value]

    return decorate


def _common_shape(operands: tuple[Any, ...]) -> tuple[int, ...]:
    """numpy.broadcast_shapes, quick where the operands are of one shape or single numbers."""
    shapes = {x.shape for x in operands if isinstance(x, np.ndarray) and x.size != 1}
    if len(shapes) < 2 and all(isinstance(x, np.ndarray | np.generic | int) for x in operands):
        shape: tuple[int, ...] = shapes.pop() if shapes else (1,)
        return shape
    return np.broadcast_shapes(*(np.shape(x) for x in operands))


def _in_pieces(
    function: Callable[..., Any],
    arrays: list[Any],
    shape: tuple[int, ...],
    rest: tuple[Any, ...],
    options: dict[str, Any],
) -> Any:
    # an operand of one element stays one; the others become flat
    flat = [x.reshape(-1) if x.size == 1 else np.broadcast_to(x, shape).reshape(-1) for x in arrays]
    lanes = {
        k: np.broadcast_to(v, shape).reshape(-1) for k, v in options.items() if isinstance(v, np.ndarray) and v.size > 1
    }
    size = math.prod(shape)
    results: list[Any] = []
    many = False
    for start in range(0, size, BLOCK):
        piece = slice(start, start + BLOCK)
        now = {k: v[piece] if k in lanes else v for k, v in (options | lanes).items()}
        out = function(*(x if x.size == 1 else x[piece] for x in flat), *rest, **now)
        many = isinstance(out, tuple)
        parts = out if many else (out,)
        results = results or [np.empty(size, p.dtype) for p in parts]
        for whole, part in zip(results, parts, strict=True):
            whole[piece] = part
    results = [x.reshape(shape) for x in results]
    return tuple(results) if many else results[0]
