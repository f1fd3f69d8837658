"""The latency grid against code compiled by the vendor: a sample of what the bench derives from a whole corpus."""

import pytest
from grid_witnesses import ENOUGH, Derived, compiled, derive, expected, probes

from coppelius.isa.latency import RAW, WAR, WAW
from coppelius.isa.latency_reasons import REASONS

# what a tensor core of each depth leaves before these columns
DEPTHS = {
    "mma24": {"alu": 24, "fma": 24, "half": 24, "mma": 24, "queue": 22, "address": 23},
    "mma16": {"alu": 16, "fma": 16, "half": 16, "mma": 16, "queue": 14, "address": 15},
    "mma14": {"alu": 13, "fma": 13, "half": 13, "mma": 14, "queue": 11, "address": 12},
}


@pytest.fixture(scope="module")
def derived() -> Derived:
    return derive(compiled())


def test_no_compiled_pair_is_closer_than_its_cell(derived: Derived) -> None:
    assert derived.below() == []
    assert derived.instructions > 40_000


def test_compiled_code_alone_shows_most_of_what_it_can(derived: Derived) -> None:
    """Few kernels show fewer cells at their least than a corpus does, yet most that they show often."""
    often = {cell: seen for cell, seen in derived.cells.items() if seen.count >= ENOUGH and cell not in REASONS}
    exact = [cell for cell, seen in often.items() if seen.least == expected(cell)]
    assert len(often) > 60
    assert len(exact) > 0.8 * len(often), sorted(set(often) - set(exact))


def test_every_shape_of_mma_is_of_its_depth() -> None:
    """Probes of all shapes: what two toolkits leave after each, by kind of consumer."""
    shapes: dict[str, dict[str, int]] = {}
    for (shape, column), seen in derive(probes()).shapes.items():
        shapes.setdefault(shape, {})[column] = seen.least
    assert len(shapes) == 42
    assert [s for s, found in shapes.items() if not any(found.items() <= d.items() for d in DEPTHS.values())] == []
    for depth, cells in DEPTHS.items():
        assert {column: RAW[depth, column].cycles for column in cells} == cells


def test_reasons_name_cells() -> None:
    tables = {"RAW": RAW, "WAW": WAW, "WAW guarded": WAW, "WAR": WAR}
    assert [cell for cell in REASONS if cell[1:] not in tables[cell[0]]] == []
