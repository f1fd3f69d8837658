"""Where a stage's halves lie in shared memory: columns of 16-byte chunks, swizzled by the column's parity.

A chunk is eight halves that are neighbours in global memory.  An operand stored by rows has 4 chunks of K in each of
its `span` rows; one stored by columns has span / 8 chunks in each of the stage's 32 rows.  Either way chunk c of line l
lies at

    16 (c lines + (l ^ 4 (c & 1)))

LDSM reads one chunk of eight neighbouring lines: 128 bytes in a row, each bank once.  Eight neighbouring threads of a
copy write two neighbouring chunks (a whole sector of global memory) of four lines: the exclusive or puts the odd
chunk's lines beside the even one's, each bank once again.  Everything beyond the lane's own chunk parity and line is a
fixed offset, so that one register addresses all of an operand.
"""

from __future__ import annotations

from dataclasses import dataclass

from coppelius.builder.kernel import Kernel
from coppelius.isa.operands import RZ, R
from coppelius.products.tile import CHUNK, HALF_BYTES, K_STAGE

XOR, AND = 0x3C, 0xC0  # LOP3 functions of A and B
CHUNK_BYTES = CHUNK * HALF_BYTES


@dataclass(frozen=True)
class Layout:
    """One operand's tile in a stage: `span` rows of A or columns of B; `columns`: stored with k numbering its lines."""

    span: int
    columns: bool
    place: int  # byte offset in the stage

    @property
    def lines(self) -> int:
        """Rows in global memory."""
        return K_STAGE if self.columns else self.span

    @property
    def chunks(self) -> int:
        """Of a line."""
        return (self.span if self.columns else K_STAGE) // CHUNK

    @property
    def column_bytes(self) -> int:
        """Of a column of chunks."""
        return self.lines * CHUNK_BYTES


def address(k: Kernel, name: str, layout: Layout, line: R, chunk: R) -> R:
    """The byte address of a chunk of a line in the ring's first stage, without `place`."""
    odd = k.LOP3_LUT(f"{name}.odd", chunk, 1, RZ, AND)
    k.SHF_L_U32(odd, odd, 2, RZ)
    k.LOP3_LUT(odd, odd, line, RZ, XOR)
    k.SHF_L_U32(odd, odd, 4, RZ)
    made: R = k.IMAD(f"{name}.shared", chunk, layout.column_bytes, odd)
    return made
