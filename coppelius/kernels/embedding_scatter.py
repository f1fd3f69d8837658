"""embedding-scatter: dtable[t] = ((dtable[t] + r1) + r2) + ..., rows of the positions naming token t, in order.

Block b belongs to position b, and works only if b is the first position with its token.  Each working warp
holds the whole token list in registers, 32 tokens a lane, and keeps of it a mask: the positions of its
lane that name the block's token.  The next position is the least over the warp of each lane's least
(REDUX); if the first is not b, the block leaves.  So nothing is shared, and every addition has its order.

A row is 128 threads of four columns.  The other twelve warps leave at once: to search the list costs a warp
as much as its part of the row.  The rows are a pipelined loop: while one loads, the next positions are sought, up
to five rows in flight, for a token that a text repeats should cost a search a row, and not a memory's latency.
"""

from __future__ import annotations

from typing import NamedTuple

from coppelius.builder.kernel import Kernel
from coppelius.builder.registers import Vector
from coppelius.isa.operands import RZ, P, R
from coppelius.isa.refusal import Refusal

POSITIONS = 1024
LANES = 4
CHUNK = 32 * LANES  # positions of one load of a warp
AHEAD = 5  # rows in flight
OFTEN = 5  # rows of a token, in a text of 1,024 tokens of which 200 are in use
_DISTANCE = 6  # comparisons between one and its use: a guard waits for 13 cycles


class Search(NamedTuple):
    """`mask`: the lane's positions that are still to come; `lane`: its first position in a chunk."""

    k: Kernel
    mask: R
    lane: R


def embedding_scatter(k: Kernel, *, vocabulary: int, width: int, rows: int) -> None:
    """512 threads, of which 128 work; grid: a block a position."""
    if rows != POSITIONS or width != 128 * LANES:
        raise Refusal(f"embedding-scatter: {rows} rows of {width} are not {POSITIONS} of {128 * LANES}")
    k.descriptor()
    with k.region("token"):
        thread = k.thread_index()
        k.exit_when(k.compare("idle", "GE", thread, 128))
        position = k.block_index("position")
        lane = k.LOP3_LUT("lane", k.SHF_L_U32("lane.first", thread, 2, RZ), CHUNK - 1, RZ, 0xC0)
        token_pointer = k.element("token.pointer", "tokens", position, 4)
        list_pointer = k.element("list.pointer", "tokens", lane, 4)
        token = k.LDG_E("token", k.at(token_pointer))
        search = Search(k, _matches(k, list_pointer, token), lane)
        k.exit_when(k.compare("unknown", "GE", token, vocabulary))
    with k.region("rows"):
        first = k.register("first")
        _next(search, first)
        k.exit_when(k.compare("later", "NE", first, position))
        columns = k.element("columns", "drows", thread, 4 * LANES)
        table_row = k.element("table.row", "dtable", token, 4 * width)
        table = k.offset_pointer("table", table_row, thread, 4 * LANES)
        total = k.LDG_E_128("total", k.at(table))
        _add(search, total, first, columns, width)
        k.STG_E_128(k.at(table), total)
    k.finish()


def _matches(k: Kernel, pointer: Vector, token: R) -> R:
    """Bit 4 c + i of a lane: the token at its position 128 c + 4 lane + i is `token`."""
    chunks = [k.LDG_E_128(f"chunk{c}", k.at(pointer, 4 * CHUNK * c)) for c in range(POSITIONS // CHUNK)]
    mask = k.zero("mask")
    found: list[P] = []
    count = len(chunks) * LANES
    for bit in range(count + _DISTANCE):
        if bit < count:
            found.append(k.compare(f"found{bit}", "EQ", chunks[bit // LANES][bit % LANES], token))
        if bit >= _DISTANCE:
            k.LOP3_LUT(mask, mask, 1 << (bit - _DISTANCE), RZ, 0xFC, guard=found[bit - _DISTANCE])
    return mask


def _next(search: Search, position: R) -> None:
    """The next position, taken off the mask; none is a number above all positions."""
    k, mask, lane = search
    rest = k.IADD3("rest", RZ, -mask, RZ)
    lowest = k.LOP3_LUT("lowest", mask, rest, RZ, 0xC0)
    # no bit is -1, which the next two lines leave above 2^31
    bit = k.FLO_U32("bit", lowest)
    inner = k.LOP3_LUT("inner", bit, LANES - 1, RZ, 0xC0)
    own = k.IMAD("own", bit, CHUNK // LANES, lane)
    k.IMAD(own, inner, 1 - CHUNK // LANES, own)
    least = k.REDUX_MIN("least", own)
    k.MOV(position, least)
    k.LOP3_LUT(mask, mask, lowest, RZ, 0x3C, guard=k.compare("taken", "EQ", own, position))


def _add(search: Search, total: Vector, position: R, columns: Vector, width: int) -> None:
    """Adds the rows in order, the first one's position known; while a row loads, the next positions are sought."""
    k = search.k
    # `first` is off the mask
    others = k.REDUX_SUM("others", k.POPC("own.others", search.mask))
    count = k.IADD3("rows", k.MOV("others.all", others), 1, RZ)
    with k.loop("rows", count, least=1, often=OFTEN):
        k.stage(0)
        row = k.LDG_E_128("row", k.at(k.offset_pointer("row.pointer", columns, position, 4 * width)))
        _next(search, position)
        k.stage(AHEAD - 1)
        for lane in range(LANES):
            k.FADD(total[lane], total[lane], row[lane])
