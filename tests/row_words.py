"""Words of table rows, and what nvdisasm says of them: extremes, random words, flips, differences.

Each asks for all its words at once and reports every difference.  Where nvdisasm is absent its recorded answers judge
fewer words of each row (`BRIEF`).
"""

from __future__ import annotations

import collections
import re
import zlib
from collections.abc import Iterable
from random import Random
from typing import Any

import numpy as np
import oracle as nvdisasm

from coppelius.isa import codec, parser, printer
from coppelius.isa.bits import Field
from coppelius.isa.codec import Decoded
from coppelius.isa.control import CONTROL_FIELDS
from coppelius.isa.form import Encoding
from coppelius.isa.refusal import Refusal
from coppelius.isa.table import Table, sm86
from coppelius.isa.word import Words, text, to_bytes

BRIEF = nvdisasm.RECORDING or not nvdisasm.available()
RANDOM_WORDS = 2 if BRIEF else 24  # a row; with the extremes about a second of nvdisasm
FEW_WORDS = 2 if BRIEF else 8  # of rows that another table judges again
FEW_ROWS = 3 if BRIEF else 40
FLIPPED_ROWS = 5 if BRIEF else 90  # rows whose example word has each of its bits flipped in an ordinary run
SHOWN = 60

_BRACES = re.compile(r" ?\{[A-Za-z][^{}]*=[^{}]*\}$")
_CONTROL_NAMES = {f.name for f in CONTROL_FIELDS}


def normal(printed: str) -> str:
    """Without our braces; one space where nvdisasm aligns."""
    return " ".join(_BRACES.sub("", printed).split())


# --------------------------------------------------------------------------------- words of a row
def legal_values(field: Field) -> list[int]:
    """All codes of a short field; of a long one the ends, the middle and single bits."""
    if field.codes is not None:
        codes = sorted(field.codes)
        return codes if len(codes) <= 64 else [*codes[:3], *codes[5::61], *codes[-2:]]
    if field.width <= 4:
        return list(range(field.low, field.high + 1))
    return sorted({field.low, field.high, 0, 1, 2, field.high - 1, field.high >> 1, field.high // 3 & ~3})


def random_value(rng: Random, field: Field) -> int:
    """A legal value, zero registers and aligned ones more often than chance has them."""
    if field.codes is not None:
        return rng.choice(sorted(field.codes))
    if rng.random() < 0.2:
        return rng.choice((field.low, field.high))
    value = rng.randint(field.low, field.high)
    return value & ~3 if rng.random() < 0.5 else value


def make_words(encoding: Encoding, rows: Iterable[dict[str, int]]) -> Words:
    """The words of these field values, others at their defaults; keep is set so that reuse may be."""
    filled = []
    for row in rows:
        values = dict(zip(encoding.column, encoding.defaults, strict=True)) | row
        filled.append(list(values.values()))
    block = np.array(filled, dtype=np.int64).reshape(-1, len(encoding.fields))
    words = np.tile(np.array([encoding.value & (1 << 64) - 1, encoding.value >> 64], np.uint64), (len(block), 1))
    for column, field in enumerate(encoding.fields):
        field.write(words, block[:, column])
    return words


def operand_fields(encoding: Encoding) -> list[Field]:
    """Its fields but the control word."""
    return [f for f in encoding.fields if f.name not in _CONTROL_NAMES]


def extremes(encoding: Encoding) -> Words:
    """Each field through its values, the others at their defaults or all at one end."""
    fields = operand_fields(encoding)
    if BRIEF:
        return make_words(encoding, [{f.name: legal_values(f)[-1]} for f in fields])
    rows: list[dict[str, int]] = []
    for rest in ({}, {f.name: legal_values(f)[0] for f in fields}, {f.name: legal_values(f)[-1] for f in fields}):
        rows += [rest | {f.name: value} for f in fields for value in legal_values(f)]
    return make_words(encoding, rows)


def random_words(encoding: Encoding, rng: Random, count: int) -> Words:
    """Words of this row, each field random."""
    fields = operand_fields(encoding)
    return make_words(encoding, [{f.name: random_value(rng, f) for f in fields} for _ in range(count)])


def flips(words: Words) -> Words:
    """Each word with each single bit flipped, but the control word's."""
    masks = [((1 << n) & (1 << 64) - 1, (1 << n) >> 64) for n in range(128) if not 105 <= n <= 121]
    return np.concatenate([words ^ np.array(mask, np.uint64) for mask in masks])


# ------------------------------------------------------------------------------------ comparison
def differences(words: Words, table: Table | None = None, sm: str = "SM86", *, parse_each: int = 1) -> list[str]:
    """What is wrong, a line each: encoding, text, or text read back (every `parse_each`th word)."""
    table = table or sm86()
    decoded = codec.decode(table, words)
    taken = np.flatnonzero(decoded.uids >= 0)
    if not len(taken):
        return []
    words, decoded = words[taken], Decoded(table, decoded.uids[taken], decoded.values[taken])
    found = []
    back = codec.encode(decoded)
    for i in np.flatnonzero((back != words).any(axis=1)):
        found.append(f"{name_of(decoded, i)}: {text(words[i])} encodes as {text(back[i])}")
    ours, theirs = printer.texts(decoded), nvdisasm.disassemble(to_bytes(words), sm)
    for i, (mine, yours) in enumerate(zip(ours, theirs, strict=True)):
        if yours is None or "INVALID" in yours or "???" in yours:
            found.append(f"{name_of(decoded, i)}: {text(words[i])} nvdisasm refuses it: {yours}; ours {mine}")
        elif normal(mine) != normal(yours):
            found.append(f"{name_of(decoded, i)}: {text(words[i])} nvdisasm {yours!r}; ours {mine!r}")
        elif i % parse_each == 0 and (reason := _reads_back(decoded, i, mine)):
            found.append(f"{name_of(decoded, i)}: {text(words[i])} {mine!r} {reason}")
    return found


def name_of(decoded: Decoded, i: Any) -> str:
    return decoded.table.encodings[decoded.uids[i]].name


def _reads_back(decoded: Decoded, i: int, line: str) -> str:
    """Why the text does not give the word again, or nothing; control fields are no part of a text."""
    encoding = decoded.table.encodings[decoded.uids[i]]
    try:
        read, values = parser.parse(decoded.table, line, 16 * i)
    except Refusal as refusal:
        return f"is not read back: {refusal}"
    if read is not encoding:
        return f"reads back as {read.name}"
    wanted = decoded.values[i, : len(encoding.fields)].tolist()
    wrong = [
        f"{f.name} {new} for {old}"
        for f, old, new in zip(encoding.fields, wanted, values, strict=True)
        if old != new and f.name not in _CONTROL_NAMES
    ]
    return f"reads back with {', '.join(wrong)}" if wrong else ""


def report(found: list[str]) -> str:
    """All differences by row, a few of each."""
    by_row: dict[str, list[str]] = collections.defaultdict(list)
    for line in found:
        by_row[line.partition(":")[0]].append(line)
    lines = [f"{len(found)} differences in {len(by_row)} rows; {nvdisasm.description()}"]
    lines += [f"  {len(rows)} x {row}" for rows in by_row.values() for row in rows[:2]]
    return "\n".join(lines[:SHOWN])


def seeded(encoding: Encoding, seed: int = 0) -> Random:
    """A row's own sequence: another row that changes does not change it."""
    return Random(zlib.crc32(encoding.name.encode()) + seed)
