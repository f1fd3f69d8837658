"""One encoding's fields as arrays, so that all fields of many words move in a few vector operations.

A field is one or two runs of bits (`Part`), each in one half of the word.  Reading takes all runs of all
words at once and joins the runs of a field; writing is the reverse.  What a legal word must hold beyond
the bits that never vary is checked on the fields: codes with a meaning, aligned pairs and quads, no reuse
flag on an instruction that yields.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from coppelius.isa.bits import Field
from coppelius.isa.form import Encoding
from coppelius.isa.word import Words

Block = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# words handled at once: the arrays of a block stay in the cache
CHUNK = 8192


def legal(field: Field) -> Mask | None:
    """`bool[2**width]` of a field's legal codes, or None where all are."""
    every = 1 << field.width
    if field.codes is None or len(field.codes) == every:
        return None
    out = np.zeros(every, dtype=np.bool_)
    out[[code & (every - 1) for code in field.codes]] = True
    return out


def _runs(field: Field) -> Iterator[tuple[int, int, int, int]]:
    """(half, lowest bit in it, width, lowest bit in the value) of each run of a field within one half."""
    up = 0
    for low, width in field.bits.parts:
        if low < 64 < low + width:
            yield 0, low, 64 - low, up
            yield 1, 0, width - (64 - low), up + 64 - low
        else:
            yield low >> 6, low & 63, width, up
        up += width


class Layout:
    """Reads, writes and judges the fields of one encoding."""

    def __init__(self, encoding: Encoding) -> None:
        fields = encoding.fields
        runs = [(column, *run) for column, f in enumerate(fields) for run in _runs(f)]
        self.columns = np.array([r[0] for r in runs], dtype=np.intp)
        self.halves = np.array([r[1] for r in runs], dtype=np.intp)
        self.down = np.array([r[2] for r in runs], dtype=np.uint64)
        self.masks = np.array([(1 << r[3]) - 1 for r in runs], dtype=np.uint64)
        self.up = np.array([r[4] for r in runs], dtype=np.uint64)
        self.starts = np.flatnonzero(np.diff(self.columns, prepend=-1))
        self.single = len(self.starts) == len(self.columns)
        # runs of the low half, then of the high half
        self.order = np.argsort(self.halves, kind="stable")
        self.split = int(np.sum(self.halves == 0))
        self.invert = np.array([f.invert for f in fields], dtype=np.int64)
        self.signed = np.array([(1 << (f.width - 1)) if f.signed else 0 for f in fields], dtype=np.int64)
        self.low = np.array([f.low for f in fields], dtype=np.int64)
        self.high = np.array([f.high for f in fields], dtype=np.int64)
        self.limited = [(c, codes, len(codes) - 1) for c, f in enumerate(fields) if (codes := legal(f)) is not None]
        self.aligned = list(_alignments(encoding))
        self.keep = encoding.column["keep"]
        self.reuse = [c for c, f in enumerate(fields) if f.name.endswith(".reuse")]

    def read(self, words: Words) -> Block:
        """`int64[n, fields]` of `uint64[n, 2]`."""
        parts = ((words[:, self.halves] >> self.down) & self.masks) << self.up
        if not self.single:
            parts = np.bitwise_or.reduceat(parts, self.starts, axis=1)
        values = parts.view(np.int64)
        values ^= self.invert
        values ^= self.signed
        values -= self.signed
        return values

    def write(self, values: Block) -> Words:
        """`uint64[n, 2]` of `int64[n, fields]`; the caller has judged the values."""
        stored = (values ^ self.invert).view(np.uint64)[:, self.columns[self.order]]
        order = self.order
        parts = ((stored >> self.up[order]) & self.masks[order]) << self.down[order]
        words = np.zeros((len(values), 2), dtype=np.uint64)
        np.bitwise_or.reduce(parts[:, : self.split], axis=1, out=words[:, 0])
        np.bitwise_or.reduce(parts[:, self.split :], axis=1, out=words[:, 1])
        return words

    def out_of_range(self, values: Block) -> Mask:
        """`bool[n, fields]`: values that their fields cannot hold."""
        return (values < self.low) | (values > self.high)

    def judge(self, values: Block) -> Mask:
        """`bool[n]`: fields in range that also mean something together."""
        ok = np.ones(len(values), dtype=np.bool_)
        for column, codes, mask in self.limited:
            ok &= codes[values[:, column] & mask]
        for column, shift, zero, width in self.aligned:
            index = values[:, column] >> shift
            if isinstance(width, int):
                ok &= (index % width == 0) | (index == zero)
            else:
                span, spans = width
                ok &= (index % spans[np.minimum(values[:, span], len(spans) - 1)] == 0) | (index == zero)
        keep = values[:, self.keep]
        stall = values[:, self.keep - 1]
        ok &= (keep == 0) | ((stall >= 1) & (stall <= 11))
        for column in self.reuse:
            ok &= keep >= values[:, column]
        return ok


_Span = int | tuple[int, npt.NDArray[np.int64]]


def _alignments(encoding: Encoding) -> Iterator[tuple[int, int, int, _Span]]:
    """(column, shift, index of the zero register, registers spanned) of each access that may be misaligned."""
    for access in encoding.accesses:
        if access.width == 1 or access.space not in ("R", "UR"):
            continue
        column = encoding.column[access.field]
        zero = (1 << (encoding.fields[column].width - access.shift)) - 1  # RZ or URZ
        if isinstance(access.width, int):
            yield column, access.shift, zero, access.width
        else:
            name, widths = access.width
            spans = np.array([widths.get(code, 1) for code in range(max(widths) + 2)], dtype=np.int64)
            yield column, access.shift, zero, (encoding.column[name], spans)
