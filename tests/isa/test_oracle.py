"""The opcode table against nvdisasm: every row's extremes, random words, single-bit flips, compiled kernels.

A word that the table takes must print exactly as nvdisasm prints it (our braces and spacing apart), come
back from its text, and be a word that nvdisasm takes without `INVALID` or `???`.  A refused word is no
difference.  Each test asks for all its words at once and reports every difference.

Where the tool is absent its recorded answers judge fewer words of each row (`BRIEF`), because random words
hardly compress; COPPELIUS_RECORD=1 asks and records just those.

Run as a script it never ends: `python tests/isa/test_oracle.py [seconds] [seed]`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import oracle as nvdisasm
from row_words import (
    FLIPPED_ROWS,
    RANDOM_WORDS,
    SHOWN,
    differences,
    extremes,
    flips,
    make_words,
    random_words,
    report,
    seeded,
)

from coppelius.container.reader import read_kernels
from coppelius.isa import codec
from coppelius.isa.table import sm86
from coppelius.isa.word import Words, from_bytes

ROOT = Path(__file__).resolve().parents[2]


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
