"""The dimensions of the model that the images serve: a small causal transformer, trained on one card.

Catalogue rows, kernels' options and references take their sizes from here or repeat them as literals
that a test compares with these.
"""

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

# The parameter bank, in order: tied table; per layer Wqkv, Wo, Wgate, Wup, Wdown and two norms of gain
# and bias; the final norm.  Products have no biases.
_LAYER_PARAMETERS = WIDTH * (QUERY_KEY_VALUE + WIDTH + 3 * FEED_FORWARD) + 4 * WIDTH
PARAMETERS = VOCABULARY * WIDTH + LAYERS * _LAYER_PARAMETERS + 2 * WIDTH

HALF_FORMATS = ("bf16", "f16")
