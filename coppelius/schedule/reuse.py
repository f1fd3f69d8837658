"""Reuse: an operand that the next reader of its slot wants again is kept beside the pipe.

Each register bank (even, odd) keeps one operand for each of the slots A, B, C, as it was when it was read.  The next
read through that slot and bank finds it or drops it.  The entry is not to outlive its register's value, a branch
target, a wait, or an instruction that lets another warp in; so a flag needs bit 109 and a stall of 1 to 11.

What it saves is bank conflicts, which the cycle model leaves out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from coppelius.isa.access import reads, writes
from coppelius.isa.control import LEGAL_KEEP
from coppelius.isa.form import FIXED, Encoding
from coppelius.program.flow import Block
from coppelius.program.program import Instruction

# compiled code rarely keeps one longer (assumed)
_WINDOW = 8

# (slot 0..2, reuse field, first register, registers)
_Operand = tuple[int, str, int, int]


def with_reuse(rows: Sequence[Instruction], blocks: Sequence[Block]) -> list[Instruction]:
    """The instructions with every reuse flag that pays and no other, given their control words."""
    operands = [_operands(row) for row in rows]
    written = [{t.number for t in writes(row.encoding, row.values) if t.space == "R"} for row in rows]
    lasting = [_lasts(row, after) for row, after in pairwise(rows)]
    out = []
    ends = {i: block.end for block in blocks for i in range(block.start, block.end)}
    for i, row in enumerate(rows):
        flags = {
            name: int(_pays(operands, written, lasting, i, k, ends[i])) for k, (_, name, _, _) in enumerate(operands[i])
        }
        flags |= {name: 0 for name in _fields(row.encoding).values() if name not in flags}
        out.append(row.with_fields(flags) if any(row[name] != flag for name, flag in flags.items()) else row)
    return out


@lru_cache(maxsize=8192)
def _fields(encoding: Encoding) -> dict[str, str]:
    """Slot name -> its reuse field."""
    return {f.name.removesuffix(".reuse"): f.name for f in encoding.fields if f.name.endswith(".reuse")}


def _operands(row: Instruction) -> list[_Operand]:
    fields = _fields(row.encoding)
    if not fields or row.encoding.latency != FIXED:
        return []
    found = []
    touched = [t for t in reads(row.encoding, row.values) if t.space == "R"]
    for slot, name in fields.items():
        numbers = [t.number for t in touched if t.slot == slot]
        if numbers:
            # the flag's own place says which slot: bits 122, 123, 124
            place = row.encoding.fields[row.encoding.column[name]].bits.parts[0][0] - 122
            found.append((place, name, min(numbers), len(numbers)))
    return found


def _lasts(row: Instruction, after: Instruction) -> bool:
    """Whether what is kept while one instruction reads is still there when the next one does."""
    return bool(row["keep"]) and row["stall"] in LEGAL_KEEP and row.encoding.latency == FIXED and not after["wait"]


def _pays(
    operands: Sequence[list[_Operand]], written: Sequence[set[int]], lasting: Sequence[bool], i: int, k: int, end: int
) -> bool:
    """Whether the next reader of this operand's slot and bank reads the same registers, still as they were."""
    slot, _, register, width = operands[i][k]
    own = set(range(register, register + width))
    for j in range(i, min(end - 1, i + _WINDOW)):
        if not lasting[j] or not own.isdisjoint(written[j]):
            return False
        for other, _, first, count in operands[j + 1]:
            if other == slot and first & 1 == register & 1:
                return (first, count) == (register, width)
    return False
