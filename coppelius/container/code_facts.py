"""What the driver is told of a kernel's code: where it ends, where warps meet, its barriers; read from the words.

What ptxas lists as cooperative are the instructions at which all threads of a warp must meet to have a meaning: SHFL,
MATCH, REDUX and VOTE, save the vote of PT, which only asks who is there.  The words are matched with the target's
table, all kernels' at once; fields are read of barriers and votes alone.

Refused: indirect branches, whose targets the driver is told and the words do not hold.  Not seen: meetings that a
compiler leaves as NOP, and REDUX that it made for an atomic instruction, which ptxas lists elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from coppelius.isa import codec
from coppelius.isa.latency import stem
from coppelius.isa.refusal import Refusal
from coppelius.isa.table import Table, table_of
from coppelius.isa.values import Named
from coppelius.isa.word import WORD_BYTES, from_bytes

# measured: what ptxas 13.0 and 13.5 list in the 714 kernels of the tests' compiled code
COOPERATIVE = frozenset(("SHFL", "MATCH", "REDUX", "VOTE"))
INDIRECT = frozenset(("BRX", "BRXU", "JMX", "JMXU"))
ALL_BARRIERS = 16  # measured: told where a register names the barrier
_PT = 7
_Numbers = npt.NDArray[np.intp]


@dataclass(frozen=True)
class CodeFacts:
    """Byte offsets, ascending; `barriers` is the highest named one and one; `divergent`: it reconverges by BSSY."""

    exits: tuple[int, ...]
    cooperative: tuple[int, ...]
    barriers: int
    reads_block_z: bool
    divergent: bool


def facts_of(target: str, codes: Sequence[bytes], names: Sequence[str]) -> list[CodeFacts]:
    """The facts of each of these kernels' words; refuses by name what they cannot tell."""
    table = table_of(target)
    words = from_bytes(b"".join(codes))
    uids = codec.match(table, words)
    ends = np.cumsum([len(code) // WORD_BYTES for code in codes])
    if (uids < 0).any():
        unknown = int(np.flatnonzero(uids < 0)[0])
        raise Refusal(f"{names[_owner(ends, unknown)]}: {codec.refusal_of(table, words, unknown)}")
    found = {kind: np.flatnonzero(row[uids]) for kind, row in _kinds(table).items()}
    if len(found["indirect"]):
        first = int(found["indirect"][0])
        name = names[_owner(ends, first)]
        raise Refusal(f"{name}: {table.encodings[uids[first]].mnemonic} branches where only a compiler knows")
    fields = _Fields(table, words, uids)
    found["cooperative"] = found["cooperative"][~fields.asks_who_is_there(found["cooperative"])]
    found["block_z"] = found["block_z"][fields.read_block_z(found["block_z"])]
    numbers = fields.barriers(found["barrier"])
    starts = [0, *ends[:-1].tolist()]
    return [_one(found, numbers, start, end) for start, end in zip(starts, ends.tolist(), strict=True)]


def _one(found: dict[str, _Numbers], numbers: _Numbers, start: int, end: int) -> CodeFacts:
    def mine(kind: str) -> slice:
        low, high = np.searchsorted(found[kind], (start, end))
        return slice(int(low), int(high))

    def offsets(kind: str) -> tuple[int, ...]:
        return tuple(((found[kind][mine(kind)] - start) * WORD_BYTES).tolist())

    def any_of(kind: str) -> bool:
        here = mine(kind)
        return bool(here.start < here.stop)

    barriers = int(numbers[mine("barrier")].max(initial=-1)) + 1
    return CodeFacts(offsets("exit"), offsets("cooperative"), barriers, any_of("block_z"), any_of("divergent"))


def _owner(ends: _Numbers, ordinal: int) -> int:
    return int(np.searchsorted(ends, ordinal, side="right"))


@cache
def _kinds(table: Table) -> dict[str, npt.NDArray[np.bool_]]:
    """For each kind of instruction that matters here, which encodings are of it."""
    stems = [stem(encoding) for encoding in table.encodings]
    special = [any(isinstance(s, Named) and "SR_CTAID.Z" in s.names.values() for s in e.operands)
               for e in table.encodings]  # fmt: skip
    return {
        "exit": np.array([name == "EXIT" for name in stems]),
        "cooperative": np.array([name in COOPERATIVE for name in stems]),
        "indirect": np.array([name in INDIRECT for name in stems]),
        "barrier": np.array([name == "BAR" for name in stems]),
        "divergent": np.array([name == "BSSY" for name in stems]),
        "block_z": np.array(special),
    }


class _Fields:
    """Fields of some words, read an encoding at a time."""

    def __init__(self, table: Table, words: npt.NDArray[np.uint64], uids: npt.NDArray[np.int16]) -> None:
        self.table, self.words, self.uids = table, words, uids

    def _column(self, where: _Numbers, uid: int, name: str) -> npt.NDArray[np.int64]:
        encoding = self.table.encodings[uid]
        return self.table.layout(encoding).read(self.words[where])[:, encoding.column[name]]

    def asks_who_is_there(self, where: _Numbers) -> npt.NDArray[np.bool_]:
        """VOTE whose predicate is PT."""
        out = np.zeros(len(where), dtype=bool)
        for uid in np.unique(self.uids[where]).tolist():
            if stem(self.table.encodings[uid]) == "VOTE":
                mine = self.uids[where] == uid
                inverted = self._column(where[mine], uid, "Ps.not")
                out[mine] = (self._column(where[mine], uid, "Ps") == _PT) & (inverted == 0)
        return out

    def read_block_z(self, where: _Numbers) -> npt.NDArray[np.bool_]:
        """Reads of the block's third coordinate among those of special registers."""
        out = np.zeros(len(where), dtype=bool)
        for uid in np.unique(self.uids[where]).tolist():
            mine = self.uids[where] == uid
            for slot in self.table.encodings[uid].operands:
                if isinstance(slot, Named):
                    codes = [code for code, name in slot.names.items() if name == "SR_CTAID.Z"]
                    out[mine] |= np.isin(self._column(where[mine], uid, slot.name), codes)
        return out

    def barriers(self, where: _Numbers) -> _Numbers:
        """The number of each barrier, the last one where a register names it."""
        out = np.full(len(where), ALL_BARRIERS - 1, dtype=np.intp)
        for uid in np.unique(self.uids[where]).tolist():
            encoding = self.table.encodings[uid]
            named = any(a.space == "R" and a.field == "barrier" for slot in encoding.operands for a in slot.accesses)
            if "barrier" in encoding.column and not named:
                mine = self.uids[where] == uid
                out[mine] = self._column(where[mine], uid, "barrier")
        return out
