"""MUFU gives approximations of eight functions; here each is the correctly rounded value.

The machine's tables are not published, so a card may differ from this module, by at most BOUNDS. Subnormal
inputs and results become zeros of their sign, TANH and the .F16 variants excepted (# published: ptxas scales
around every function but TANH, SIN and COS when subnormals matter; SIN and COS follow the rest, # assumed).
SIN and COS take revolutions, x / 2 pi. RCP64H and RSQ64H take and give the high word of a double, whose low word
counts as zero, subnormals flushed. Special values: published (PTX tables).

Values are computed in float64 and rounded to f32, so a result within 2**-29 ulp of a tie may round the other
way; the high words are rounded to nearest.
"""

from collections.abc import Callable

import numpy as np

from coppelius.emulator.numerics.blocks import in_blocks
from coppelius.emulator.numerics.half import widen
from coppelius.emulator.numerics.rounding import F16, F32, F64, Array, Rounding, as_bits, canonical, flush, narrow

FUNCTIONS = ("COS", "SIN", "EX2", "LG2", "RCP", "RSQ", "RCP64H", "RSQ64H", "SQRT", "TANH")  # by encoding

# the most by which a card's result may differ from ours: (kind, bound) (# published: PTX ISA, CUDA guide)
BOUNDS = {
    "COS": ("absolute", 2.0**-20.5),  # within [-1, 1] revolutions
    "SIN": ("absolute", 2.0**-20.5),
    "EX2": ("relative", 2.0**-22),
    "LG2": ("absolute within 0.5..2, else relative", 2.0**-22),
    "RCP": ("relative", 2.0**-23),
    "RSQ": ("relative", 2.0**-22.9),
    "SQRT": ("relative", 2.0**-23),
    "TANH": ("relative", 2.0**-11),
    "RCP64H": ("relative", 2.0**-20),  # assumed: the width of the high word's fraction
    "RSQ64H": ("relative", 2.0**-20),  # assumed
    "EX2.F16": ("relative", 2.0**-9.9),
    "TANH.F16": ("absolute", 2.0**-10.987),
}


@in_blocks(1)
def mufu(bits: Array, function: str) -> Array:
    """f32 bits, or for the 64H functions the high word of an f64."""
    bits = as_bits(bits, np.uint32)
    if function.endswith("64H"):
        return _high_word(bits, function)
    kept = bits if function == "TANH" else flush(bits, F32)
    with np.errstate(all="ignore"):
        value = _FUNCTIONS[function](kept.view(np.float32).astype(np.float64))
        result = canonical(narrow(value, F32, Rounding.RN), F32)
    return result if function == "TANH" else flush(result, F32)


@in_blocks(1)
def mufu_f16(bits: Array, function: str) -> Array:
    """The .F16 variants: f16 to f16, subnormals kept (# published: PTX, for EX2 and TANH)."""
    with np.errstate(all="ignore"):
        value = _FUNCTIONS[function](widen(bits, F16).astype(np.float64))
        return canonical(narrow(value, F16, Rounding.RN), F16)


def _high_word(bits: Array, function: str) -> Array:
    operand = flush(bits.astype(np.uint64) << np.uint64(32), F64).view(np.float64)
    with np.errstate(all="ignore"):
        value = 1 / operand if function == "RCP64H" else 1 / np.sqrt(operand)
    wide = flush(value.view(np.uint64), F64)
    nearest = (wide + np.uint64(1 << 31)) >> np.uint64(32)
    nan = value != value
    nearest[nan] = 0x7FFFFFFF  # assumed: the high word of the machine's own NaN
    return nearest.astype(np.uint32)


def _turn(x: Array, quarter: int) -> Array:
    """sin(2 pi x + quarter * pi / 2), exact at the multiples of a quarter turn."""
    fraction = x - np.rint(x)
    eighths = np.rint(fraction * 4)
    angle = (fraction - eighths / 4) * (2 * np.pi)
    k = (np.nan_to_num(eighths).astype(np.int64) + quarter) % 4
    value = np.where(k % 2 == 0, np.sin(angle), np.cos(angle))
    result: Array = np.where(k >= 2, -value, value)
    return result


def _sine(x: Array) -> Array:
    value = _turn(x, 0)
    # a whole or half turn keeps the sign of the angle (# assumed)
    return np.where(value == 0, np.copysign(0.0, x), value)


_FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "COS": lambda x: _turn(x, 1),
    "SIN": _sine,
    "EX2": np.exp2,
    "LG2": np.log2,
    "RCP": np.reciprocal,
    "RSQ": lambda x: np.reciprocal(np.sqrt(x)),
    "SQRT": np.sqrt,
    "TANH": np.tanh,
}
