"""Fragments from shared memory to registers, four 8 x 8 matrices an LDSM: 16 rows of A, or 16 columns of B, by 16 of K.

Lane l gives the address of line l % 8 of matrix l / 8.  Of an operand whose rows run along K, matrices are taken as
they lie; of one whose lines are numbered by K, transposed.  HMMA wants A's matrices in the order (rows 0-7, K 0-7),
(8-15, 0-7), (0-7, 8-15), (8-15, 8-15), and B's as two pairs along K; which lanes say which follows from that:

    straight   line lane & 15, chunk lane >> 4                          A by rows, B by columns
    crossed    line (lane >> 4) 8 + (lane & 7), chunk lane >> 3 & 1     A by columns, B by rows
"""

from __future__ import annotations

from dataclasses import dataclass

from coppelius.builder.kernel import Kernel
from coppelius.builder.registers import Vector
from coppelius.isa.operands import RZ, Address, R
from coppelius.kernels.tiled.layout import AND, CHUNK_BYTES, Layout, address
from coppelius.products.tile import CHUNK, K_STEP, PIECE, STEPS


@dataclass(frozen=True)
class Fragments:
    """One operand's fragments of a warp; `quads[step][piece]` are where a step's go: one buffer a step."""

    k: Kernel
    layout: Layout
    stage_bytes: int
    base: R
    quads: tuple[tuple[Vector, ...], ...]

    @property
    def pieces(self) -> int:
        """LDSMs of a step."""
        return len(self.quads[0])

    def load(self, slot: int, step: int, piece: int) -> None:
        """This piece of a step of the stage, into the step's buffer."""
        layout = self.layout
        lines, chunks = (
            (step * K_STEP, piece * PIECE // CHUNK) if layout.columns else (piece * PIECE, step * K_STEP // CHUNK)
        )
        at = slot * self.stage_bytes + layout.place + lines * CHUNK_BYTES + chunks * layout.column_bytes
        load = self.k.LDSM_16_MT88_4 if layout.columns else self.k.LDSM_16_M88_4
        load(self.quads[step][piece], Address(self.base, at))


def fragments_of(
    k: Kernel, name: str, layout: Layout, *, lane: R, warp: R, pieces: int, stage_bytes: int
) -> Fragments:  # fmt: skip
    """The fragments of operand `name`; `warp` is the warp's place along the operand's side."""
    if (name == "a") != layout.columns:
        line = k.LOP3_LUT(f"{name}.line", lane, 15, RZ, AND)
        chunk = k.SHF_R_U32_HI(f"{name}.chunk", RZ, 4, lane)
    else:
        low = k.LOP3_LUT(f"{name}.low", lane, 7, RZ, AND)
        high = k.SHF_R_U32_HI(f"{name}.high", RZ, 4, lane)
        line = k.IMAD(f"{name}.line", high, 8, low)
        chunk = k.SHF_R_U32_HI(f"{name}.chunk", RZ, 3, lane)
        k.LOP3_LUT(chunk, chunk, 1, RZ, AND)
    if layout.columns:
        k.IMAD(chunk, warp, pieces * PIECE // CHUNK, chunk)
    else:
        k.IMAD(line, warp, pieces * PIECE, line)
    base = address(k, f"{name}.load", layout, line, chunk)
    quads = tuple(tuple(k.vector(f"{name}{step}.{p}", 4) for p in range(pieces)) for step in range(STEPS))
    return Fragments(k, layout, stage_bytes, base, quads)
