"""Words to fields and back, many at once: exact inverses on every word they accept.

Decoding looks bits [11:0] up, compares the never-varying bits of each candidate encoding, then reads
the fields of all words of one encoding together.  A word that no encoding accepts, or that holds a
code without meaning, is refused by name; nothing is guessed or masked away.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from coppelius.isa.control import legal_keep
from coppelius.isa.form import Encoding
from coppelius.isa.layout import CHUNK, Layout
from coppelius.isa.refusal import Refusal
from coppelius.isa.table import Table
from coppelius.isa.word import Words, text

Uids = npt.NDArray[np.int16]
Fields = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Decoded:
    """`uids int16[n]`: the encoding of each word, -1 where refused; `values int64[n, columns]`: its fields in order."""

    table: Table
    uids: Uids
    values: Fields

    def groups(self) -> list[tuple[Encoding, npt.NDArray[np.intp]]]:
        """(encoding, ordinals of its words) for each encoding present."""
        if not len(self.uids):
            return []
        order = np.argsort(self.uids, kind="stable")
        sorted_uids = self.uids[order]
        starts = np.flatnonzero(np.diff(sorted_uids, prepend=np.int16(-2)))
        ends = np.append(starts[1:], len(order))
        return [
            (self.table.encodings[sorted_uids[s]], order[s:e])
            for s, e in zip(starts, ends, strict=True)
            if sorted_uids[s] >= 0
        ]


def match(table: Table, words: Words) -> Uids:
    """The encoding whose never-varying bits each word has, `int16[n]`; -1 for none."""
    low, high = words[:, 0], words[:, 1]
    rows = table.candidates[(low & np.uint64(0xFFF)).astype(np.intp)]
    masks = table.masks
    found = np.full(len(words), -1, dtype=np.int16)
    pending = np.arange(len(words))
    for k in range(rows.shape[1]):
        uid = rows[pending, k]
        pending = pending[uid >= 0]
        if not len(pending):
            break
        uid = rows[pending, k]
        row = masks[uid]
        fits = ((low[pending] & row[:, 0]) == row[:, 2]) & ((high[pending] & row[:, 1]) == row[:, 3])
        fits &= found[pending] < 0
        found[pending[fits]] = uid[fits]
        if table.exclusive:
            pending = pending[~fits]
    return found


def decode(table: Table, words: Words) -> Decoded:
    """Fields of each word; refused words keep uid -1 and zero values (see `refusal_of` for why)."""
    values = np.zeros((len(words), table.columns), dtype=np.int64)
    decoded = Decoded(table, match(table, words), values)
    doubtful: list[npt.NDArray[np.intp]] = []
    for encoding, where in decoded.groups():
        layout = table.layout(encoding)
        for start in range(0, len(where), CHUNK):
            part = where[start : start + CHUNK]
            block = layout.read(words[part])
            ok = layout.judge(block)
            if not ok.all():
                decoded.uids[part[~ok]] = -1
                if encoding.opcode in table.shared_opcodes:
                    doubtful.append(part[~ok])
                part, block = part[ok], block[ok]
            values[part, : block.shape[1]] = block
    if doubtful:
        _retry(decoded, words, np.concatenate(doubtful))
    return decoded


def _retry(decoded: Decoded, words: Words, doubtful: npt.NDArray[np.intp]) -> None:
    """Words whose first candidate lacked a legal code may still be another encoding's."""
    table = decoded.table
    opcodes = words[doubtful, 0] & np.uint64(0xFFF)
    for opcode in np.unique(opcodes).tolist():
        left = doubtful[opcodes == opcode]
        for encoding in table.by_opcode[opcode]:
            layout, row = table.layout(encoding), table.masks[encoding.uid]
            fits = ((words[left] & row[:2]) == row[2:]).all(axis=1)
            block = layout.read(words[left])
            fits &= layout.judge(block)
            decoded.uids[left[fits]] = encoding.uid
            decoded.values[left[fits], : block.shape[1]] = block[fits]
            left = left[~fits]


def why_not(table: Table, encoding: Encoding, word: Words) -> str:
    """Why this one word (`uint64[1, 2]`) is not that encoding, or an empty string."""
    number = int(word[0, 1]) << 64 | int(word[0, 0])
    if number & encoding.mask != encoding.value:
        wrong = [n for n in range(128) if ((number & encoding.mask) ^ encoding.value) >> n & 1]
        return f"bits {wrong} are not what {encoding.name} holds there"
    layout = table.layout(encoding)
    return _objection(encoding, layout, layout.read(word))


def _objection(encoding: Encoding, layout: Layout, block: Fields) -> str:
    """What is wrong with the fields of one instruction (`int64[1, fields]`), or an empty string."""
    for column, codes, mask in layout.limited:
        value = int(block[0, column])
        if not codes[value & mask]:
            return f"{encoding.name} has no {encoding.fields[column].name} {value}"
    stall, keep = (int(block[0, encoding.column[name]]) for name in ("stall", "keep"))
    if keep and not legal_keep(stall):
        return f"stall {stall} with keep (bit 109): only 1..11 go without a yield"
    if not keep and any(block[0, column] for column in layout.reuse):
        return "reuse without keep (bit 109)"
    return "" if layout.judge(block)[0] else f"{encoding.name}: a register pair or quad is misaligned"


def refusal_of(table: Table, words: Words, ordinal: int) -> str:
    """One line that names the word, its offset and the nearest encoding's objection."""
    word = words[ordinal : ordinal + 1]
    opcode = int(word[0, 0]) & 0xFFF
    number = int(word[0, 1]) << 64 | int(word[0, 0])
    near = sorted(table.by_opcode.get(opcode, ()), key=lambda e: ((number & e.mask) ^ e.value).bit_count())
    reasons = [why_not(table, e, word) for e in near]
    reason = reasons[0] if reasons else f"no {table.target} instruction has opcode {opcode:#05x}"
    return f"offset {ordinal * 16:#x}: word {text(word[0])} refused: {reason}"


def require(decoded: Decoded, words: Words) -> Decoded:
    """The same, or a refusal that names the first word that does not decode."""
    bad = np.flatnonzero(decoded.uids < 0)
    if len(bad):
        more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
        raise Refusal(refusal_of(decoded.table, words, int(bad[0])) + more)
    return decoded


def encode(decoded: Decoded) -> Words:
    """Fields -> `uint64[n, 2]`; refuses by name a value that its field does not admit."""
    if np.any(decoded.uids < 0):
        raise Refusal(f"instruction {int(np.argmax(decoded.uids < 0))} has no encoding")
    words = decoded.table.values[decoded.uids]
    for encoding, where in decoded.groups():
        layout = decoded.table.layout(encoding)
        width = len(encoding.fields)
        for start in range(0, len(where), CHUNK):
            part = where[start : start + CHUNK]
            block = decoded.values[part, :width]
            outside = layout.out_of_range(block)
            if outside.any():
                _refuse_range(encoding, part, block, outside)
            ok = layout.judge(block)
            if not ok.all():
                i = int(np.argmin(ok))
                reason = _objection(encoding, layout, block[i : i + 1])
                raise Refusal(f"instruction {part[i]} ({encoding.name}): {reason}")
            words[part] |= layout.write(block)
    return words


def _refuse_range(
    encoding: Encoding, where: npt.NDArray[np.intp], block: Fields, outside: npt.NDArray[np.bool_]
) -> NoReturn:
    i, column = (int(n) for n in np.argwhere(outside)[0])
    f = encoding.fields[column]
    raise Refusal(f"instruction {where[i]} ({encoding.name}): {f.name} {block[i, column]} is not {f.low}..{f.high}")
