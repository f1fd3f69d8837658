"""Grid expressions: what they are worth, and what cannot be read."""

import re

import pytest

from coppelius.arena import grid
from coppelius.isa.refusal import Refusal

# fmt: off
WORTH = [
    (7,                            {},                     7),
    ("rows",                       {"rows": 12},          12),
    ("ceil_div(count, 1024)",      {"count": 0},           0),
    ("ceil_div(count, 1024)",      {"count": 1},           1),
    ("ceil_div(count, 1024)",      {"count": 2048},        2),
    ("ceil_div(positions*32,256)", {"positions": 9},       2),
    ("ceil_div(a + b, a - b)",     {"a": 5, "b": 3},       4),
    ("2 + 3 * 4",                  {},                    14),
    ("(2 + 3) * 4",                {},                    20),
    ("17 // 5",                    {},                     3),
    ("10 - 2 - 3",                 {},                     5),
    ("ceil_div(ceil_div(n, 3),2)", {"n": 10},              2),
]
UNREADABLE = [
    ("",                  "ends too early"),
    ("rows +",            "ends too early"),
    ("rows rows",         "unexpected 'rows'"),
    ("(rows",             "ends too early"),
    ("ceil_div(rows)",    "expected ',', found ')'"),
    ("rows / 2",          "cannot read '/ 2'"),
    ("rows ** 2",         "unexpected '*'"),
    ("__import__('os')",  "cannot read \"'os')\""),
    ("blocks",            "no value for blocks; known: rows"),
    ("rows // 0",         "division by 0"),
    ("ceil_div(rows, 0)", "division by 0"),
    ("2 - rows",          "-6 blocks; a grid entry is not negative"),
]
# fmt: on


@pytest.mark.parametrize(("entry", "values", "blocks"), WORTH)
def test_worth(entry: int | str, values: dict[str, int], blocks: int) -> None:
    assert grid.evaluate(entry, values) == blocks


@pytest.mark.parametrize(("entry", "says"), UNREADABLE)
def test_unreadable(entry: str, says: str) -> None:
    with pytest.raises(Refusal, match=re.escape(says)):
        grid.evaluate(entry, {"rows": 8})


def test_names() -> None:
    assert grid.names("ceil_div(count * 2, rows)") == {"count", "rows"}
    assert grid.names(3) == frozenset()
