"""`coppelius choices`: the record, one product's candidates, unknown names."""

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from coppelius.cli.choices import choices_command
from coppelius.isa.refusal import Refusal
from coppelius.products import admission, cost
from coppelius.products.record import CHOICES, Choice
from coppelius.products.shape import PRODUCTS
from coppelius.products.tile import CANDIDATES

UNTYPED: Any = Choice  # a record is edited by hand


def called(*arguments: str) -> Result:
    return CliRunner().invoke(choices_command, list(arguments))


def test_the_record_has_a_line_a_product_and_says_what_keeps_it_from_its_limit() -> None:
    made = called()
    assert made.exit_code == 0, made.output
    lines = made.output.splitlines()
    assert lines[0].split() == ["product", "choice", "tile", "us", "basis", "card"]
    assert [line.split()[0] for line in lines[1:17]] == [p.identity for p in PRODUCTS]
    for start, card in ((18, cost.CARDS[0]), (37, cost.CARDS[1])):
        assert lines[start] == f"{card.name}: microseconds by limit"
        shown = lines[start + 2 : start + 18]
        assert [line.split()[0] for line in shown] == [p.identity for p in PRODUCTS]
    found = cost.estimate(CANDIDATES[2], PRODUCTS[12], cost.CARDS[0])
    assert lines[32].split()[:12] == [
        "tiled-cc-m512-n512-k1024", "2", "1", "0.26", f"{found.microseconds:.1f}", f"{found.share:.0%}",
        *(f"{found.floors[name]:.1f}" for name in ("tensor", "issue", "shared", "L2", "latency", "DRAM")),
    ]  # fmt: skip
    assert "tensor  1 block on the fullest SM, 0.78 on average; 10% is first copies" in lines[32]
    assert "L2 binds, the pipe alone would take" in lines[39]


def test_a_product_shows_every_candidate_and_why_one_does_not_serve() -> None:
    made = called("rr-m1024-n1408-k512")
    lines = made.output.splitlines()
    assert [line.lstrip("* ").split()[0] for line in lines[1:9]] == [str(n) for n in range(8)]
    assert [line[0] for line in lines[1:9]].count("*") == 1
    assert lines[8].endswith("256 does not divide n = 1408")
    assert "* recorded: 25.7 us modelled for GeForce RTX 3090" in lines
    for start, card in ((11, cost.CARDS[0]), (21, cost.CARDS[1])):
        assert lines[start] == f"{card.name}: cycles of a stage by limit, DRAM in microseconds"
        assert [line.lstrip("* ").split()[0] for line in lines[start + 2 : start + 9]] == list("0123456")
    stage = cost.stage_cycles(CANDIDATES[2], "rr", cost.CARDS[0], 3)
    assert f"{stage['tensor']:.0f}" in lines[15].split()
    for source in ("(published)", "(assumed)", "(mined)"):
        assert source in made.output


def test_json_holds_the_same() -> None:
    record = json.loads(called("--json").output)
    assert [entry["product"] for entry in record["record"]] == [p.identity for p in PRODUCTS]
    product = json.loads(called("tiled-rr-m1024-n1408-k512", "--json").output)
    assert [c["candidate"] for c in product["candidates"]] == list(range(8))
    assert product["candidates"][7]["against"] == ["256 does not divide n = 1408"]
    assert product["candidates"][2]["cards"]["GeForce RTX 3090"]["limit"] == "tensor"


def test_an_unknown_product_is_named_with_the_nearest() -> None:
    made = called("rr-m1024-n1409-k512")
    assert made.exit_code == 2
    assert "no product 'rr-m1024-n1409-k512'; nearest: tiled-rr-m1024-n1408-k512" in made.output


def test_a_record_that_does_not_hold_refuses_after_it_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    first, *rest = PRODUCTS
    record = {p.identity: CHOICES[p.identity] for p in rest}
    monkeypatch.setattr("coppelius.cli.choices.CHOICES", record)
    monkeypatch.setattr("coppelius.cli.choices.admit", lambda *_: admission.admit(record))
    made = called()
    assert made.output.splitlines()[1].split() == [first.identity, "-", "-", "-", "-", "-"]
    assert isinstance(made.exception, Refusal)
    assert str(made.exception).startswith(f"product {first.identity!r}: no recorded choice")


@pytest.mark.parametrize(
    ("line", "shown", "says"),
    [
        (UNTYPED("2", 1.0, "modelled", "x"), "2", "unknown candidate '2'"),
        (UNTYPED(None, 1.0, "modelled", "x"), "None", "unknown candidate None"),
        (2, "-", "recorded as 2"),
    ],
)
def test_a_line_that_names_no_candidate_is_shown_and_refused_by_its_product(
    line: Any, shown: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = PRODUCTS[0]
    record = {**CHOICES, first.identity: line}
    monkeypatch.setattr("coppelius.cli.choices.CHOICES", record)
    for arguments in ([], [first.identity]):
        made = called(*arguments)
        assert isinstance(made.exception, Refusal), made.exception
        assert str(made.exception).startswith(f"product {first.identity!r}: {says}")
    assert called().output.splitlines()[1].split()[:2] == [first.identity, shown]
