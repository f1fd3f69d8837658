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
    """`flat`: the thread's piece of its first head's matrix, and `own` further for each group before its own.

    `group`: which run of `heads` heads is the thread's own.  What `own` adds is taken off where an index is made: no
    thread's number is cut up for it.
    """

    k: Kernel
    flat: R
    group: R
    own: int
    sequence: int
    lanes: int
    heads: int

    def in_heads(self) -> R:
        """The piece's index in [heads, S, lanes]."""
        made: R = self.k.IMAD("heads.index", self.group, self.heads * self.sequence * self.lanes - self.own, self.flat)
        return made

    def in_tokens(self, pieces: int) -> R:
        """The piece's index in rows of `pieces`, the heads first: position * pieces + head * lanes + lane."""
        k = self.k
        # a position is `lanes` pieces of `flat`, and `pieces` of the rows
        further = pieces - self.lanes
        position = k.SHF_R_U32_HI("position", RZ, self.lanes.bit_length() - 1, self.flat)
        group = self.heads * self.lanes - self.own - self.own // self.lanes * further
        column = k.IMAD("column", self.group, group, self.flat)
        made: R = k.IMAD("tokens.index", position, further, column)
        return made


def head_place(k: Kernel, *, sequence: int, lanes: int, heads: int, pieces: int, threads: int) -> HeadPlace:
    """`pieces` threads of a block share a group of heads; further groups are the block's other threads or grid y."""
    if lanes & (lanes - 1) or pieces & (pieces - 1) or sequence * lanes % pieces or pieces < lanes:
        raise Refusal(f"heads: {pieces} pieces of {lanes} a row do not divide {sequence} positions evenly")
    k.descriptor()
    thread = k.thread_index()
    flat = k.IMAD("flat", k.block_index(), pieces, thread)
    if threads == pieces:
        return HeadPlace(k, flat, k.block_index("group", "Y"), 0, sequence, lanes, heads)
    group = k.SHF_R_U32_HI("group", RZ, pieces.bit_length() - 1, thread)
    return HeadPlace(k, flat, group, pieces, sequence, lanes, heads)
