"""tiled products: C = A B, or A B + R, f32 from halves; a block computes `tile.rows` x `tile.columns` of C.

A as rows is m x k, as columns k x m; B as rows is n x k, as columns k x n; R and C are m x n in f32.  Strides are
baked in.  Grid: tiles along n, then along m; warp w of a block stands at (w / warps_n, w % warps_n).
"""

from __future__ import annotations

from coppelius.builder.kernel import Kernel
from coppelius.isa.operands import RZ, R
from coppelius.kernels.tiled.copies import Copies, copies_of
from coppelius.kernels.tiled.epilogue import write
from coppelius.kernels.tiled.fragments import Fragments, fragments_of
from coppelius.kernels.tiled.layout import AND, Layout
from coppelius.kernels.tiled.mainloop import Mainloop
from coppelius.products.tile import HALF_BYTES, K_STAGE, Tile


def tiled_product(
    k: Kernel, *, m: int, n: int, depth: int, a_columns: int = 0, b_columns: int = 0, residual: int = 0,
    warps_m: int, warps_n: int, fragments_m: int, fragments_n: int, stages: int, straight: int = 0,
) -> None:  # fmt: skip
    """`depth` is K.  straight: the rounds one after another, no loop."""
    tile = Tile(warps_m, warps_n, fragments_m, fragments_n, stages)
    k.descriptor()
    layouts = (
        Layout(tile.rows, bool(a_columns), 0),
        Layout(tile.columns, bool(b_columns), tile.rows * K_STAGE * HALF_BYTES),
    )
    with k.region("place"):
        thread = k.thread_index()
        blocks = (k.block_index("block.m", "Y"), k.block_index("block.n", "X"))
        copies = _copies(k, tile, layouts, thread, blocks, (m if a_columns else depth, n if b_columns else depth))
        lane = k.LOP3_LUT("lane", thread, 31, RZ, AND)
        warp = k.SHF_R_U32_HI("warp", RZ, 5, thread)
        a, b = _fragments(k, tile, layouts, lane, warp)
        results = tuple(
            tuple(k.vector(f"c{i}.{j}", 4) for j in range(fragments_n)) for i in range(fragments_m)
        )  # fmt: skip
    Mainloop(k, tile, copies, a, b, results).run(depth, straight=bool(straight))
    with k.region("epilogue"):
        # asked anew: registers are worth more in the loop
        thread = k.thread_index("thread.again")
        lane = k.LOP3_LUT("lane.again", thread, 31, RZ, AND)
        warp = k.SHF_R_U32_HI("warp.again", RZ, 5, thread)
        along, across = _place(k, tile, warp, "again")
        row = k.IMAD("row", k.block_index("block.m.again", "Y"), tile.rows, RZ)
        k.IMAD(row, along, 16 * fragments_m, row)
        column = k.IMAD("column", k.block_index("block.n.again", "X"), tile.columns, RZ)
        k.IMAD(column, across, 8 * fragments_n, column)
        write(k, tile, results, lane=lane, warp=warp, row=row, column=column, n=n, residual=bool(residual))
    k.finish()


def _place(k: Kernel, tile: Tile, warp: R, name: str) -> tuple[R, R]:
    """The warp's place along M and N."""
    along = k.SHF_R_U32_HI(f"warp.m.{name}", RZ, tile.warps_n.bit_length() - 1, warp)
    across = k.LOP3_LUT(f"warp.n.{name}", warp, tile.warps_n - 1, RZ, AND)
    return along, across


def _copies(
    k: Kernel, tile: Tile, layouts: tuple[Layout, Layout], thread: R, blocks: tuple[R, R], strides: tuple[int, int]
) -> tuple[Copies, Copies]:
    one = k.move("one", 1)
    a, b = (
        copies_of(
            k, name, layout, thread=thread, block=block, one=one, threads=tile.threads, stride=stride,
            stage_bytes=tile.stage_bytes, stages=tile.stages,
        )
        for name, layout, block, stride in zip("ab", layouts, blocks, strides, strict=True)
    )  # fmt: skip
    return a, b


def _fragments(
    k: Kernel, tile: Tile, layouts: tuple[Layout, Layout], lane: R, warp: R
) -> tuple[Fragments, Fragments]:  # fmt: skip
    places = _place(k, tile, warp, "first")
    pieces = (tile.fragments_m, tile.fragments_n // 2)
    a, b = (
        fragments_of(k, name, layout, lane=lane, warp=place, pieces=count, stage_bytes=tile.stage_bytes)
        for name, layout, place, count in zip("ab", layouts, places, pieces, strict=True)
    )
    return a, b
