"""The slow twin: one number at a time, in Python integers and fractions, and the patterns to try it on."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from coppelius.emulator.numerics.rounding import Format, Rounding

INF, NAN = "inf", "nan"


def decode(bits: int, fmt: Format) -> tuple[bool, Any]:
    """(negative, magnitude), where the magnitude is a Fraction, INF or NAN."""
    bits = int(bits)
    negative = bool(bits >> (fmt.width - 1))
    field = (bits >> fmt.fraction_bits) & ((1 << fmt.exponent_bits) - 1)
    fraction = bits & ((1 << fmt.fraction_bits) - 1)
    if field == (1 << fmt.exponent_bits) - 1:
        return negative, NAN if fraction else INF
    significand = fraction + ((1 << fmt.fraction_bits) if field else 0)
    return negative, significand * Fraction(2) ** (max(field, 1) - fmt.bias - fmt.fraction_bits)


def encode(value: Fraction, fmt: Format, mode: Rounding, negative_zero: bool = False) -> int:
    """The one rounding, by trying the two neighbours."""
    negative = value < 0 or (value == 0 and negative_zero)
    magnitude, sign = abs(value), int(negative) << (fmt.width - 1)
    if not magnitude:
        return sign
    # the pattern at or below the magnitude: whole units of the last place, counted from the smallest subnormal's
    least = 1 - fmt.bias - fmt.fraction_bits
    binade = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    binade -= magnitude < Fraction(2) ** binade
    unit = max(binade - fmt.fraction_bits, least)
    low = ((unit - least) << fmt.fraction_bits) + int(magnitude / Fraction(2) ** unit)
    low = min(low, fmt.infinity - 1)
    high = low + 1
    below = decode(low, fmt)[1]
    if below == magnitude:
        return sign | low
    top = Fraction(2) ** (fmt.bias + 1)
    above = top if high == fmt.infinity else decode(high, fmt)[1]
    if mode is Rounding.RN:
        nearer = (magnitude - below) - (above - magnitude)
        up = nearer > 0 or (nearer == 0 and low & 1 == 1)
    else:
        up = mode is (Rounding.RM if negative else Rounding.RP)
    return sign | (high if up else low)


def fma(a: int, b: int, c: int, fmt: Format, mode: Rounding, target: Format | None = None) -> int | None:
    """a * b + c; None for any NaN result."""
    target = target or fmt
    (sa, va), (sb, vb), (sc, vc) = (decode(x, fmt) for x in (a, b, c))
    if NAN in (va, vb, vc) or ({va, vb} == {INF, 0}):
        return None
    sp = sa ^ sb
    if INF in (va, vb):
        return None if vc == INF and sc != sp else (int(sp) << (target.width - 1)) | target.infinity
    if vc == INF:
        return (int(sc) << (target.width - 1)) | target.infinity
    p, q = (-1) ** sp * va * vb, (-1) ** sc * vc
    both = (sp or sc) if mode is Rounding.RM else (sp and sc)
    return encode(p + q, target, mode, negative_zero=bool(both))


def flush(bits: int, fmt: Format) -> int:
    return bits & fmt.sign_mask if bits & fmt.infinity == 0 else bits


def patterns(fmt: Format, count: int, seed: int) -> Iterator[list[np.ndarray[Any, Any]]]:
    """Operand triples: every special against every other, random, near one another, and ties."""
    rng = np.random.default_rng(seed)
    f, one = fmt.fraction_bits, fmt.one
    special = [0, 1, 2, (1 << f) - 1, 1 << f, (1 << f) + 1, one - 1, one, one + 1, one + (1 << (f - 1))]
    special += [fmt.infinity - 1, fmt.infinity, fmt.infinity + 1, fmt.sign_mask - 1, one + (1 << f)]
    special += [(one >> f >> 1) << f, ((one >> f >> 1) << f) + 1, fmt.infinity - (1 << f)]
    signed = np.array([s | x for x in special for s in (0, fmt.sign_mask)], np.uint64)
    yield [rng.choice(signed, count) for _ in range(3)]
    yield [rng.integers(0, 1 << fmt.width, count, dtype=np.uint64) for _ in range(3)]
    near = [rng.integers(0, 1 << f, count, dtype=np.uint64) + np.uint64(one) for _ in range(3)]
    near = [x + (rng.integers(-3, 4, count) << f).astype(np.uint64) for x in near]
    yield [x ^ (rng.integers(0, 2, count).astype(np.uint64) << np.uint64(fmt.width - 1)) for x in near]
    # few significant bits: exact results, exact ties and full cancellation become common
    coarse = [(rng.integers(0, 8, count) << (f - 3)).astype(np.uint64) for _ in range(3)]
    tiny = rng.integers(0, 2 * fmt.bias + 1, (3, count))
    yield [c | (e.astype(np.uint64) << np.uint64(f)) for c, e in zip(coarse, tiny, strict=True)]
    # a product just above the smallest normals, an addend just below the tie
    small = [rng.integers(1, 1 << (f + 2), count, dtype=np.uint64) for _ in range(2)]
    factor = rng.integers(0, 1 << f, count, dtype=np.uint64) | np.uint64(one - (rng.integers(0, 3) << f))
    yield [small[0], factor, small[1] | np.uint64(fmt.sign_mask)]
    addend = rng.integers(0, 4, count, dtype=np.uint64)
    yield [near[0], near[1], addend | (rng.integers(0, 2, count).astype(np.uint64) << np.uint64(fmt.width - 1))]
    yield _almost_ties(fmt, count, rng)


def _almost_ties(fmt: Format, count: int, rng: np.random.Generator) -> list[np.ndarray[Any, Any]]:
    """An addend, subnormal or not, and a product that misses half its last unit by the least possible."""
    f, one, sign = fmt.fraction_bits, fmt.bias, np.uint64(fmt.width - 1)
    field = np.where(rng.random(count) < 0.5, rng.integers(0, 2, count), rng.integers(one, one + 4, count))
    c = (field.astype(np.uint64) << np.uint64(f)) | rng.integers(0, 1 << f, count, dtype=np.uint64)
    # exponents of the factors that make half a unit of c
    total = np.maximum(field, 1) - one - f - 1
    left, right = total // 2 + one, total - total // 2 + one
    # (1 + u)(1 - u), just below 1, and (1 + u)(1 + u), just above
    below = rng.random(count) < 0.5
    a = (left.astype(np.uint64) << np.uint64(f)) | np.uint64(1)
    b = np.where(
        below, (right.astype(np.uint64) << np.uint64(f)) - np.uint64(2), right.astype(np.uint64) << np.uint64(f)
    )
    b = np.where(below, b, b | np.uint64(1))
    signs = [rng.integers(0, 2, count).astype(np.uint64) << sign for _ in range(2)]
    return [a ^ signs[0], b, c ^ signs[1]]


def differences(got: Any, want: list[int], *operands: Any) -> list[str]:
    """All differing rows, in hexadecimal, for one assertion."""
    rows = zip(np.asarray(got).tolist(), want, *(np.asarray(x).tolist() for x in operands), strict=True)
    return [" ".join(f"{v:#x}" for v in row) for row in rows if row[0] != row[1]][:20]


def check_fma(function: Callable[..., Any], fmt: Format, mode: Rounding, seed: int, count: int = 120) -> list[str]:
    """Compare `function(a, b, c)` with the twin over all patterns."""
    found: list[str] = []
    for triple in patterns(fmt, count, seed):
        a, b, c = (x.astype(fmt.dtype) for x in triple)
        want = [fma(x, y, z, fmt, mode) for x, y, z in zip(a, b, c, strict=True)]
        got = function(a, b, c)
        want_bits = [fmt.canonical_nan if w is None else w for w in want]
        found += differences(got, want_bits, a, b, c)
    return found


@pytest.fixture
def twin() -> SimpleNamespace:
    return SimpleNamespace(**{k: v for k, v in globals().items() if not k.startswith("_")})
