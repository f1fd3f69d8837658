"""The opcode table against nvdisasm: every row's extremes, random words, single-bit flips, compiled kernels.

A word that the table takes must print exactly as nvdisasm prints it (our braces and spacing apart), come
back from its text, and be a word that nvdisasm takes without `INVALID` or `???`.  A refused word is no
difference.  Each test asks for all its words at once and reports every difference.

Where the tool is absent its recorded answers judge fewer words of each row (`BRIEF`), because random words
hardly compress; COPPELIUS_RECORD=1 asks and records just those.

Run as a script it never ends: `python tests/isa/test_oracle.py [seconds] [seed]`.
"""

from __future__ import annotations

import collections
import re
import sys
import time
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import oracle as nvdisasm

from coppelius.container.reader import read_kernels
from coppelius.isa import codec, parser, printer
from coppelius.isa.bits import Field
from coppelius.isa.codec import Decoded
from coppelius.isa.control import CONTROL_FIELDS
from coppelius.isa.form import Encoding
from coppelius.isa.refusal import Refusal
from coppelius.isa.table import sm86
from coppelius.isa.word import Words, from_bytes, text, to_bytes

ROOT = Path(__file__).resolve().parents[2]
BRIEF = nvdisasm.RECORDING or not nvdisasm.available()
RANDOM_WORDS = 2 if BRIEF else 24  # a row; with the extremes about a second of nvdisasm
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
def differences(words: Words, *, parse_each: int = 1) -> list[str]:
    """What is wrong, a line each: encoding, text, or text read back (every `parse_each`th word)."""
    table = sm86()
    decoded = codec.decode(table, words)
    taken = np.flatnonzero(decoded.uids >= 0)
    if not len(taken):
        return []
    words, decoded = words[taken], Decoded(table, decoded.uids[taken], decoded.values[taken])
    found = []
    back = codec.encode(decoded)
    for i in np.flatnonzero((back != words).any(axis=1)):
        found.append(f"{name_of(decoded, i)}: {text(words[i])} encodes as {text(back[i])}")
    ours, theirs = printer.texts(decoded), nvdisasm.disassemble(to_bytes(words))
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


# ----------------------------------------------------------------------------------------- tests
def test_no_word_can_be_two_rows() -> None:
    assert sm86().ambiguities() == []


def test_every_row_at_the_extremes_of_its_fields() -> None:
    words = np.concatenate([extremes(e) for e in sm86().encodings])
    found = differences(words, parse_each=9)
    assert not found, report(found)


def test_random_words_of_every_row() -> None:
    words = np.concatenate([random_words(e, seeded(e), RANDOM_WORDS) for e in sm86().encodings])
    found = differences(words)
    assert not found, report(found)


def test_a_flipped_bit_is_refused_or_prints_alike() -> None:
    rng = Random(86)
    rows = rng.sample(sm86().encodings, min(FLIPPED_ROWS, len(sm86().encodings)))
    examples = np.concatenate([random_words(e, seeded(e, 1), 1) for e in rows])
    found = differences(flips(examples), parse_each=15)
    assert not found, report(found)


@pytest.mark.slow
def test_every_flipped_bit_of_every_row() -> None:
    found = []
    for some in (sm86().encodings[at : at + 60] for at in range(0, len(sm86().encodings), 60)):
        words = np.concatenate([random_words(e, seeded(e, 2), 4) for e in some] + [make_words(e, [{}]) for e in some])
        found += differences(flips(words), parse_each=9)
    assert not found, report(found)


def test_compiled_kernels_are_handled_whole(cuda_cubins: list[Path]) -> None:
    unique: dict[bytes, None] = {}
    for path in cuda_cubins:
        for kernel in read_kernels(path, relocatable=True):
            unique.update(dict.fromkeys(kernel.code[at : at + 16] for at in range(0, len(kernel.code), 16)))
    words = from_bytes(b"".join(unique))
    decoded = codec.decode(sm86(), words)
    refused = [codec.refusal_of(sm86(), words, int(i)) for i in np.flatnonzero(decoded.uids < 0)]
    assert not refused, f"{len(refused)} of {len(words)} words refused:\n" + "\n".join(refused[:SHOWN])
    found = differences(words, parse_each=11)
    assert not found, report(found)


# ------------------------------------------------------------------------------- without an end
def _rounds(seed: int) -> Iterator[tuple[int, Words]]:
    while True:
        parts = []
        for encoding in sm86().encodings:
            some = random_words(encoding, seeded(encoding, seed), 20)
            parts += [some, flips(some[:1])[seed % 7 :: 7]]
        yield seed, np.concatenate(parts)
        seed += 1


def main() -> int:
    """Fuzzes until told to stop: [seconds] [first seed]."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else float("inf")
    start, judged = time.monotonic(), 0
    for seed, words in _rounds(int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())):
        found = differences(words, parse_each=3)
        judged += len(words)
        if found:
            print(f"seed {seed}: {report(found)}")
            return 1
        print(f"seed {seed}: {judged} words, {time.monotonic() - start:.0f} s, no difference", flush=True)
        nvdisasm._answers.clear()
        if time.monotonic() - start > seconds:
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
