"""random-normal: Philox4x32-10 words to normal numbers by Box-Muller, four a thread.

Counter (i, 0, stream, 0) under key (seed low, seed high) gives elements 4i to 4i+3; words (0, 1) and (2, 3)
each give r cos and r sin of 2 pi u1, r = sqrt(-2 ln u0), u = (x + 0.5) 2^-32.

The logarithm: u0 below 2/3 is split into 2^e (1 + x); from there up, where f32 cannot tell u0 from 1, its
complement is exact and x = u0 - 1 at once.  Then ln(1 + x) = x + x^2 q(x) on [-1/3, 1/3].  The angle: 4 u1
modulo 1 is the low 30 bits as a signed fraction of a quarter turn.  So each part keeps its relative
precision to the ends, and the slow unit only gives the root.
"""

from __future__ import annotations

import math

from coppelius.builder.kernel import Kernel
from coppelius.isa.operands import RZ, URZ, Constant, R
from coppelius.kernels.circle import circle, polynomial
from coppelius.kernels.quads import LANES, quads

ROUNDS = 10
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)  # published: Random123, Philox4x32
_WEYL = (0x9E3779B9, 0xBB67AE85)  # published: Random123, the key's step each round
_XOR = 0x96  # a ^ b ^ c

_TWO_THIRDS = 0x3F2AAAAB  # the f32 nearest 2/3, where a mantissa's interval [2/3, 4/3) starts
_EXPONENT = 0xFF800000
# ln(1 + x) = x + x^2 (Q0 + Q1 x + ...) on [-1/3, 1/3]: fitted, rounded to f32, 2^-25.1 relative
_LOGARITHM = [
    float.fromhex(c)
    for c in (
        "-0x1.ffffd6p-2", "0x1.5554fcp-2", "-0x1.001450p-2", "0x1.99d3a8p-3",
        "-0x1.503882p-3", "0x1.1ea94ep-3", "-0x1.3b0e74p-3", "0x1.1f241ep-3",
    )
]  # fmt: skip


def random_normal(k: Kernel) -> None:
    """Four elements a thread; one 128-bit store."""
    q = quads(k)
    words = _philox(k, q.index)
    values = k.vector("values", LANES)
    for pair in range(2):
        with k.region(f"pair{pair}"):
            radius = _radius(k, f"r{pair}", words[2 * pair])
            along, across = _angle(k, f"a{pair}", words[2 * pair + 1])
            k.FMUL(values[2 * pair], radius, along)
            k.FMUL(values[2 * pair + 1], radius, across)
    out = q.pointer("out", 4)
    with q.whole():
        k.STG_E_128(k.at(out), values)

    def one(lane: int) -> None:
        k.STG_E(k.at(out, 4 * lane), values[lane])

    q.tail(one)
    k.finish()


def _philox(k: Kernel, index: R) -> list[R]:
    """Four words of counter (index, 0, stream, 0)."""
    seed = k.parameter("seed")
    # the key's steps are the same for all threads: the uniform datapath takes them off the busy one
    key = [k.ULDC("key.low", seed), k.ULDC("key.high", Constant(seed.bank, seed.offset + 4))]
    words: list[R] = [index, RZ, k.move("stream", k.parameter("stream")), RZ]
    with k.region("philox"):
        for turn in range(ROUNDS):
            first = k.IMAD_WIDE_U32(f"first{turn}", words[0], _MULTIPLIERS[0], RZ)
            second = k.IMAD_WIDE_U32(f"second{turn}", words[2], _MULTIPLIERS[1], RZ)
            left = k.LOP3_LUT(f"left{turn}", second[1], key[0], words[1], _XOR)
            right = k.LOP3_LUT(f"right{turn}", first[1], key[1], words[3], _XOR)
            words = [left, second[0], right, first[0]]
            if turn + 1 < ROUNDS:
                for half, step in zip(key, _WEYL, strict=True):
                    k.UIADD3(half, half, step, URZ)
    return words


def _radius(k: Kernel, name: str, word: R) -> R:
    """std sqrt(-2 ln((word + 0.5) 2^-32))."""
    near_one = k.compare(f"{name}.near", "GE", word, 0xAAAAAAAB)
    k.LOP3_LUT(word, word, RZ, RZ, 0x0F, guard=near_one)  # the complement
    u = k.I2FP_F32_U32(f"{name}.u", word)
    k.FFMA(u, u, 2.0**-32, k.move(f"{name}.half", 2.0**-33))
    exponent = k.IADD3(f"{name}.exponent", u, -_TWO_THIRDS, RZ)
    k.LOP3_LUT(exponent, exponent, _EXPONENT, RZ, 0xC0)
    mantissa = k.IADD3(f"{name}.mantissa", u, -exponent, RZ)
    x = k.FADD(f"{name}.x", mantissa, -1.0)
    k.FSEL(x, -u, x, near_one)
    scaled = k.I2FP_F32_S32(f"{name}.scaled", exponent)
    k.FSEL(scaled, RZ, scaled, near_one)
    logarithm = polynomial(k, f"{name}.log", x, _LOGARITHM)
    k.FMUL(logarithm, logarithm, x)
    k.FFMA(logarithm, logarithm, x, x)
    k.FFMA(logarithm, scaled, math.log(2) * 2.0**-23, logarithm)
    square = k.FMUL(f"{name}.square", logarithm, -2.0)
    radius = k.MUFU_RSQ(f"{name}.radius", square)
    k.FMUL(radius, radius, square)
    out: R = k.FMUL(f"{name}.scaled", radius, k.parameter("std"))
    return out


def _angle(k: Kernel, name: str, word: R) -> tuple[R, R]:
    """(cos, sin) of 2 pi (word + 0.5) 2^-32."""
    quadrant = k.IADD3(f"{name}.quadrant", word, 1 << 29, RZ)
    fraction = k.SHF_L_U32(f"{name}.fraction", word, 2, RZ)
    k.LOP3_LUT(fraction, fraction, 2, RZ, 0xFC)
    angle = k.I2FP_F32_S32(f"{name}.angle", fraction)
    k.FMUL(angle, angle, math.pi / 2 * 2.0**-32)
    return circle(k, name, angle, quadrant)
