"""C from the results: 16 rows of a warp at a time through shared memory, so that a warp writes whole 128-byte lines.

A lane holds columns 2t, 2t + 1 of rows g and g + 8 of each 8-column fragment (t = lane % 4, g = lane / 4).  It leaves
these pairs in its warp's own rows of shared memory and takes back four neighbouring columns.  The 16-byte column is
exclusive-ored with 2 (row & 3): the four rows that half a warp writes lie in four different 32-byte columns, and eight
lanes read all of a 128-byte line.

The ring's last barrier stands before all this and nothing is copied any more, so the ring's place is free; a warp meets
only its own accesses there, and those keep their order.  The residual's loads run one set of rows ahead.
"""

from __future__ import annotations

from dataclasses import dataclass

from coppelius.builder.kernel import Kernel
from coppelius.builder.registers import Vector
from coppelius.isa.operands import RZ, Address, R
from coppelius.kernels.tiled.layout import AND, XOR
from coppelius.products.tile import Tile

ROWS = 16  # of a set, as of a fragment
_F32 = 4


@dataclass(frozen=True)
class Turn:
    """A warp's 16 rows in shared memory: `into[j % 4]` for fragment j's pairs, `out[pass % 2]` for its rows."""

    width: int  # columns
    into: tuple[R, ...]
    out: tuple[R, ...]

    @property
    def row_bytes(self) -> int:
        """Of one row there."""
        return self.width * _F32

    @property
    def pass_rows(self) -> int:
        """Rows that one 128-bit access of a warp covers."""
        return 32 * 4 // self.width

    @property
    def passes(self) -> int:
        """Accesses for all 16 rows."""
        return ROWS // self.pass_rows


def write(
    k: Kernel, tile: Tile, results: tuple[tuple[Vector, ...], ...], *, lane: R, warp: R, row: R, column: R, n: int,
    residual: bool,
) -> None:  # fmt: skip
    """C's part of this warp; `row`, `column`: where it begins in C."""
    turn = _turn(k, tile.fragments_n * 8, lane, warp)
    lanes = turn.width // 4  # of a row
    inner = k.SHF_R_U32_HI("out.row", RZ, lanes.bit_length() - 1, lane)
    k.IADD3(inner, inner, row, RZ)
    across = k.LOP3_LUT("out.column", lane, lanes - 1, RZ, AND)
    k.IMAD(across, across, 4, column)
    index = k.IMAD("out.index", inner, n, across)
    c = k.element("c.pointer", "c", index, _F32)
    r = k.element("r.pointer", "r", index, _F32) if residual else None

    def offset(i: int, at: int) -> int:
        return (i * ROWS + at * turn.pass_rows) * n * _F32

    def residuals(i: int) -> list[Vector]:
        if r is None or i == len(results):
            return []
        return [k.LDG_E_128(f"r{i}.{at}", k.at(r, offset(i, at))) for at in range(turn.passes)]

    added = residuals(0)
    for i, quads in enumerate(results):
        ahead = residuals(i + 1)
        lines = _turned(k, turn, i, quads)
        for at, line in enumerate(lines):
            if r is not None:
                for part in range(4):
                    k.FADD(line[part], line[part], added[at][part])
            k.STG_E_128(k.at(c, offset(i, at)), line)
        added = ahead


def _turn(k: Kernel, width: int, lane: R, warp: R) -> Turn:
    """Addresses of the lane; a row's 16-byte columns are turned by 2 (row & 3)."""
    row_bytes = width * _F32
    start = k.IMAD("turn.start", warp, ROWS * row_bytes, RZ)
    group = k.SHF_R_U32_HI("turn.group", RZ, 2, lane)
    pair = k.LOP3_LUT("turn.pair", lane, 3, RZ, AND)
    mask = k.LOP3_LUT("turn.mask", group, 3, RZ, AND)
    inside = k.SHF_L_U32("turn.inside", mask, 5, RZ)
    k.IMAD(inside, pair, 8, inside)
    k.IMAD(inside, group, row_bytes, inside)
    first = k.IADD3("turn.into0", start, inside, RZ)
    into = [first, *(k.LOP3_LUT(f"turn.into{j}", first, 32 * j, RZ, XOR) for j in range(1, 4))]
    lanes = width // 4
    row = k.SHF_R_U32_HI("turn.row", RZ, lanes.bit_length() - 1, lane)
    column = k.LOP3_LUT("turn.column", lane, lanes - 1, RZ, AND)
    low = k.LOP3_LUT("turn.low", row, 3, RZ, AND)
    k.SHF_L_U32(low, low, 1, RZ)
    k.LOP3_LUT(column, column, low, RZ, XOR)
    k.IMAD(column, column, 16, start)
    out = [k.IMAD("turn.out0", row, row_bytes, column)]
    if 32 // lanes < 4:
        out.append(k.LOP3_LUT("turn.out1", out[0], 64, RZ, XOR))
    return Turn(width, tuple(into), tuple(out))


def _turned(k: Kernel, turn: Turn, i: int, quads: tuple[Vector, ...]) -> list[Vector]:
    """Fragment row i's quads as rows of four columns a lane."""
    for j, quad in enumerate(quads):
        for half in range(2):
            at = j // 4 * 128 + half * 8 * turn.row_bytes
            k.STS_64(Address(turn.into[j % 4], at), quad.pair(2 * half))
    lines = []
    for at in range(turn.passes):
        base = turn.out[at % len(turn.out)]
        lines.append(k.LDS_128(f"line{i}.{at}", Address(base, at * turn.pass_rows * turn.row_bytes)))
    return lines
