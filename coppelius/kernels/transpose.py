"""transpose: out[g, c, r] = source[g, r, c], 16-bit elements, in registers and byte permutes.

A block turns one 64 x 64 tile, a warp 64 rows by 16 columns, a lane 8 rows by 4 columns: lane = 4 * row
group + column group.  Eight 64-bit loads fill 16 registers (each 32-byte sector whole), 16 permutes turn
them, four 128-bit stores write 8 rows of one column each, and the eight row groups of a warp make that
128 consecutive bytes.
"""

from __future__ import annotations

from coppelius.builder.kernel import Kernel
from coppelius.builder.registers import Vector
from coppelius.isa.operands import RZ, R
from coppelius.isa.refusal import Refusal

TILE = 64
_MASKED_OR = 0xEA  # a & b | c
_LOW_HALVES, _HIGH_HALVES = 0x5410, 0x7632  # PRMT selectors: halves 0 or 1 of two registers, first one low


def transpose(k: Kernel, *, groups: int, rows: int, columns: int) -> None:
    """Grid: tiles of a group along x, groups along y."""
    if rows % TILE or columns % TILE:
        raise Refusal(f"transpose: {rows} x {columns} is not whole tiles of {TILE} x {TILE}")
    if groups * rows * columns * 2 >= 1 << 31:
        raise Refusal(f"transpose: {groups} groups of {rows} x {columns} halves leave 31-bit byte offsets")
    k.descriptor()
    with k.region("place"):
        row, column, group = _place(k, rows, columns)
        source = _pointer(k, "source", group, row, column, rows * columns, columns)
        out = _pointer(k, "out", group, column, row, rows * columns, rows)
    with k.region("load"):
        lines = [k.LDG_E_64(f"line{i}", k.at(source, i * columns * 2)) for i in range(8)]
    with k.region("turn"):
        turned = [k.vector(f"turned{c}", 4) for c in range(4)]
        for c, out_column in enumerate(turned):
            selector = _HIGH_HALVES if c % 2 else _LOW_HALVES
            for pair in range(4):
                k.PRMT(out_column[pair], lines[2 * pair][c // 2], selector, lines[2 * pair + 1][c // 2])
    # stored last: no permute waits until an earlier store has read its registers
    with k.region("store"):
        for c, out_column in enumerate(turned):
            k.STG_E_128(k.at(out, c * rows * 2), out_column)
    k.finish()


def _place(k: Kernel, rows: int, columns: int) -> tuple[R, R, R]:
    """The lane's first row and column, and its group."""
    thread = k.thread_index()
    tile = k.block_index("tile")
    group = k.block_index("group", "Y")
    tiles_across = columns // TILE
    if rows // TILE == 1:
        tile_row, tile_column = RZ, tile
    elif tiles_across == 1:
        tile_row, tile_column = tile, RZ
    else:
        raise Refusal(f"transpose: {rows} x {columns} has tiles in both directions; one must be {TILE}")
    # thread bits: 1:0 quad of columns, 4:2 eight rows, 6:5 warp, which is 16 columns
    inner_row = k.LOP3_LUT("inner.row", k.IMAD("row.bits", thread, 2, RZ), 7 << 3, RZ, 0xC0)
    warp_column = k.LOP3_LUT("warp.column", k.SHF_R_U32_HI("warp.bits", RZ, 1, thread), 3 << 4, RZ, 0xC0)
    inner_column = k.IMAD("column.bits", thread, 4, RZ)
    k.LOP3_LUT(warp_column, inner_column, 3 << 2, warp_column, _MASKED_OR)
    row = inner_row if tile_row is RZ else k.IMAD("row", tile_row, TILE, inner_row)
    column = warp_column if tile_column is RZ else k.IMAD("column", tile_column, TILE, warp_column)
    return row, column, group


def _pointer(k: Kernel, name: str, group: R, major: R, minor: R, group_size: int, stride: int) -> Vector:
    """The address of `name`[group, major, minor], rows of `stride` halves."""
    inside = k.IMAD(f"{name}.inside", major, stride, minor)
    index = k.IMAD(f"{name}.index", group, group_size, inside)
    return k.element(f"{name}.pointer", name, index, 2)
