"""Reductions over a block in a fixed order: lanes by five exchanges, then the warps' sums in warp order."""

from __future__ import annotations

from coppelius.builder.kernel import Kernel
from coppelius.isa.operands import RZ, Address, R


def warp_sum(k: Kernel, name: str, value: R) -> R:
    """The sum over the warp's lanes, the same bits in each lane: every exchange adds the same two numbers."""
    total = value
    for lanes in (16, 8, 4, 2, 1):
        other = k.shuffle_xor(f"{name}.from{lanes}", total, lanes)
        total = k.FADD(f"{name}.{lanes}", total, other)
    return total


def block_sum(k: Kernel, name: str, value: R, *, thread: R, warps: int, slot: int) -> R:
    """The sum over the block of `warps` (4) warps; the warps' sums lie in shared memory from byte `slot` on."""
    total = warp_sum(k, name, value)
    warp = k.SHF_R_U32_HI(f"{name}.warp", RZ, 5, thread)
    lane = k.LOP3_LUT(f"{name}.lane", thread, 31, RZ, 0xC0)
    first = k.compare(f"{name}.first", "EQ", lane, RZ)
    k.STS(Address(warp, slot, scale=4), total, guard=first)
    k.BAR_SYNC_DEFER_BLOCKING(0)
    sums = k.LDS_128(f"{name}.sums", Address(RZ, slot))
    out: R = k.FADD(f"{name}.01", sums[0], sums[1])
    for other in range(2, warps):
        out = k.FADD(f"{name}.{other}", out, sums[other])
    return out
