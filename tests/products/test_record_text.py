"""The record's text: the reviewed file is what is written, and what is read is never run."""

from dataclasses import replace

import pytest

from coppelius.isa.refusal import Refusal
from coppelius.products.record import CHOICES, MEASURED, RUNS, Choice, Run
from coppelius.products.record_text import REVIEWED, read_record, record_text

FIRST = next(iter(CHOICES))
TEXT = REVIEWED.read_text(encoding="utf-8")


def test_the_reviewed_file_is_spelled_as_it_would_be_written() -> None:
    assert record_text(TEXT, CHOICES, RUNS) == TEXT
    assert read_record(TEXT, "record.py") == (CHOICES, RUNS)


def test_what_is_written_is_read_back_and_keeps_the_rest() -> None:
    measured = Choice(4, 20.5, MEASURED, "NVIDIA GeForce RTX 3090", "2026-12-01")
    runs = {(measured.card, measured.date): Run(82, 1695, 9751, "580.65.06, CUDA 13.0")}
    choices = CHOICES | {FIRST: measured}
    text = record_text(TEXT, choices, runs)
    assert read_record(text, "new.py") == (choices, runs)
    before, after = TEXT.splitlines(), text.splitlines()
    assert [line for line in before if line not in after] == [next(x for x in before if f'"{FIRST}"' in x)]
    assert len(after) == len(before) + 1
    # a second measurement leaves no trace of the first
    assert record_text(record_text(text, CHOICES, {}), choices, runs) == text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (TEXT.replace("Choice(2,", "exit(2,", 1), r"record\.py:\d+: a record holds literals"),
        (TEXT.replace("MODELLED, RTX_3090)", "MODELLED, open)", 1), r"record\.py:\d+: a record holds literals"),
        (TEXT.replace("Choice(2, ", "Choice(", 1), r"record\.py:\d+: .*missing 1 required"),
        (TEXT.replace("CHOICES: dict", "OTHERS: dict"), "gives no RUNS and CHOICES"),
        ("}", r"record\.py:1: no record"),
    ],
)
def test_what_is_no_record_is_refused_by_place(text: str, says: str) -> None:
    with pytest.raises(Refusal, match=says):
        read_record(text, "record.py")


def test_a_text_without_marks_is_refused() -> None:
    with pytest.raises(Refusal, match="no lines between"):
        record_text("CHOICES = {}\n", {FIRST: replace(CHOICES[FIRST])}, {})
