"""Words to fields and back, many at once: exact inverses on every word they accept.

Decoding looks bits [11:0] up, compares the never-varying bits of each candidate encoding, then reads
the fields of all words of one encoding together.  A word that no encoding accepts, or that holds a
code without meaning, is refused by name; nothing is guessed or masked away.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from coppelius.isa.form import Encoding
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
    """Fields of each word; refused words keep uid -1 and zero values (see `refusals` for why)."""
    uids = _match_legal(table, words)
    values = np.zeros((len(words), table.columns), dtype=np.int64)
    decoded = Decoded(table, uids, values)
    for encoding, where in decoded.groups():
        part = words[where]
        block = np.empty((len(where), len(encoding.fields)), dtype=np.int64)
        for column, f in enumerate(encoding.fields):
            block[:, column] = f.read(part)
        values[where, : block.shape[1]] = block
    return decoded


def _match_legal(table: Table, words: Words) -> Uids:
    """`match`, then field codes, the control rules and register alignment."""
    uids = match(table, words)
    for encoding, where in Decoded(table, uids, np.empty((len(words), 0), np.int64)).groups():
        ok = np.ones(len(where), dtype=np.bool_)
        part = words[where]
        for f, codes in table.limited(encoding):
            ok &= codes[f.read(part) & ((1 << f.width) - 1)]
        ok &= control_is_legal(encoding, part)
        ok &= aligned(encoding, part)
        uids[where[~ok]] = -1
    if not table.exclusive:
        uids = _retry(table, words, uids)
    return uids


def _retry(table: Table, words: Words, uids: Uids) -> Uids:
    """Words whose first candidate lacked a legal code may still be another encoding's."""
    for i in np.flatnonzero(uids < 0):
        word = words[i : i + 1]
        for encoding in table.by_opcode.get(int(word[0, 0]) & 0xFFF, ()):
            if not why_not(table, encoding, word):
                uids[i] = encoding.uid
                break
    return uids


def control_is_legal(encoding: Encoding, words: Words) -> npt.NDArray[np.bool_]:
    """The rules of stall, keep and reuse (see `control`), `bool[n]`."""
    stall = encoding.fields[encoding.column["stall"]].read(words)
    keep = encoding.fields[encoding.column["keep"]].read(words) != 0
    ok: npt.NDArray[np.bool_] = ~keep | ((stall >= 1) & (stall <= 11))
    for f in encoding.fields:
        if f.name.endswith(".reuse"):
            ok &= keep | (f.read(words) == 0)
    return ok


def aligned(encoding: Encoding, words: Words) -> npt.NDArray[np.bool_]:
    """Whether every pair and quad of registers starts at a multiple of its width, `bool[n]`."""
    ok = np.ones(len(words), dtype=np.bool_)
    for access in encoding.accesses:
        if access.width == 1:
            continue
        index = encoding.fields[encoding.column[access.field]].read(words)
        index = index >> access.shift
        zero = 255 if access.space == "R" else 63
        if isinstance(access.width, int):
            ok &= (index % access.width == 0) | (index == zero)
            continue
        name, widths = access.width
        code = encoding.fields[encoding.column[name]].read(words)
        span = np.array([widths.get(c, 1) for c in range(max(widths) + 1)])
        ok &= (index % span[np.minimum(code, len(span) - 1)] == 0) | (index == zero)
    return ok


def why_not(table: Table, encoding: Encoding, word: Words) -> str:
    """Why this one word (`uint64[1, 2]`) is not that encoding, or an empty string."""
    number = int(word[0, 1]) << 64 | int(word[0, 0])
    if number & encoding.mask != encoding.value:
        wrong = [n for n in range(128) if ((number & encoding.mask) ^ encoding.value) >> n & 1]
        return f"bits {wrong} are not what {encoding.name} holds there"
    for f, codes in table.limited(encoding):
        value = int(f.read(word)[0])
        if not codes[value & ((1 << f.width) - 1)]:
            return f"{encoding.name} has no {f.name} {value}"
    if not control_is_legal(encoding, word)[0]:
        return "keep (bit 109) with a stall outside 1..11, or reuse without it"
    return "" if aligned(encoding, word)[0] else f"{encoding.name}: a register pair or quad is misaligned"


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
        part = np.zeros((len(where), 2), dtype=np.uint64)
        block = decoded.values[where]
        for column, f in enumerate(encoding.fields):
            values = block[:, column]
            bad = (values < f.low) | (values > f.high)
            if np.any(bad):
                i = int(np.argmax(bad))
                raise Refusal(
                    f"instruction {where[i]} ({encoding.name}): {f.name} {values[i]} is not {f.low}..{f.high}"
                )
            f.write(part, values)
        words[where] |= part
        _refuse_illegal(decoded.table, encoding, words, where)
    return words


def _refuse_illegal(table: Table, encoding: Encoding, words: Words, where: npt.NDArray[np.intp]) -> None:
    part = words[where]
    ok = control_is_legal(encoding, part) & aligned(encoding, part)
    for f, codes in table.limited(encoding):
        ok &= codes[f.read(part) & ((1 << f.width) - 1)]
    if np.all(ok):
        return
    i = int(np.argmax(~ok))
    reason = why_not(table, encoding, part[i : i + 1])
    raise Refusal(f"instruction {where[i]} ({encoding.name}): {reason}")
