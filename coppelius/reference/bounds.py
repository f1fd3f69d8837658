"""How far a kernel may be from its reference, one function a kind of output.

Each returns a `Measured`: true when every element is within its bound, with the worst error as a share
of the bound (1.0 is just allowed), so that a test both asserts it and publishes what was measured.  A NaN
or an infinity of the reference must come back as the same; elsewhere neither is allowed.

    exact_bits            moves, gathers, transposes, casts, argmax, scatter
    elementwise_f32       2 ulp, or 2^-22 of the largest term where terms cancel
    half_output           1 half ulp of the rounded reference, or 2e-6 of the largest term
    row_reduction         2e-6 of the row's largest magnitude
    column_sum            2e-6 of the sum of magnitudes
    product               relative Frobenius norm 1e-5 (4e-5 at K = 12288), elements within 16 times that
    attention             relative Frobenius norm 2^-8 (bf16) or 2^-11 (f16); lse and delta 1e-5
    absolute              a given error, an element or for all

References are float64 and not rounded; got is what the kernel wrote (f32, or half bit patterns).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from coppelius.reference import half as halves
from coppelius.reference.half import Bits, Floats

F32_CANCELLING = 2.0**-22
HALF_CANCELLING = 2e-6
SUM = 2e-6
PRODUCT, LONG_PRODUCT, LONG_K = 1e-5, 4e-5, 12288  # the tensor core truncates as it accumulates
PRODUCT_ELEMENT = 16.0  # an element, in shares of the norm's bound times its row's root mean square
ATTENTION = {"bf16": 2.0**-8, "f16": 2.0**-11}
ATTENTION_STATISTICS = 1e-5
_F32_TOP = 2.0**128  # where the next f32 after the largest would lie: stands for an infinity


@dataclass(frozen=True)
class Measured:
    """The outcome of one comparison."""

    rule: str
    worst: float  # the largest error as a share of its bound
    failures: int
    total: int
    index: tuple[int, ...]  # where the worst is
    got: float
    reference: float

    def __bool__(self) -> bool:
        return self.failures == 0

    def __str__(self) -> str:
        where = f"[{', '.join(map(str, self.index))}]: got {self.got!r}, reference {self.reference!r}"
        return f"{self.rule}: {self.failures} of {self.total} over; worst {self.worst:.3g} of the bound at {where}"


def _measure(rule: str, share: Floats, got: NDArray[Any], reference: NDArray[Any]) -> Measured:
    """`share` is each element's error over its bound."""
    if share.size == 0:
        return Measured(rule, 0.0, 0, 0, (), 0.0, 0.0)
    share = np.where(np.isnan(share), np.inf, share)
    flat = int(np.argmax(share))
    index = tuple(int(i) for i in np.unravel_index(flat, share.shape))
    failures = int(np.count_nonzero(share > 1.0))
    values = float(got.reshape(-1)[flat]), float(reference.reshape(-1)[flat])
    return Measured(rule, float(share.reshape(-1)[flat]), failures, share.size, index, *values)


def _wide(got: ArrayLike, reference: ArrayLike) -> tuple[Floats, Floats]:
    """Both in float64, of one shape."""
    left, right = np.asarray(got, np.float64), np.asarray(reference, np.float64)
    if left.shape != right.shape:
        raise ValueError(f"got shape {left.shape}, reference {right.shape}: compare equal shapes")
    return left, right


def _share(error: Floats, bound: ArrayLike) -> Floats:
    """Error over bound; no error is 0 of any bound, an error is infinitely much of a bound of 0."""
    limit = np.broadcast_to(np.asarray(bound, np.float64), error.shape)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.asarray(np.where(error == 0, 0.0, error / limit))


def _specials(share: Floats, got: Floats, reference: Floats) -> Floats:
    """NaN answers NaN and infinity the same infinity; elsewhere neither is allowed."""
    special = ~np.isfinite(reference) | ~np.isfinite(got)
    same = (np.isnan(reference) & np.isnan(got)) | (reference == got)
    return np.asarray(np.where(special, np.where(same, 0.0, np.inf), share))


def _difference(got: Floats, reference: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        return np.asarray(np.abs(got - reference))


def exact_bits(got: NDArray[Any], reference: NDArray[Any], nan: str = "") -> Measured:
    """The same bits everywhere; with `nan` ("f32", "bf16", "f16") any NaN answers a NaN of that type."""
    if got.shape != reference.shape or got.dtype.itemsize != reference.dtype.itemsize:
        raise ValueError(f"got {got.dtype}{got.shape}, reference {reference.dtype}{reference.shape}")
    word = np.dtype(f"u{got.dtype.itemsize}")
    left, right = np.ascontiguousarray(got).view(word), np.ascontiguousarray(reference).view(word)
    differ = left != right
    if nan == "f32":
        differ &= ~(np.isnan(left.view(np.float32)) & np.isnan(right.view(np.float32)))
    elif nan:
        differ &= ~(halves.is_nan(left, nan) & halves.is_nan(right, nan))
    return _measure("exact bits", np.where(differ, np.inf, 0.0), left, right)


def elementwise_f32(
    got: NDArray[np.float32], reference: ArrayLike, terms: ArrayLike | None = None, ulps: float = 2.0
) -> Measured:
    """Within `ulps` of the reference, or within 2^-22 of the largest term where terms cancel."""
    left, right = _wide(got, reference)
    # a reference past the largest f32 means infinity, which lies one step above the largest
    with np.errstate(over="ignore"):
        meant = np.where(np.isinf(right.astype(np.float32)), np.copysign(np.inf, right), right)
    near = [np.clip(np.nan_to_num(v, nan=0.0), -_F32_TOP, _F32_TOP) for v in (left, right)]
    bound = ulps * halves.spacing(near[1], halves.F32)
    if terms is not None:
        bound = np.maximum(bound, F32_CANCELLING * np.abs(np.asarray(terms, np.float64)))
    share = _share(_difference(near[0], near[1]), bound)
    never = np.isnan(left) != np.isnan(right)
    given = np.isinf(np.asarray(reference, np.float64)) & (left != meant)
    return _measure(f"{ulps:g} ulp", np.where(never | given, np.inf, share), left, right)


def half_output(got: Bits, reference: ArrayLike, half: str, terms: ArrayLike | None = None) -> Measured:
    """Within 1 half ulp of the rounded reference, or within 2e-6 of the largest term where terms cancel."""
    left, right = _wide(halves.from_bits(got, half), reference)
    form = halves.format_of(half)
    top = 2.0 ** (form.most_exponent + 1)  # where the next half after the largest would lie
    rounded = halves.round_half(right, half)
    near = [np.clip(np.nan_to_num(v, nan=0.0, posinf=top, neginf=-top), -top, top) for v in (left, rounded)]
    share = _share(_difference(near[0], near[1]), halves.ulp(near[1], half))
    if terms is not None:
        limit = HALF_CANCELLING * np.abs(np.asarray(terms, np.float64))
        finite = np.isfinite(left) & np.isfinite(right)
        cancelled = _share(_difference(left, right), limit)
        share = np.where(finite, np.minimum(share, cancelled), share)
    never = np.isnan(left) != np.isnan(right)
    given = np.isinf(right) & (left != right)
    return _measure(f"1 {half} ulp", np.where(never | given, np.inf, share), left, right)


def row_reduction(got: NDArray[Any], reference: ArrayLike, magnitude: ArrayLike | None = None) -> Measured:
    """Within 2e-6 of the row's largest magnitude.

    `magnitude` is one number a row (the largest of what the row reduces); without it, the reference's own
    largest magnitude in the row, or each element of a vector its own.
    """
    left, right = _wide(got, reference)
    if magnitude is None:
        scale = np.abs(right) if right.ndim == 1 else np.abs(right).max(axis=-1)
    else:
        scale = np.abs(np.asarray(magnitude, np.float64))
    scale = scale.reshape(scale.shape + (1,) * (right.ndim - scale.ndim))
    share = _share(_difference(left, right), SUM * scale)
    return _measure("2e-6 of the row", _specials(share, left, right), left, right)


def column_sum(got: NDArray[Any], reference: ArrayLike, magnitude: ArrayLike) -> Measured:
    """Within 2e-6 of the sum of the magnitudes that were added."""
    left, right = _wide(got, reference)
    share = _share(_difference(left, right), SUM * np.asarray(magnitude, np.float64))
    return _measure("2e-6 of the magnitudes", _specials(share, left, right), left, right)


def absolute(got: NDArray[Any], reference: ArrayLike, bound: ArrayLike) -> Measured:
    """Within an absolute error, one for all or one an element."""
    left, right = _wide(got, reference)
    share = _share(_difference(left, right), bound)
    return _measure("absolute", _specials(share, left, right), left, right)


def _norm(rule: str, limit: float, left: Floats, right: Floats) -> Measured:
    """The relative Frobenius norm of the whole, shown at the element that is furthest off."""
    error = _specials(_difference(left, right), left, right)
    error = np.where(np.isnan(error), np.inf, error)
    finite = np.where(np.isfinite(right), right, 0.0)
    share = _share(np.asarray(np.linalg.norm(error)), limit * np.linalg.norm(finite))
    element = _measure(rule, error, left, right)
    failures = element.total if share > 1 else 0
    return Measured(rule, float(share), failures, element.total, element.index, element.got, element.reference)


def product(got: NDArray[Any], reference: ArrayLike, k: int) -> tuple[Measured, Measured]:
    """Both bounds of a product C: the norm of the whole, and each element against its row."""
    left, right = _wide(got, reference)
    limit = LONG_PRODUCT if k >= LONG_K else PRODUCT
    scale = np.sqrt(np.mean(right**2, axis=-1, keepdims=True))
    share = _share(_difference(left, right), PRODUCT_ELEMENT * limit * scale)
    element = _measure("16 times that of the row", _specials(share, left, right), left, right)
    return _norm(f"relative norm {limit:g}", limit, left, right), element


def attention(got: NDArray[Any], reference: ArrayLike, half: str) -> Measured:
    """The relative norm of out, dq, dk or dv; halves come widened."""
    left, right = _wide(got, reference)
    halves.format_of(half)
    return _norm(f"relative norm {ATTENTION[half]:g} ({half})", ATTENTION[half], left, right)


def attention_statistics(got: NDArray[Any], reference: ArrayLike) -> Measured:
    """The relative norm of lse or delta."""
    left, right = _wide(got, reference)
    return _norm(f"relative norm {ATTENTION_STATISTICS:g}", ATTENTION_STATISTICS, left, right)
