"""The dimensions of the model that the images serve: a small causal transformer, trained on one card.

Catalogue rows, kernels' options and references take their sizes from here or repeat them as literals
that a test compares with these.
"""

from collections.abc import Iterator
from math import prod
from typing import NamedTuple

SEQUENCE = 1024  # S
WIDTH = 512  # W, also the width of the residual stream
HEADS = 8  # H
HEAD_WIDTH = 64  # D; HEADS * HEAD_WIDTH == WIDTH
QUERY_KEY_VALUE = 3 * WIDTH  # columns q | k | v, head-major inside each
FEED_FORWARD = 1408  # F
VOCABULARY = 12288  # V, the rows of the tied input and output table
LAYERS = 8

LAYERNORM_EPSILON = 1e-5
ATTENTION_SCALE = 0.125  # 1 / sqrt(HEAD_WIDTH)


class Parameter(NamedTuple):
    """One matrix (out x in) or vector of the parameter bank, and the bank's element that it begins at."""

    name: str
    shape: tuple[int, ...]
    first: int

    @property
    def elements(self) -> int:
        return prod(self.shape)


def _shapes() -> Iterator[tuple[str, tuple[int, ...]]]:
    """The bank in order: the tied table, the layers, the final norm; gain before bias; products have no biases."""
    yield "table", (VOCABULARY, WIDTH)
    for layer in range(LAYERS):
        yield f"layer{layer}.qkv", (QUERY_KEY_VALUE, WIDTH)  # rows q | k | v
        yield f"layer{layer}.out", (WIDTH, WIDTH)
        yield f"layer{layer}.gate", (FEED_FORWARD, WIDTH)
        yield f"layer{layer}.up", (FEED_FORWARD, WIDTH)
        yield f"layer{layer}.down", (WIDTH, FEED_FORWARD)
        for norm in ("attention", "feed_forward"):
            yield f"layer{layer}.{norm}_norm.gain", (WIDTH,)
            yield f"layer{layer}.{norm}_norm.bias", (WIDTH,)
    yield "norm.gain", (WIDTH,)
    yield "norm.bias", (WIDTH,)


def _bank() -> Iterator[Parameter]:
    first = 0
    for name, shape in _shapes():
        yield Parameter(name, shape, first)
        first += prod(shape)


PARAMETER_TABLE = tuple(_bank())
PARAMETERS = PARAMETER_TABLE[-1].first + PARAMETER_TABLE[-1].elements  # 31,998,976: E, what adamw walks

HALF_FORMATS = ("bf16", "f16")
