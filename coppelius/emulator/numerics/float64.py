"""DADD, DMUL and DFMA round the exact result once to f64, in any of the four directions.

There is no FTZ and no SAT. An invalid operation gives 0xfff8000000000000 (# published: CUDART_NAN); a NaN
operand comes back quietened, the first of a, b, c that is one (# assumed, as x86 does).

RN sums and products are the host's own. RN fused results of middling operands are sums of four doubles that are
exact together (Boldo and Melquiond: the two smallest added to odd). All else goes through one fused multiply-add on
128-bit significands with a sticky last bit: a sum is a * 1 + b, a product a * b plus a zero of its sign.
"""

import numpy as np

from coppelius.emulator.numerics.blocks import in_blocks
from coppelius.emulator.numerics.rounding import (
    F64,
    Array,
    Rounding,
    as_bits,
    highest_bit,
    round_pack,
    sum_to_odd,
    unpack,
)

ONE = np.full(1, F64.one, np.uint64)
SIGN = np.uint64(F64.sign_mask)
QUIET = np.uint64(1 << 51)
LOW = np.uint64(0xFFFFFFFF)


@in_blocks(2)
def add(a: Array, b: Array, rounding: Rounding = Rounding.RN) -> Array:
    if rounding is not Rounding.RN:
        return fma(a, ONE, b, rounding)
    with np.errstate(all="ignore"):
        total = _view(a) + _view(b)
    return _quieten(total.view(np.uint64), a, b)


@in_blocks(2)
def mul(a: Array, b: Array, rounding: Rounding = Rounding.RN) -> Array:
    if rounding is not Rounding.RN:
        return fma(a, b, (_bits(a) ^ _bits(b)) & SIGN, rounding)
    with np.errstate(all="ignore"):
        product = _view(a) * _view(b)
    return _quieten(product.view(np.uint64), a, b)


@in_blocks(3)
def fma(a: Array, b: Array, c: Array, rounding: Rounding = Rounding.RN) -> Array:
    a, b, c = np.broadcast_arrays(_bits(a), _bits(b), _bits(c))
    if rounding is not Rounding.RN:
        return _any_fma(a, b, c, rounding)
    with np.errstate(all="ignore"):
        result = _quick_fma(a.view(np.float64), b.view(np.float64), c.view(np.float64)).view(np.uint64)
    rest = ~(_middling(a, 400) & _middling(b, 400) & (_middling(c, 900) | ((c & ~SIGN) == 0)))
    if rest.any():
        result[rest] = _any_fma(a[rest], b[rest], c[rest], rounding)
    return result


def _middling(bits: Array, reach: int) -> Array:
    """Finite values whose exponent is at most `reach` either way."""
    exponent = (bits & ~SIGN) >> np.uint64(52)
    middling: Array = (exponent - np.uint64(F64.bias - reach)) <= np.uint64(2 * reach)
    return middling


def _quick_fma(a: Array, b: Array, c: Array) -> Array:
    """Nearest a * b + c, where neither the product's last bit nor any part leaves the range."""
    high = a * b
    (a1, a2), (b1, b2) = _split(a), _split(b)
    low = ((a1 * b1 - high) + a1 * b2 + a2 * b1) + a2 * b2
    upper, rest = _two_sum(c, low)
    total, error = _two_sum(high, upper)
    nearest: Array = total + sum_to_odd(rest, error)
    return nearest


def _split(x: Array) -> tuple[Array, Array]:
    """Two halves of 26 bits, exactly."""
    scaled = x * 134217729.0
    upper = scaled - (scaled - x)
    return upper, x - upper


def _two_sum(x: Array, y: Array) -> tuple[Array, Array]:
    """The rounded sum and what rounding took from it."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def _any_fma(a: Array, b: Array, c: Array, rounding: Rounding) -> Array:
    result = _exact_fma(a, b, c, rounding)
    special = np.zeros(a.shape, bool)
    for x in (a, b, c):
        special |= (x & np.uint64(F64.infinity)) == np.uint64(F64.infinity)
    if special.any():
        with np.errstate(all="ignore"):
            # with an infinity or NaN in play, a product that overflowed would lie: shrink the finite factors
            p = _unit(a) * _unit(b)
            host = (p + _unit(c)).view(np.uint64)
        result = np.where(special, host, result)
    return _quieten(result, a, b, c)


def _exact_fma(a: Array, b: Array, c: Array, rounding: Rounding) -> Array:
    sign_a, ma, ea = unpack(a, F64)
    sign_b, mb, eb = unpack(b, F64)
    sign_c, mc, ec = unpack(c, F64)
    sign_p = sign_a ^ sign_b
    # two spare bits on top: one for the product's width, one for the carry of the sum
    high, low = multiply_wide(ma >> np.uint64(1), mb >> np.uint64(1))
    exponent_p, exponent_c = ea + eb + 2, ec + 2 - 64
    chigh, clow = mc >> np.uint64(2), mc << np.uint64(62)
    # a zero must not decide the alignment
    exponent_p = np.where((high | low) == 0, exponent_c, exponent_p)
    exponent_c = np.where(mc == 0, exponent_p, exponent_c)
    exponent = np.maximum(exponent_p, exponent_c)
    high, low = _shift_right(high, low, exponent - exponent_p)
    chigh, clow = _shift_right(chigh, clow, exponent - exponent_c)
    same = sign_p == sign_c
    smaller = ~same & ((high < chigh) | ((high == chigh) & (low < clow)))
    big_high, big_low = np.where(smaller, chigh, high), np.where(smaller, clow, low)
    small_high, small_low = np.where(smaller, high, chigh), np.where(smaller, low, clow)
    sum_low = np.where(same, big_low + small_low, big_low - small_low)
    carry = np.where(same, sum_low < big_low, big_low < small_low).astype(np.uint64)
    sum_high = np.where(same, big_high + small_high + carry, big_high - small_high - carry)
    negative = np.where(smaller, sign_c, sign_p)
    zero = (sum_high | sum_low) == 0
    cancelled = sign_c & sign_p if rounding is not Rounding.RM else sign_c | sign_p
    negative = np.where(zero, cancelled, negative)
    significand, shift = _gather(sum_high, sum_low)
    return round_pack(negative, significand, exponent + 64 - shift, F64, rounding)


def multiply_wide(a: Array, b: Array) -> tuple[Array, Array]:
    """The 128-bit product of two uint64 as (high, low)."""
    half = np.uint64(32)
    a0, a1, b0, b1 = a & LOW, a >> half, b & LOW, b >> half
    p00, p01, p10, p11 = a0 * b0, a0 * b1, a1 * b0, a1 * b1
    middle = (p00 >> half) + (p01 & LOW) + (p10 & LOW)
    return p11 + (p01 >> half) + (p10 >> half) + (middle >> half), (middle << half) | (p00 & LOW)


def _shift_right(high: Array, low: Array, count: Array) -> tuple[Array, Array]:
    """128-bit shift right, lost bits gathered in the last one."""
    far = count >= 64
    sticky = far & (low != 0)
    high, low = np.where(far, np.uint64(0), high), np.where(far, high | sticky, low)
    n = np.clip(np.where(far, count - 64, count), 0, 63).astype(np.uint64)
    lost = (low & ((np.uint64(1) << n) - np.uint64(1))) != 0
    # shifting by 64 - n in two steps keeps n = 0 legal
    down = (high << (np.uint64(63) - n)) << np.uint64(1)
    return high >> n, (low >> n) | down | lost


def _gather(high: Array, low: Array) -> tuple[Array, Array]:
    """128 bits normalised to 64 with a sticky last bit, and the shift to the left."""
    far = high == 0
    shift = np.where(far, 64, 0)
    high, low = np.where(far, low, high), np.where(far, np.uint64(0), low)
    left = 63 - np.clip(highest_bit(high), 0, 63)
    n = left.astype(np.uint64)
    top = (high << n) | ((low >> np.uint64(1)) >> (np.uint64(63) - n))
    return top | ((low << n) != 0), shift + left


def _unit(bits: Array) -> Array:
    """Finite nonzero values become 1 of their sign; zeros, infinities and NaN stay."""
    value = bits.view(np.float64)
    return np.where(np.isfinite(value) & (value != 0), np.copysign(1.0, value), value)


def _quieten(result: Array, *operands: Array) -> Array:
    value = result.view(np.float64)
    nan = value != value
    if not nan.any():
        return result
    result = np.where(nan, np.uint64(F64.canonical_nan), result)
    for operand in reversed(operands):
        bits = _bits(operand)
        value = bits.view(np.float64)
        result = np.where(value != value, bits | QUIET, result)
    return result


def _bits(x: Array) -> Array:
    return as_bits(x, np.uint64)


def _view(x: Array) -> Array:
    return _bits(x).view(np.float64)
