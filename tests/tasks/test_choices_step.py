"""The step that admits the record, and what one choice changes in the graph."""

from dataclasses import replace

import pytest

from coppelius import catalog
from coppelius.isa.refusal import Refusal
from coppelius.products import admission
from coppelius.products.record import RUNS
from coppelius.products.shape import PRODUCTS
from tasks.choices import choices
from tasks.graph import Graph, build_graph
from tasks.plan import Plan
from tasks.project import _row

ONE = "tiled-cc-m512-n512-k1024"


def graph_of_products() -> Graph:
    images = [catalog._product_row(product) for product in PRODUCTS]
    return build_graph([_row(image, catalog.declaration(image)) for image in images], Plan())


def test_a_record_that_holds_is_admitted_in_the_same_words_whatever_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    before = choices([], {})
    record = admission.CHOICES | {ONE: replace(admission.CHOICES[ONE], candidate=3)}
    monkeypatch.setattr(admission.admit, "__defaults__", (record, PRODUCTS, RUNS))
    assert choices([], {}) == before


def test_a_record_that_does_not_hold_refuses_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    record = {name: choice for name, choice in admission.CHOICES.items() if name != ONE}
    monkeypatch.setattr(admission.admit, "__defaults__", (record, PRODUCTS, RUNS))
    with pytest.raises(Refusal, match=f"^product '{ONE}': no recorded choice"):
        choices([], {})


def test_one_choice_changes_what_its_own_product_reads_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    before = graph_of_products().steps
    record = admission.CHOICES | {ONE: replace(admission.CHOICES[ONE], candidate=3)}
    monkeypatch.setattr(admission, "CHOICES", record)
    after = graph_of_products().steps
    changed = [name for name, step in after.items() if step.parameters != before[name].parameters]
    assert changed == [f"emit:{ONE}", f"check:{ONE}", "arena"]
    assert {name: step.inputs for name, step in after.items()} == {name: step.inputs for name, step in before.items()}
