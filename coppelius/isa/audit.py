"""How much of some machine code the opcode table handles: each word is decoded, encoded again and compared.

A word is handled (the same bits come back), refused (no row takes it) or wrong (other bits come back; the
table has a defect).  Refused words are counted by the mnemonics of their opcode's rows, or by the opcode.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from coppelius.isa import codec
from coppelius.isa.codec import Decoded
from coppelius.isa.table import Table
from coppelius.isa.word import Words, text

# words decoded together: enough for whole columns, little enough for memory
CHUNK = 1 << 17


@dataclass
class Audit:
    """Counts over words; `refused` by mnemonic or opcode, `first` one word of each, as HI64_LO64."""

    words: int = 0
    handled: int = 0
    wrong: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)

    @property
    def share(self) -> float:
        """Handled words over all words."""
        return self.handled / self.words if self.words else 1.0

    def __add__(self, other: Audit) -> Audit:
        return Audit(
            self.words + other.words,
            self.handled + other.handled,
            self.wrong + other.wrong,
            self.refused + other.refused,
            other.first | self.first,
        )


def audit(table: Table, words: Words) -> Audit:
    """What the table makes of these words."""
    total = Audit()
    for start in range(0, len(words), CHUNK):
        total += _chunk(table, words[start : start + CHUNK])
    return total


def _chunk(table: Table, words: Words) -> Audit:
    decoded = codec.decode(table, words)
    found = decoded.uids >= 0
    kept = np.flatnonzero(found)
    back = codec.encode(Decoded(table, decoded.uids[kept], decoded.values[kept]))
    wrong = int((back != words[kept]).any(axis=1).sum())
    result = Audit(len(words), len(kept) - wrong, wrong)
    for opcode, ordinals in _by_opcode(words, np.flatnonzero(~found)):
        name = opcode_name(table, opcode)
        result.refused[name] += len(ordinals)
        result.first.setdefault(name, text(words[ordinals[0]]))
    return result


def _by_opcode(words: Words, ordinals: npt.NDArray[np.intp]) -> list[tuple[int, npt.NDArray[np.intp]]]:
    opcodes = (words[ordinals, 0] & np.uint64(0xFFF)).astype(np.int64)
    return [(int(opcode), ordinals[opcodes == opcode]) for opcode in np.unique(opcodes)]


def opcode_name(table: Table, opcode: int) -> str:
    """The mnemonics of an opcode's rows, or its number."""
    stems = dict.fromkeys(e.mnemonic.split(".")[0] for e in table.by_opcode.get(opcode, ()))
    return "/".join(stems) if stems else f"opcode {opcode:#05x}"
