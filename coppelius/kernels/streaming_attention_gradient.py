"""What both gradient passes of streaming attention compute between their products.

    p = e^(scale s - lse), never above 1    g = p (dp - delta)

Scores so large that lse is coarser than their differences would make p anything; the true p is at most 1,
so the exponent is held there (NaN stays).

g goes into a product as halves, whose exponents in f16 hold neither a gradient of small losses nor one of
large values.  So each row of g is multiplied by a power of two that brings its largest number so far
just below 2^15, and the sums are rescaled where that number grows, as the forward pass does with exponents.  All
factors are exact; the last one is taken out where the sums are stored.
"""

from __future__ import annotations

from coppelius.builder.kernel import Kernel
from coppelius.isa.operands import PT, RZ, R
from coppelius.kernels.blocks import fold
from coppelius.kernels.streaming_attention import Sums, over_lanes

_BIAS, _FRACTION = 127, 23
_EXPONENT = 0x7F800000
_TOP = 14  # the exponent that a row's largest gradient is brought to
_LEAST = 15  # smallest biased exponent of a row's largest gradient, so that both powers are normal numbers
APART = 4  # f32 sums: a lane holds four neighbours


class Powers:
    """Rows g and g + 8: the power of two of the largest gradient so far, and what takes the scaling out."""

    def __init__(self, k: Kernel) -> None:
        self.k = k
        self.largest = [k.MOV(f"power{row}", _LEAST << _FRACTION) for row in range(2)]
        self.inverse = [k.MOV(f"inverse{row}", (_LEAST - _TOP) << _FRACTION) for row in range(2)]

    def take(self, sums: Sums) -> tuple[R, R]:
        """Gradients are scaled; returns how much the earlier sums shrink."""
        k = self.k
        values = [[s[2 * row + w] for s in sums for w in range(2)] for row in range(2)]
        tops = [
            fold(f"largest{row}", [self.largest[row], *values[row]], lambda n, a, b: k.FMNMX(n, abs(a), abs(b), ~PT))
            for row in range(2)
        ]
        over_lanes(k, "largest", tops, largest=True)
        factors = []
        for row in range(2):
            power = self.largest[row]
            k.LOP3_LUT(power, tops[row], _EXPONENT, RZ, 0xC0)
            scaling = k.IADD3(f"scaling{row}", -power, (2 * _BIAS + _TOP) << _FRACTION, RZ)
            factors.append(k.FMUL(f"factor{row}", scaling, self.inverse[row]))
            k.IADD3(self.inverse[row], power, -(_TOP << _FRACTION), RZ)
            for value in values[row]:
                k.FMUL(value, value, scaling)
        return factors[0], factors[1]

    def undo(self, scale: object) -> tuple[R, R]:
        """Factors a row for the stored sums: the scaling out, `scale` in."""
        first, second = (self.k.FMUL(f"undo{row}", self.inverse[row], scale) for row in range(2))
        return first, second


def probabilities(k: Kernel, sums: Sums, c: R, shifts: list[list[R]], top: R = RZ) -> None:
    """Scores become 2^(s c - shift), at most 2^top; `shifts[tile][word]`."""
    for s, shift in zip(sums, shifts, strict=True):
        for word in range(4):
            k.FFMA(s[word], s[word], c, -shift[word])
        for word in range(4):
            k.FMNMX_NAN(s[word], s[word], top, PT)
        for word in range(4):
            k.MUFU_EX2(s[word], s[word])


def gradients(k: Kernel, products: Sums, weights: Sums, deltas: list[list[R]]) -> None:
    """dp becomes p (dp - delta)."""
    for dp, p, delta in zip(products, weights, deltas, strict=True):
        for word in range(4):
            k.FADD(dp[word], dp[word], -delta[word])
        for word in range(4):
            k.FMUL(dp[word], dp[word], p[word])
