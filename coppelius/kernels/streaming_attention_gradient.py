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

from functools import partial

from coppelius.builder.kernel import Kernel
from coppelius.isa.operands import PT, RZ, R
from coppelius.kernels.streaming_attention import Emit, Sums, largest, over_lanes

_BIAS, _FRACTION = 127, 23
_EXPONENT = 0x7F800000
_TOP = 14  # the exponent that a row's largest gradient is brought to
_LEAST = 15  # smallest biased exponent of a row's largest gradient, so that both powers are normal numbers
APART = 4  # f32 sums: a lane holds four neighbours


class Powers:
    """Rows g and g + 8: the power of two of the largest gradient so far, and what takes the scaling out."""

    def __init__(self, k: Kernel) -> None:
        self.k = k
        self.power = [k.MOV(f"power{row}", _LEAST << _FRACTION) for row in range(2)]
        self.inverse = [k.MOV(f"inverse{row}", (_LEAST - _TOP) << _FRACTION) for row in range(2)]

    def take(self, sums: Sums) -> tuple[list[R], list[Emit]]:
        """How much the earlier sums shrink; and what finds that and scales the gradients."""
        k = self.k
        tops, emits = largest(k, self.power, sums, magnitude=True)
        emits += over_lanes(k, tops, largest=True)
        factors = [k.register(f"factor{row}") for row in range(2)]
        for row, (power, inverse, scaling) in enumerate(zip(self.power, self.inverse, tops, strict=True)):
            emits += [
                partial(k.LOP3_LUT, power, tops[row], _EXPONENT, RZ, 0xC0),
                partial(k.IADD3, scaling, -power, (2 * _BIAS + _TOP) << _FRACTION, RZ),
                partial(k.FMUL, factors[row], scaling, inverse),
                partial(k.IADD3, inverse, power, -(_TOP << _FRACTION), RZ),
            ]
        emits += [partial(k.FMUL, s[word], s[word], tops[word // 2]) for s in sums for word in range(4)]
        return factors, emits

    def undo(self, scale: object) -> tuple[R, R]:
        """Factors a row for the stored sums: the scaling out, `scale` in."""
        first, second = (self.k.FMUL(f"undo{row}", self.inverse[row], scale) for row in range(2))
        return first, second


def probabilities(k: Kernel, sums: Sums, c: R, shifts: list[list[R]], top: R = RZ) -> list[Emit]:
    """Scores become 2^(s c - shift), at most 2^top; `shifts[tile][word]`."""
    words = range(4)
    return [
        emit
        for s, shift in zip(sums, shifts, strict=True)
        for emit in (
            *(partial(k.FFMA, s[word], s[word], c, -shift[word]) for word in words),
            *(partial(k.FMNMX_NAN, s[word], s[word], top, PT) for word in words),
            *(partial(k.MUFU_EX2, s[word], s[word]) for word in words),
        )
    ]


def gradients(k: Kernel, products: Sums, weights: Sums, deltas: list[list[R]]) -> None:
    """dp becomes p (dp - delta)."""
    for dp, p, delta in zip(products, weights, deltas, strict=True):
        for word in range(4):
            k.FADD(dp[word], dp[word], -delta[word])
        for word in range(4):
            k.FMUL(dp[word], dp[word], p[word])
