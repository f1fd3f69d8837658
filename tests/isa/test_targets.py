"""Tables of other targets against nvdisasm for that target, as SM86's is judged: extremes, random words, flips.

A word that a target's table takes must print as nvdisasm prints it for that target and come back from its text.
What the table refuses is no difference: rows that a target prints otherwise, and that no lowered program needs, are
gone from it.
"""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
import row_words

from coppelius.isa.refusal import Refusal
from coppelius.isa.table import sm86, table_of
from coppelius.isa.targets.chips import SM90, SM121, forms_of
from coppelius.isa.targets.difference import gone

TARGETS = ("sm80", "sm89", "sm90", "sm120", "sm121")


@pytest.mark.parametrize("target", TARGETS)
def test_no_word_can_be_two_rows_of_a_target(target: str) -> None:
    assert table_of(target).ambiguities() == []


# sm120 prints as sm121 (the table is the same), sm89 as sm86 under two names
@pytest.mark.parametrize("target", ["sm80", "sm90", "sm121"])
def test_words_of_every_row_print_as_the_target_prints_them(target: str) -> None:
    table = table_of(target)
    rows = table.encodings
    words = [row_words.random_words(e, row_words.seeded(e), row_words.FEW_WORDS) for e in rows]
    words += [row_words.make_words(e, [{}]) for e in rows]
    found = row_words.differences(np.concatenate(words), table, target.upper(), parse_each=3)
    assert not found, row_words.report(found)


@pytest.mark.parametrize("target", ["sm90", "sm121"])
def test_a_flipped_bit_is_refused_or_prints_as_the_target_prints_it(target: str) -> None:
    table = table_of(target)
    rows = Random(target).sample(table.encodings, row_words.FEW_ROWS)
    words = [row_words.flips(row_words.random_words(e, row_words.seeded(e, 1), 1)) for e in rows]
    found = row_words.differences(np.concatenate(words), table, target.upper(), parse_each=15)
    assert not found, row_words.report(found)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_every_row_at_the_extremes_of_its_fields_on_a_target(target: str) -> None:
    table = table_of(target)
    words = np.concatenate([row_words.extremes(e) for e in table.encodings])
    found = row_words.differences(words, table, target.upper(), parse_each=9)
    assert not found, row_words.report(found)


def test_sm121_has_the_rows_of_sm120() -> None:
    assert [e.name for e in table_of("sm121").encodings] == [e.name for e in table_of("sm120").encodings]
    assert SM121.changes == ()


def test_a_difference_that_no_longer_fits_is_refused() -> None:
    with pytest.raises(ValueError, match="no rows are named"):
        gone("FADD:nothing")(forms_of(""))
    assert SM90.base == "sm89"


def test_an_unknown_target_is_refused_by_name() -> None:
    with pytest.raises(Refusal, match="no target 'sm75'; known: sm120, sm121, sm80, sm86"):
        table_of("sm75")
    assert table_of("sm86") is sm86()
