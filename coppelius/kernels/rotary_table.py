"""rotary-table: out[position, pair] = cos and sin of position * frequencies[pair].

The angle is the exact product, as the f32 product and what rounding left of it.  Quarter turns are taken
off with pi/2 in three parts by FMA, which is exact as long as their number stays below 2^22.

From angles of 2^20 on, what rounding left of the product is no longer small beside an eighth of the circle,
and later the quarters outgrow f32.  There the frequency's turns are taken modulo 1 first, by integers: its
mantissa times the 96 bits of 1 / (2 pi) that its exponent makes count, then times the position, modulo 2^64.
So every finite frequency has its angle; the model's never get there.

Left out: positions over 2^24 are rounded to f32 where their angle is below 2^20.
"""

from __future__ import annotations

import math

from coppelius.builder.kernel import Kernel
from coppelius.builder.registers import Vector
from coppelius.isa.operands import RZ, R
from coppelius.isa.refusal import Refusal
from coppelius.kernels.circle import circle

THREADS = 256
_MAGIC = 1.5 * 2.0**23  # adding it leaves the nearest integer in the low bits
_TWO_OVER_PI = 0.636619772367581343
_FAR = 2.0**20  # measured: 0.14 of the bound just above it, over the bound from 3.5e6 on
_TURN = (0, 0x28BE60DB, 0x9391054A, 0x7F09D5F4, 0x7D4D3770, 0x36D8A566, 0x4F10E410, 0x7F9458EA)  # 2^-32 / (2 pi)
_FIRST_BIT = 150 - 32  # a frequency is mantissa * 2^(exponent - 150)
# pi/2 in three f32 parts, each the rounding of what the ones before leave
_HALF_PI = [float.fromhex(c) for c in ("0x1.921fb6p+0", "-0x1.777a5cp-25", "-0x1.ee59dap-50")]


def rotary_table(k: Kernel, *, pairs: int = 32) -> None:
    """A thread a pair; a warp a position, whose 64 numbers are one 256-byte store."""
    if pairs != 32:
        raise Refusal(f"rotary-table: {pairs} pairs are not one warp of 32")
    k.descriptor()
    with k.region("place"):
        thread = k.thread_index()
        block = k.block_index()
        warp = k.SHF_R_U32_HI("warp", RZ, 5, thread)
        position = k.IMAD("position", block, THREADS // 32, warp)
        k.exit_when(k.compare("past", "GE", position, k.parameter("positions")))
        pair = k.LOP3_LUT("pair", thread, 31, RZ, 0xC0)
        frequency = k.LDG_E("frequency", k.at(k.element("frequency.pointer", "frequencies", pair, 4)))
        out_row = k.element("out.row", "out", position, 8 * pairs)
        out = k.offset_pointer("out.pointer", out_row, pair, 8)
    far = k.label("far")
    with k.region("angle"):
        number = k.I2FP_F32_U32("number", position)
        angle = k.FMUL("angle", number, frequency)
        large = k.compare_f32("large", "GE", abs(angle), _FAR)
        rest = k.FFMA("rest", number, frequency, -angle)
        turns = k.FFMA("turns", angle, _TWO_OVER_PI, k.move("magic", _MAGIC))
        quarters = k.FADD("quarters", turns, -_MAGIC)
        for part in _HALF_PI:
            k.FFMA(angle, quarters, -part, angle)
        k.FADD(angle, angle, rest)
        quadrant = k.SHF_L_U32("quadrant", turns, 30, RZ)
        k.BRA(far, guard=large)
    with k.region("near"):
        _store(k, "near", angle, quadrant, out)
        k.EXIT()
    # the circle a second time, so that the usual way is straight
    with k.region("far"):
        k.place(far)
        _far(k, position, frequency, angle, quadrant)
        _store(k, "far", angle, quadrant, out)
    k.finish()


def _store(k: Kernel, name: str, angle: R, quadrant: R, out: Vector) -> None:
    both = k.vector(f"{name}.both", 2)
    circle(k, f"{name}.turn", angle, quadrant, into=both)
    k.STG_E_64(k.at(out), both)


def _far(k: Kernel, position: R, frequency: R, angle: R, quadrant: R) -> None:
    """`angle` and `quadrant` anew, of any finite frequency; not a number for an infinite one."""
    mantissa = k.LOP3_LUT("mantissa", frequency, 1 << 23, RZ, 0xFC)
    k.LOP3_LUT(mantissa, mantissa, (1 << 24) - 1, RZ, 0xC0)
    high, middle, low = _bits(k, frequency)
    # the frequency's turns modulo 1: what is cut off is below 2^-64 of a turn, and grows with the position
    first = k.IMAD_WIDE_U32("far.first", mantissa, low, RZ)
    second = k.IMAD_WIDE_U32("far.second", mantissa, middle, _carry(k, "far.carry", first[1]))
    top = k.IMAD("far.top", mantissa, high, second[1])
    product = k.IMAD_WIDE_U32("far.product", position, second[0], RZ)
    word = k.IMAD("far.word", position, top, product[1])
    k.IADD3(word, RZ, -word, RZ, guard=k.compare("far.negative", "LT", frequency, RZ, unsigned=False))
    # the nearest quarter, and the low 30 bits as a signed fraction of one
    k.IADD3(quadrant, word, 1 << 29, RZ)
    k.I2FP_F32_S32(angle, k.SHF_L_U32("far.fraction", word, 2, RZ))
    k.FMUL(angle, angle, math.pi / 2 * 2.0**-32)
    k.FFMA(angle, frequency, RZ, angle)


def _bits(k: Kernel, frequency: R) -> list[R]:
    """The 96 bits of 1 / (2 pi) that a mantissa with the frequency's exponent multiplies."""
    exponent = k.SHF_R_U32_HI("exponent", RZ, 23, frequency)
    k.LOP3_LUT(exponent, exponent, 0xFF, RZ, 0xC0)
    first = k.IADD3("bit", exponent, -_FIRST_BIT, RZ)
    words = [k.move(f"word{n}", _TURN[n]) for n in range(4)]
    for skipped in range(1, len(_TURN) - 3):
        there = k.compare(f"skip{skipped}", "GE", first, 32 * skipped)
        for n, word in enumerate(words):
            k.MOV(word, _TURN[n + skipped], guard=there)
    return [k.SHF_L_W_U32_HI(f"bits{n}", words[n + 1], first, words[n]) for n in range(3)]


def _carry(k: Kernel, name: str, word: R) -> Vector:
    """The word as a 64-bit number."""
    pair = k.vector(name, 2)
    k.MOV(pair[0], word)
    k.MOV(pair[1], RZ)
    return pair
