"""Copies from global to shared memory, 16 bytes a thread, in groups of one stage that a counted wait tells apart.

Of a warp's lanes the lowest bit counts two neighbouring chunks, the next two bits four lines, and the rest first the
line's other chunks: so eight lanes write each bank once, and a warp reads whole sectors and, of long lines, whole
128 bytes.  A thread's copies of one operand lie whole passes of the block apart, each with its own 64-bit pointer,
because a copy's own offset reaches 2 KiB only.

Before the first copy that follows a shared access stand three accesses that do nothing, as in nearly all compiled
code (the reason is unpublished; what they cost is three issue slots a stage).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from coppelius.builder.kernel import Kernel
from coppelius.builder.registers import Vector
from coppelius.isa.operands import PT, RZ, Address, P, R, Special
from coppelius.kernels.tiled.layout import AND, CHUNK_BYTES, Layout, address
from coppelius.products.tile import CHUNK, HALF_BYTES, K_STAGE

FILLERS = 3
GROUPS = 0  # the scoreboard that counts groups of copies
_ROW_STAGE = K_STAGE * HALF_BYTES  # bytes of one row in a stage

Emit = Callable[[], None]


@dataclass(frozen=True)
class Copies:
    """One operand's copies: `pointers[q]` and the shared address of copy 0; copy q lies q passes of lines further."""

    k: Kernel
    layout: Layout
    stage_bytes: int
    stages: int
    stride: int  # bytes of a line in global memory
    one: R  # holds 1
    pointers: tuple[Vector, ...]
    shared: R

    def stage(self, slot: int, guard: P = PT) -> list[Emit]:
        """Copies into this stage of the ring, in order."""
        return [partial(self._copy, q, slot, guard) for q in range(len(self.pointers))]

    def _copy(self, q: int, slot: int, guard: P) -> None:
        k, layout = self.k, self.layout
        to = slot * self.stage_bytes + layout.place + q * layout.lines // len(self.pointers) * CHUNK_BYTES
        ahead = 0 if layout.columns else slot * _ROW_STAGE
        k.LDGSTS_E_BYPASS_LTC128B_128(Address(self.shared, to), k.at(self.pointers[q], ahead), guard=guard)

    def before(self, slot: int) -> list[Emit]:
        """What moves the pointers on before they copy into this stage: rows go on a ring at a time by offsets."""
        step = K_STAGE * self.stride if self.layout.columns else self.stages * _ROW_STAGE
        if slot and not self.layout.columns:
            return []
        return [partial(self._move, pointer, step) for pointer in self.pointers]

    def _move(self, pointer: Vector, step: int) -> None:
        self.k.IMAD_WIDE_U32(pointer, self.one, step, pointer)


def copies_of(
    k: Kernel, name: str, layout: Layout, *, thread: R, block: R, one: R, threads: int, stride: int, stage_bytes: int,
    stages: int,
) -> Copies:  # fmt: skip
    """The thread's copies of operand `name`, in lines of `stride` halves; `block` numbers the tile along its side."""
    chunks = layout.chunks
    chunk = k.LOP3_LUT(f"{name}.chunk", thread, 1, RZ, AND)
    more = k.SHF_R_U32_HI(f"{name}.chunks", RZ, 2, thread)
    k.LOP3_LUT(more, more, chunks - 2, RZ, AND)
    k.IADD3(chunk, chunk, more, RZ)
    line = k.SHF_R_U32_HI(f"{name}.line", RZ, 1, thread)
    k.LOP3_LUT(line, line, 3, RZ, AND)
    fours = k.SHF_R_U32_HI(f"{name}.fours", RZ, 2 + (chunks.bit_length() - 1), thread)
    k.IMAD(line, fours, 4, line)
    shared = address(k, f"{name}.copy", layout, line, chunk)
    first = k.SHF_L_U32(f"{name}.first", chunk, CHUNK.bit_length() - 1, RZ)
    if layout.columns:
        k.IMAD(first, block, layout.span, first)
    else:
        k.IMAD(line, block, layout.span, line)
    index = k.IMAD(f"{name}.index", line, stride, first)
    pointers = [k.element(f"{name}.pointer0", name, index, HALF_BYTES)]
    pass_lines = threads // chunks
    for q in range(1, layout.lines // pass_lines):
        step = q * pass_lines * stride * HALF_BYTES
        pointers.append(k.IMAD_WIDE_U32(f"{name}.pointer{q}", one, step, pointers[0]))
    return Copies(k, layout, stage_bytes, stages, stride * HALF_BYTES, one, tuple(pointers), shared)


def fill(k: Kernel) -> None:
    """The accesses that do nothing."""
    for _ in range(FILLERS):
        k.LDS(RZ, Address(RZ), guard=~PT)


def commit(k: Kernel) -> None:
    """The copies since the last commit are a group."""
    k.LDGDEPBAR(write_barrier=GROUPS)


def await_groups(k: Kernel, left: int) -> None:
    """Until at most `left` of the youngest groups are under way, for every thread of the block."""
    k.DEPBAR_LE(Special(f"SB{GROUPS}"), left)
    k.BAR_SYNC_DEFER_BLOCKING(0)
