"""Sine and cosine from an eighth of the circle: polynomials there, then swap and signs by quadrant.

Coefficients: fitted to the least largest error on [-pi/4, pi/4], rounded to f32 (sine 2^-27.9 relative,
cosine 2^-33.1 absolute), so that the slow unit's 2^-20.5 plays no part.
"""

from __future__ import annotations

from collections.abc import Sequence

from coppelius.builder.kernel import Kernel
from coppelius.builder.registers import Vector
from coppelius.isa.operands import RZ, R

# sin a = a + a^3 (S0 + S1 a^2 + S2 a^4); cos a = 1 + a^2 (C0 + C1 a^2 + ...)
_SINE = [float.fromhex(c) for c in ("-0x1.555546p-3", "0x1.110778p-7", "-0x1.995408p-13")]
_COSINE = [float.fromhex(c) for c in ("-0x1p-1", "0x1.55554ap-5", "-0x1.6c0c1ap-10", "0x1.99e0ecp-16")]


def polynomial(k: Kernel, name: str, x: R, coefficients: Sequence[float]) -> R:
    """c0 + c1 x + c2 x^2 + ..., from the highest down."""
    value = k.move(name, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        k.FFMA(value, value, x, c)
    return value


def circle(k: Kernel, name: str, angle: R, quadrant: R, into: Vector | None = None) -> tuple[R, R]:
    """(cos, sin) of `angle` + quarter turns; |angle| <= pi/4, bits 31:30 of `quadrant` count the quarters.

    into: a pair that takes them, where they are stored side by side.
    """
    cos, sin = (f"{name}.cos", f"{name}.sin") if into is None else (into[0], into[1])
    square = k.FMUL(f"{name}.square", angle, angle)
    sine = polynomial(k, f"{name}.sine", square, _SINE)
    cosine = polynomial(k, f"{name}.cosine", square, _COSINE)
    k.FMUL(sine, sine, square)
    k.FFMA(sine, sine, angle, angle)
    k.FFMA(cosine, cosine, square, 1.0)
    odd = k.LOP3_LUT(f"{name}.odd", quadrant, 1 << 30, RZ, 0xC0)
    swap = k.compare(f"{name}.swap", "NE", odd, RZ)
    along, across = k.FSEL(cos, sine, cosine, swap), k.FSEL(sin, cosine, sine, swap)
    if into is not None:
        along, across = into[0], into[1]
    # the sine is negative in quarters 2 and 3, the cosine in 1 and 2
    k.LOP3_LUT(across, across, 1 << 31, quadrant, _XOR_MASKED)
    next_quadrant = k.IADD3(f"{name}.next", quadrant, 1 << 30, RZ)
    k.LOP3_LUT(along, along, 1 << 31, next_quadrant, _XOR_MASKED)
    return along, across


_XOR_MASKED = 0x78  # a ^ (b & c)
