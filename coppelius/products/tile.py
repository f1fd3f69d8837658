"""A tile: how one block covers its part of C with warps and fragments, and what that takes of an SM.

A warp's part of C is `fragments_m` x `fragments_n` results of HMMA.16816 (16 rows, 8 columns), in registers.  A stage
is one step of 32 along K: the block's 32 x rows of A and 32 x columns of B in shared memory, halves.  `stages` of them
form a ring that copies run ahead in.
"""

from __future__ import annotations

from dataclasses import dataclass

K_STAGE = 32  # of K in a stage: two steps of HMMA.16816
K_STEP = 16
STEPS = K_STAGE // K_STEP
HALF_BYTES = 2
CHUNK = 8  # halves in 16 bytes: what one thread copies at once, and a row of an LDSM matrix
PIECE = 16  # rows of A or columns of B in one LDSM of four matrices


@dataclass(frozen=True)
class Tile:
    """Warps of a block along M and N, 16-row and 8-column fragments of a warp, stages of the ring."""

    warps_m: int
    warps_n: int
    fragments_m: int
    fragments_n: int
    stages: int

    @property
    def threads(self) -> int:
        """Of a block."""
        return 32 * self.warps_m * self.warps_n

    @property
    def rows(self) -> int:
        """Of C in a block."""
        return self.warps_m * self.fragments_m * 16

    @property
    def columns(self) -> int:
        """Of C in a block."""
        return self.warps_n * self.fragments_n * 8

    @property
    def stage_bytes(self) -> int:
        """Both operands' tiles of one stage."""
        return (self.rows + self.columns) * K_STAGE * HALF_BYTES

    @property
    def ring_bytes(self) -> int:
        """All stages."""
        return self.stages * self.stage_bytes

    @property
    def staging_bytes(self) -> int:
        """Where each warp turns 16 rows of its results at the end, in the ring's place."""
        return self.warps_m * self.warps_n * 16 * self.fragments_n * 8 * 4

    @property
    def shared_bytes(self) -> int:
        """Of a block."""
        return max(self.ring_bytes, self.staging_bytes)

    @property
    def products(self) -> int:
        """HMMAs of a warp in one stage."""
        return STEPS * self.fragments_m * self.fragments_n

    def copies(self, span: int) -> int:
        """16-byte copies of a thread for an operand's tile of `span` rows or columns; 0 if no whole number."""
        chunks = span * K_STAGE // CHUNK
        return 0 if chunks % self.threads else chunks // self.threads

    def __str__(self) -> str:
        return f"{self.rows} x {self.columns} x {self.stages}"


# Candidates as the record numbers them (specified): the tiles that were measured or that cuBLAS uses.
# fmt: off
CANDIDATES = (
    #    warps M, N, fragments 16, 8, stages
    Tile(2, 4, 4, 4, 4),  # 0: 128 x 128 x 4
    Tile(2, 4, 4, 4, 2),  # 1: 128 x 128 x 2
    Tile(2, 2, 2, 4, 4),  # 2:  64 x  64 x 4
    Tile(2, 2, 2, 4, 2),  # 3:  64 x  64 x 2
    Tile(4, 2, 2, 4, 4),  # 4: 128 x  64 x 4
    Tile(2, 4, 2, 4, 4),  # 5:  64 x 128 x 4
    Tile(4, 2, 4, 8, 2),  # 6: 256 x 128 x 2
    Tile(2, 4, 4, 8, 2),  # 7: 128 x 256 x 2
)
# fmt: on
