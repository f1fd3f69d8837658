"""Long arrays are worked through in blocks that stay in the cache.

A vectorised function makes a dozen temporaries. Beyond some 128 KiB each of them is fresh memory from the system,
and touching it costs several times the arithmetic (# measured: FFMA 60 M/s in one piece of 131,072
elements, 380 M/s in blocks of 16,384). So the public functions are wrapped here, once.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

BLOCK = 1 << 14  # elements; a float64 temporary is then 128 KiB

F = TypeVar("F", bound=Callable[..., Any])


def in_blocks(operands: int) -> Callable[[F], F]:
    """The first `operands` positional arguments broadcast together; the result, or each of a tuple, has
    their common shape. A dimensionless operand counts as one element."""

    def decorate(function: F) -> F:
        @wraps(function)
        def blocked(*args: Any, **options: Any) -> Any:
            arrays = [np.asarray(x) for x in args[:operands]]
            if max(x.size for x in arrays) <= BLOCK:
                shape = np.broadcast_shapes(*(x.shape for x in arrays))
                if int(np.prod(shape)) <= BLOCK:
                    return function(*args, **options)
            return _in_pieces(function, arrays, args[operands:], options)

        return blocked  # type: ignore[return-value]

    return decorate


def _in_pieces(function: Callable[..., Any], arrays: list[Any], rest: tuple[Any, ...], options: dict[str, Any]) -> Any:
    shape = np.broadcast_shapes(*(x.shape for x in arrays))
    # an operand of one element stays one; the others become flat
    flat = [x.reshape(-1) if x.size == 1 else np.broadcast_to(x, shape).reshape(-1) for x in arrays]
    size = int(np.prod(shape))
    results: list[Any] = []
    many = False
    for start in range(0, size, BLOCK):
        piece = slice(start, start + BLOCK)
        out = function(*(x if x.size == 1 else x[piece] for x in flat), *rest, **options)
        many = isinstance(out, tuple)
        parts = out if many else (out,)
        results = results or [np.empty(size, p.dtype) for p in parts]
        for whole, part in zip(results, parts, strict=True):
            whole[piece] = part
    results = [x.reshape(shape) for x in results]
    return tuple(results) if many else results[0]
