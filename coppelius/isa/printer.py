"""Fields to nvdisasm's own text, a column of instructions of one encoding at a time.

Where that text hides bits (a descriptor's register, a NaN's payload), a trailing `{name=value}` holds
them, so that the text always says the whole word but its control fields.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coppelius.isa.codec import Decoded
from coppelius.isa.form import Encoding
from coppelius.isa.slots import Columns
from coppelius.isa.values import Immediate, PackedHalves


def texts(decoded: Decoded, base: int = 0) -> list[str]:
    """Text of each instruction, braces included; branch targets are addresses, the first word lying at `base`.

    A refused word's text is empty.
    """
    out = [""] * len(decoded.uids)
    for encoding, where in decoded.groups():
        block = decoded.values[where]
        columns = {name: block[:, i].tolist() for name, i in encoding.column.items()}
        columns["address"] = (np.asarray(where) * 16 + base).tolist()
        for i, text in zip(where.tolist(), render(encoding, columns), strict=True):
            out[i] = text
    return out


def render(encoding: Encoding, columns: Columns) -> list[str]:
    """Texts of instructions of one encoding, from its columns and their addresses."""
    guards = encoding.guard.render(columns)
    heads = [f"@{g} {encoding.mnemonic}" if g else encoding.mnemonic for g in guards]
    for modifier in encoding.modifiers:
        suffixes = modifier.render(columns)
        if any(suffixes):
            heads = [h + s for h, s in zip(heads, suffixes, strict=True)]
    tails = _operands(encoding, columns, len(heads))
    lines = [f"{h} {t}".rstrip() if t else h for h, t in zip(heads, tails, strict=True)]
    braces = _braces(encoding, columns, len(heads))
    return lines if braces is None else [f"{ln} {b}" if b else ln for ln, b in zip(lines, braces, strict=True)]


def _operands(encoding: Encoding, columns: Columns, count: int) -> list[str]:
    """The comma-separated operand texts; operands without text are left out."""
    rendered = [slot.render(columns) for slot in encoding.operands]
    if not rendered:
        return [""] * count
    if all(slot.absent is None for slot in encoding.operands):
        return [", ".join(row) for row in zip(*rendered, strict=True)]
    return [", ".join([t for t in row if t]) for row in zip(*rendered, strict=True)]


def _braces(encoding: Encoding, columns: Columns, count: int) -> list[str] | None:
    """The `{...}` of each instruction, or None where no instruction has one."""
    parts: list[Sequence[str]] = []
    for hidden in encoding.hidden:
        column = hidden.render(columns)
        if any(column):
            parts.append(column)
    for slot in encoding.operands:
        if isinstance(slot, Immediate | PackedHalves):
            values = columns[slot.name]
            lossy = [_lost(slot, v) for v in values]
            if any(lossy):
                parts.append([f"{slot.name}={v:#x}" if lost else "" for v, lost in zip(values, lossy, strict=True)])
    if not parts:
        return None
    joined = [", ".join([t for t in row if t]) for row in zip(*parts, strict=True)]
    return [f"{{{j}}}" if j else "" for j in joined] if len(joined) == count else None


def _lost(slot: Immediate | PackedHalves, value: int) -> bool:
    """Whether the literal's text reads back as another value (a NaN payload)."""
    if isinstance(slot, PackedHalves):
        return slot.style.lossy and any(
            slot.style.parse(slot.style.text(h)) != h for h in (value >> 16, value & 0xFFFF)
        )
    return slot.style.lossy and slot.style.parse(slot.style.text(value)) != value
