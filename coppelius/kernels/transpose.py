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

TILE, QUAD = 64, 4
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
        quads = k.size("group.quads", rows * columns * 2), k.size("quad", 2 * QUAD)
        source = _pointer(k, "source", group, k.IMAD("source.index", row, columns, column), *quads)
        out = _pointer(k, "out", group, k.IMAD("out.index", column, rows, row), *quads)
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
    """The lane's first row and column, both in quads, and its group."""
    thread = k.thread_index()
    tile = k.block_index("tile")
    group = k.block_index("group", "Y")
    # thread bits: 1:0 quad of columns, 4:2 eight rows, 6:5 warp, which is 16 columns
    warp = k.SHF_R_U32_HI("warp", RZ, 5, thread)
    column = k.IMAD("column.inner", warp, 4, k.LOP3_LUT("column.bits", thread, 3, RZ, 0xC0))
    row = k.LOP3_LUT("row.inner", k.SHF_R_U32_HI("row.bits", RZ, 1, thread), 7 << 1, RZ, 0xC0)
    if rows == TILE:
        column = k.IMAD("column", tile, TILE // QUAD, column)
    elif columns == TILE:
        row = k.IMAD("row", tile, TILE // QUAD, row)
    else:
        raise Refusal(f"transpose: {rows} x {columns} has tiles in both directions; one must be {TILE}")
    return row, column, group


def _pointer(k: Kernel, name: str, group: R, index: R, group_bytes: R, quad_bytes: R) -> Vector:
    """The address of quad `index` of that group of `name`; what the group adds comes in by a chain of its own."""
    start = k.element(f"{name}.group", name, group, group_bytes)
    return k.offset_pointer(f"{name}.pointer", start, index, quad_bytes)
