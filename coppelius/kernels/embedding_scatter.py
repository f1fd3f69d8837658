"""embedding-scatter: dtable[t] = ((dtable[t] + r1) + r2) + ..., rows of the positions naming token t, in order.

Block b belongs to position b, and works only if b is the first position with its token.  Each working warp
holds the whole token list in registers, 32 tokens a lane, and keeps of it a mask: the positions of its
lane that name the block's token.  The next position is the least over the warp of each lane's least
(REDUX); if the first is not b, the block leaves.  So nothing is shared, and every addition has its order.

A row is 128 threads of four columns.  The other twelve warps leave at once: to search the list costs a warp
as much as its part of the row.  Five rows are in flight while the next position is sought, for a token
that a text repeats costs one addition a row in any case, and should not cost a memory's latency.
"""

from __future__ import annotations

from typing import NamedTuple

from coppelius.builder.kernel import Kernel
from coppelius.builder.registers import Vector
from coppelius.isa.operands import PT, RZ, P, R
from coppelius.isa.refusal import Refusal

POSITIONS = 1024
LANES = 4
CHUNK = 32 * LANES  # positions of one load of a warp
AHEAD = 5  # rows in flight
_DISTANCE = 6  # comparisons between one and its use: a guard waits for 13 cycles


class Search(NamedTuple):
    """`mask`: the lane's positions that are still to come; `lane`: its first position in a chunk."""

    k: Kernel
    mask: R
    lane: R


class Row(NamedTuple):
    """A row on its way, if there is one."""

    values: Vector
    there: P


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
        first = _next(search)
        k.exit_when(k.compare("later", "NE", first, position))
        columns = k.element("columns", "drows", thread, 4 * LANES)
        table_row = k.element("table.row", "dtable", token, 4 * width)
        table = k.offset_pointer("table", table_row, thread, 4 * LANES)
        total = k.LDG_E_128("total", k.at(table))
        waiting = [Row(k.vector(f"row{at}", LANES), k.predicate(f"there{at}")) for at in range(AHEAD)]
        for at, row in enumerate(waiting):
            _fetch(search, row, columns, first if at == 0 else _next(search), width)
        _add(search, total, waiting, columns, width)
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


def _next(search: Search) -> R:
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
    position: R = k.MOV("next", least)
    k.LOP3_LUT(mask, mask, lowest, RZ, 0x3C, guard=k.compare("taken", "EQ", own, position))
    return position


def _fetch(search: Search, row: Row, columns: Vector, position: R, width: int) -> None:
    """Starts the load of that position's row, if there is one."""
    k = search.k
    k.ISETP_LT_U32_AND(row.there, PT, position, POSITIONS)
    pointer = k.offset_pointer("row.pointer", columns, position, 4 * width)
    k.LDG_E_128(row.values, k.at(pointer), guard=row.there)


def _add(search: Search, total: Vector, waiting: list[Row], columns: Vector, width: int) -> None:
    """Adds the rows in order, each place filled again with the position that follows all others."""
    k = search.k
    again, done = k.label("again"), k.label("done")
    k.place(again)
    for at, row in enumerate(waiting):
        if at:
            k.BRA(done, guard=~row.there)
        # guarded like the load, so that the row's registers are free before it
        with k.when(row.there):
            for lane in range(LANES):
                k.FADD(total[lane], total[lane], row.values[lane])
        _fetch(search, row, columns, _next(search), width)
    k.BRA(again, guard=waiting[0].there)
    k.place(done)
