"""Where a thread stands between tokens' rows [S, heads x depth] and heads' matrices [heads, S, depth].

A piece is what one thread moves at a time; `lanes` neighbouring threads take a whole row of a head, and
the next threads the next positions.  So a warp's access is one run of a head's matrix, and in the tokens'
rows whole lines.  A thread keeps its position and piece for `heads` neighbouring heads, which are then
constant offsets apart on both sides: as many independent loads in flight.
"""

from __future__ import annotations

from dataclasses import dataclass

from coppelius.builder.kernel import Kernel
from coppelius.isa.operands import RZ, R
from coppelius.isa.refusal import Refusal


@dataclass(frozen=True)
class HeadPlace:
    """`flat`: the thread's piece of its first head's matrix; `group`: which run of `heads` heads is its own."""

    k: Kernel
    flat: R
    group: R
    sequence: int
    lanes: int
    heads: int

    def in_heads(self) -> R:
        """The piece's index in [heads, S, lanes]."""
        made: R = self.k.IMAD("heads.index", self.group, self.heads * self.sequence * self.lanes, self.flat)
        return made

    def in_tokens(self, pieces: int, first: int = 0) -> R:
        """The piece's index in rows of `pieces`, of which those from `first` on are heads."""
        k = self.k
        piece = k.LOP3_LUT("piece", self.flat, self.lanes - 1, RZ, 0xC0)
        position = k.SHF_R_U32_HI("position", RZ, self.lanes.bit_length() - 1, self.flat)
        column = k.IMAD("column", self.group, self.heads * self.lanes, piece)
        if first:
            k.IADD3(column, column, first, RZ)
        made: R = k.IMAD("tokens.index", position, pieces, column)
        return made


def head_place(k: Kernel, *, sequence: int, lanes: int, heads: int, pieces: int, threads: int) -> HeadPlace:
    """`pieces` threads of a block share a group of heads; further groups are the block's other threads or grid y."""
    if lanes & (lanes - 1) or pieces & (pieces - 1) or sequence * lanes % pieces:
        raise Refusal(f"heads: {pieces} pieces of {lanes} a row do not divide {sequence} positions evenly")
    k.descriptor()
    thread = k.thread_index()
    block = k.block_index()
    if threads == pieces:
        group = k.block_index("group", "Y")
        inside = thread
    else:
        group = k.SHF_R_U32_HI("group", RZ, pieces.bit_length() - 1, thread)
        inside = k.LOP3_LUT("inside", thread, pieces - 1, RZ, 0xC0)
    flat = k.IMAD("flat", block, pieces, inside)
    return HeadPlace(k, flat, group, sequence, lanes, heads)
