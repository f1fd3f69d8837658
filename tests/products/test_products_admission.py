"""Tiles against the rules that admit them, and a record with each defect against its refusal."""

import re
from dataclasses import replace
from typing import Any

import pytest

from coppelius import catalog
from coppelius.isa.refusal import Refusal
from coppelius.products import admission
from coppelius.products.admission import admit, objections, recorded, registers
from coppelius.products.record import CHOICES, Choice, Run
from coppelius.products.shape import PRODUCTS, Product
from coppelius.products.tile import CANDIDATES, Tile

FIRST = PRODUCTS[0]
UNTYPED: Any = Choice  # a record is edited by hand, and built before any type is checked

# fmt: off
FIGURES = [  # block of C, threads, registers, shared bytes, HMMAs a stage
    ((128, 128), 256, 128, 65536, 32),
    ((128, 128), 256, 128, 32768, 32),
    ((64, 64),   128,  80, 32768, 16),
    ((64, 64),   128,  80, 16384, 16),
    ((128, 64),  256,  80, 49152, 16),
    ((64, 128),  256,  80, 49152, 16),
    ((256, 128), 256, 216, 49152, 64),
    ((128, 256), 256, 216, 49152, 64),
]
OBJECTIONS = [
    (CANDIDATES[7], Product("rr", 1024, 1408, 512), ["256 does not divide n = 1408"]),
    (CANDIDATES[6], Product("cc", 1408, 512, 1024), ["256 does not divide m = 1408"]),
    (CANDIDATES[0], Product("rr", 1024, 512, 1344), ["4 stages of 32 do not divide k = 1344"]),
    (Tile(4, 4, 1, 2, 2), Product("rr", 1024, 512, 512), ["512 threads do not copy its operands' tiles evenly"]),
    (Tile(2, 2, 8, 8, 2), Product("rr", 1024, 512, 512), ["384 registers of 128 threads leave the register file"]),
    (Tile(4, 4, 4, 4, 2), Product("rr", 1024, 512, 512), []),
    (Tile(2, 4, 4, 4, 8), Product("rr", 1024, 512, 512), ["131072 shared bytes; a block has 101376"]),
]
BAD_RECORDS: list[tuple[dict[str, Any], str]] = [
    ({FIRST.identity: None},                          "no recorded choice"),
    ({FIRST.identity: Choice(8, 1.0, "modelled", "x")},  "unknown candidate 8; there are 0 to 7"),
    ({FIRST.identity: Choice(-1, 1.0, "modelled", "x")}, "unknown candidate -1"),
    ({FIRST.identity: UNTYPED("2", 1.0, "modelled", "x")},  "unknown candidate '2'; there are 0 to 7"),
    ({FIRST.identity: UNTYPED(2.0, 1.0, "modelled", "x")},  "unknown candidate 2.0"),
    ({FIRST.identity: Choice(True, 1.0, "modelled", "x")}, "unknown candidate True"),
    ({FIRST.identity: UNTYPED(None, 1.0, "modelled", "x")}, "unknown candidate None"),
    ({FIRST.identity: 2},                                "recorded as 2; a line is Choice(candidate, microseconds"),
    ({FIRST.identity: Choice(3, 0.0, "modelled", "x")},  "rests on no figure"),
    ({FIRST.identity: Choice(3, float("nan"), "modelled", "x")}, "rests on no figure"),
    ({FIRST.identity: UNTYPED(3, "1.0", "modelled", "x")}, "rests on no figure"),
    ({FIRST.identity: Choice(3, 1.0, "modelled", "")},   "rests on no figure"),
    ({FIRST.identity: Choice(3, 1.0, "guessed", "x")},   "its figure is 'guessed'; it is measured or modelled"),
    ({FIRST.identity: Choice(3, 1.0, "measured", "x")},  "measured on x, no date; the record has no such run"),
]
# fmt: on


@pytest.mark.parametrize(("tile", "figures"), list(zip(CANDIDATES, FIGURES, strict=True)), ids=str)
def test_what_a_candidate_takes(tile: Tile, figures: tuple[object, ...]) -> None:
    assert ((tile.rows, tile.columns), tile.threads, registers(tile), tile.shared_bytes, tile.products) == figures


@pytest.mark.parametrize(("tile", "product", "expected"), OBJECTIONS)
def test_why_a_tile_does_not_serve(tile: Tile, product: Product, expected: list[str]) -> None:
    assert objections(tile, product) == expected


def test_the_record_holds_and_names_every_product() -> None:
    assert list(admit()) == [p.identity for p in PRODUCTS]
    assert list(CHOICES) == [p.identity for p in PRODUCTS]


@pytest.mark.parametrize(("change", "says"), BAD_RECORDS)
def test_a_bad_record_is_refused_by_name(change: dict[str, Any], says: str) -> None:
    record = {name: choice for name, choice in (CHOICES | change).items() if choice is not None}
    with pytest.raises(Refusal, match=rf"^product '{FIRST.identity}': .*{re.escape(says)}"):
        admit(record)


def test_a_choice_that_does_not_serve_is_refused_with_its_reason() -> None:
    name = "tiled-rr-m1024-n1408-k512"
    record = CHOICES | {name: replace(CHOICES[name], candidate=7)}
    with pytest.raises(
        Refusal, match=rf"^product '{name}': candidate 7 \(128 x 256 x 2\) does not serve: 256 does not"
    ):
        admit(record)


def test_a_choice_of_no_product_is_refused() -> None:
    with pytest.raises(Refusal, match=r"^choice 'tiled-rr-m1-n1-k1': no such product"):
        admit(CHOICES | {"tiled-rr-m1-n1-k1": Choice(3, 1.0, "modelled", "x")})


def test_a_measured_choice_rests_on_its_run() -> None:
    record = CHOICES | {FIRST.identity: Choice(3, 20.0, "measured", "a card", "2026-12-01")}
    assert (
        admit(record, runs={("a card", "2026-12-01"): Run(82, 1695, 9751, "580.65.06")})[FIRST.identity]
        == CANDIDATES[3]
    )
    with pytest.raises(Refusal, match=r"measured on a card, 2026-12-01; the record has no such run"):
        admit(record, runs={("a card", "2026-12-02"): Run(82, 1695, 9751, "580.65.06")})


@pytest.mark.parametrize("record", [{}, *(change for change, _ in BAD_RECORDS)])
def test_a_refused_choice_leaves_the_catalogue_readable(
    record: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "CHOICES", record)
    assert recorded(FIRST) == CANDIDATES[3]


def test_limits_are_the_catalogues() -> None:
    assert admission.MOST_SHARED_BYTES == catalog.MOST_SHARED_BYTES
    assert admission.MOST_REGISTERS == catalog.MOST_REGISTERS
    assert admission.REGISTER_FILE == catalog.REGISTER_FILE
    assert admission.REGISTER_UNIT == catalog.REGISTER_UNIT
