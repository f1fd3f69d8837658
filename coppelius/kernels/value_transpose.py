"""value-transpose: vt[head, d, s] = half(qkv[s, v columns of head, d]), turned in registers.

A lane takes four positions by four columns: four 128-bit loads, eight packings that put two positions into
one register, four 64-bit stores of four positions of one column.  A warp is four lanes of columns by eight of
positions: loads of 64 bytes a row and stores of 64 bytes a column, whole sectors both.  Sixteen warps make
128 positions by one head.
"""

from __future__ import annotations

from coppelius.builder.kernel import Kernel
from coppelius.isa.operands import RZ, R
from coppelius.isa.refusal import Refusal

POSITIONS = 128
DEPTH = 64
LANES = 4


def value_transpose(k: Kernel, *, sequence: int, heads: int, depth: int) -> None:
    """Grid: runs of 128 positions, heads."""
    if sequence % POSITIONS or depth != DEPTH:
        raise Refusal(f"value-transpose: {sequence} x {depth} is not whole tiles of {POSITIONS} x {DEPTH}")
    k.descriptor()
    row_pieces = 3 * heads * depth // LANES
    with k.region("place"):
        thread = k.thread_index()
        run, head = k.block_index("run"), k.block_index("head", "Y")
        # thread bits: 1:0 columns, 4:2 positions (the warp's), 6:5 columns, 8:7 positions (the block's)
        columns = _joined(k, "columns", thread, low=(0, 2), high=(5, 2))
        positions = _joined(k, "positions", thread, low=(2, 3), high=(7, 2))
        k.IMAD(positions, run, POSITIONS // LANES, positions)
        k.IMAD(columns, head, depth // LANES, columns)
        source_index = k.IMAD("source.index", positions, LANES * row_pieces, columns)
        out_index = k.IMAD("out.index", columns, sequence, positions)
        source = k.element("source", "qkv", k.IADD3("v.index", source_index, 2 * row_pieces // 3, RZ), 16)
        out = k.element("out", "vt", out_index, 8)
    with k.region("load"):
        lines = [k.LDG_E_128(f"line{i}", k.at(source, 16 * row_pieces * i)) for i in range(LANES)]
    with k.region("turn"):
        turned = []
        for column in range(LANES):
            # the first two columns' registers are free once they are packed
            packed = k.vector(f"packed{column}", 2) if column < 2 else lines[column - 2].pair(0)
            for pair in range(2):
                k.F2FP_PACK_AB(packed[pair], lines[2 * pair + 1][column], lines[2 * pair][column])
            turned.append(packed)
    # stored last: no packing waits until an earlier store has read its registers
    with k.region("store"):
        for column, packed in enumerate(turned):
            k.STG_E_64(k.at(out, 2 * sequence * column), packed)
    k.finish()


def _joined(k: Kernel, name: str, thread: R, *, low: tuple[int, int], high: tuple[int, int]) -> R:
    """Two fields (first bit, width) of the thread's number side by side."""
    joined = _field(k, f"{name}.low", thread, low)
    upper = _field(k, f"{name}.high", thread, high)
    made: R = k.IMAD(name, upper, 1 << low[1], joined)
    return made


def _field(k: Kernel, name: str, value: R, place: tuple[int, int]) -> R:
    first, width = place
    shifted = k.SHF_R_U32_HI(f"{name}.shifted", RZ, first, value) if first else value
    made: R = k.LOP3_LUT(name, shifted, (1 << width) - 1, RZ, 0xC0)
    return made
