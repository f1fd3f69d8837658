"""rotary-table: out[position, pair] = cos and sin of position * frequencies[pair].

The angle is the exact product, as the f32 product and what rounding left of it.  Quarter turns are taken
off with pi/2 in three parts by FMA, which is exact as long as their number stays below 2^22, that is for
angles below 6.5e6; positions are exact below 2^24.
"""

from __future__ import annotations

from coppelius.builder.kernel import Kernel
from coppelius.isa.operands import RZ
from coppelius.isa.refusal import Refusal
from coppelius.kernels.circle import circle

THREADS = 256
_MAGIC = 1.5 * 2.0**23  # adding it leaves the nearest integer in the low bits
_TWO_OVER_PI = 0.636619772367581343
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
    with k.region("angle"):
        number = k.I2FP_F32_U32("number", position)
        angle = k.FMUL("angle", number, frequency)
        rest = k.FFMA("rest", number, frequency, -angle)
        turns = k.FFMA("turns", angle, _TWO_OVER_PI, k.move("magic", _MAGIC))
        quarters = k.FADD("quarters", turns, -_MAGIC)
        for part in _HALF_PI:
            k.FFMA(angle, quarters, -part, angle)
        k.FADD(angle, angle, rest)
    with k.region("circle"):
        both = k.vector("both", 2)
        circle(k, "turn", angle, k.SHF_L_U32("quadrant", turns, 30, RZ), into=both)
        k.STG_E_64(k.at(out), both)
    k.finish()
