"""gather: out[r] = table[tokens[r]], a row of zeros where the token is not below `vocabulary`."""

from __future__ import annotations

from coppelius.builder.kernel import Kernel
from coppelius.isa.operands import RZ


def gather(k: Kernel, *, width: int = 512) -> None:
    """One block a row, four columns a thread: one 128-bit load, guarded by the token, one 128-bit store."""
    k.descriptor()
    column = k.thread_index("column")
    row = k.block_index("row")
    lanes = k.move("lane.bytes", 16)
    stride = k.move("row.bytes", 4 * width)
    token_pointer = k.element("token.pointer", "tokens", row, 4)
    token = k.LDG_E("token", k.at(token_pointer))
    value = k.vector("value", 4)
    for lane in range(4):
        k.MOV(value[lane], RZ)
    out_row = k.IMAD_WIDE_U32("out.row", row, stride, k.parameter("out"))
    out = k.IMAD_WIDE_U32("out", column, lanes, out_row)
    known = k.compare("known", "LT", token, k.parameter("vocabulary"))
    table_row = k.IMAD_WIDE_U32("table.row", token, stride, k.parameter("table"))
    source = k.IMAD_WIDE_U32("source", column, lanes, table_row)
    k.LDG_E_128(value, k.at(source), guard=known)
    k.STG_E_128(k.at(out), value)
    k.finish()
