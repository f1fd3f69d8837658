"""Fixtures of the checkers' tests: programs written as listings, control words included."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from coppelius.check.facts import Facts, facts_of
from coppelius.check.fixed_latency import fixed_latency_hazards
from coppelius.check.flow import graph_of
from coppelius.check.hazard import Hazard
from coppelius.check.scoreboard import scoreboard_hazards
from coppelius.check.verdict import judge
from coppelius.isa.word import from_bytes
from coppelius.program.listing import parse_listing
from coppelius.program.program import Program


def _program(text: str) -> Program:
    lines = [line.strip() for line in text.strip().splitlines()]
    return parse_listing("\n".join([".target sm86", *lines, ""]))


@pytest.fixture(scope="session")
def assemble() -> Callable[[str], bytes]:
    """Listing lines -> material."""
    return lambda text: _program(text).encode()


@pytest.fixture(scope="session")
def facts_from() -> Callable[[str], list[Facts]]:
    """Listing lines -> the facts of each word."""

    def made(text: str) -> list[Facts]:
        program = _program(text)
        return facts_of(program.decoded, from_bytes(program.encode()))

    return made


@pytest.fixture(scope="session")
def hazards(facts_from: Callable[[str], list[Facts]]) -> Callable[..., list[Hazard]]:
    """Listing lines -> the hazards of both schedule checks."""

    def found(text: str, targets: Mapping[int, Sequence[int]] | None = None) -> list[Hazard]:
        facts = facts_from(text)
        graph = graph_of(facts, targets)
        return [*scoreboard_hazards(facts, graph), *fixed_latency_hazards(facts, graph)]

    return found


@pytest.fixture(scope="session")
def verdict_of(assemble: Callable[[str], bytes]) -> Callable[..., dict[str, Any]]:
    """Listing lines and a declaration -> the verdict."""
    return lambda text, **declared: judge(assemble(text), declared)
