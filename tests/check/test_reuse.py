"""The reuse cache three times over: the checker, the twin and the strict emulator name the same stale operands."""

from __future__ import annotations

import random

import pytest
from schedule_twin import twin_of

from coppelius.check.facts import facts_of
from coppelius.check.fixed_latency import fixed_latency_hazards
from coppelius.check.flow import graph_of
from coppelius.emulator.launch import launch
from coppelius.emulator.memory import Memory
from coppelius.isa.word import from_bytes
from coppelius.program.listing import parse_listing
from coppelius.program.program import Program

STALE = "stale reuse"
COUNT = 24


def drawn(seed: int) -> Program:
    """Operations on few registers, far enough apart, with reuse flags, waits and yields where dice say."""
    dice = random.Random(seed)
    lines = [f"[B------:R-:W-:-:S05] MOV R{n}, {n + 1:#x}" for n in range(6)]
    for _ in range(COUNT):
        keep = dice.random() < 0.9
        wait = dice.choice(["B0-----", *["B------"] * 9])
        a, b, c = (f"R{dice.randrange(6)}{'.reuse' if keep and dice.random() < 0.3 else ''}" for _ in range(3))
        text = dice.choice([f"FFMA R{dice.randrange(6)}, {a}, {b}, {c}", f"IADD3 R{dice.randrange(6)}, {a}, {b}, {c}"])
        guard = dice.choice(["@!PT ", *[""] * 9]) if "reuse" not in text else ""
        lines.append(f"[{wait}:R-:W-:{'-' if keep else 'Y'}:S06] {guard}{text}")
    lines.append("[B------:R-:W-:-:S05] EXIT")
    return parse_listing("\n".join([".target sm86", *lines, ""]))


def by_checker(program: Program) -> set[tuple[str, int, str]]:
    facts = facts_of(program.decoded, from_bytes(program.encode()))
    return {(h.rule, h.ordinal, h.register) for h in fixed_latency_hazards(facts, graph_of(facts)) if h.rule == STALE}


def by_twin(program: Program) -> set[tuple[str, int, str]]:
    return {named for named in twin_of(program).named if named[0] == STALE}


def by_emulator(program: Program) -> set[tuple[str, int, str]]:
    report = launch(
        program.encode(), grid=(1, 1, 1), block=(32, 1, 1), parameters=b"", memory=Memory(), mode="strict", collect=True
    )
    return {(f.rule, f.offset // 16, f.detail.split(" ")[0]) for f in report.findings if f.rule == STALE}


@pytest.mark.parametrize("start", range(0, 50, 25))
def test_all_three_agree(start: int) -> None:
    found = 0
    for seed in range(start, start + 25):
        program = drawn(seed)
        assert by_checker(program) == by_twin(program) == by_emulator(program), seed
        found += len(by_twin(program))
    assert found > 10


LINES = [
    "[B------:R-:W-:-:S05] FADD R1, R4.reuse, R2",
    "[B------:R-:W-:-:S05] FADD R4, R6, R5",
    "[B------:R-:W-:-:S05] @P0 BRA 0x50",
    "[B------:R-:W-:-:S05] FADD R3, R4, R2",
    "[B------:R-:W-:-:S05] FADD R4, R4, R2",
    "[B------:R-:W-:-:S05] EXIT",
]


def test_a_branch_ends_what_is_kept() -> None:
    program = parse_listing("\n".join([".target sm86", *LINES, ""]))
    assert by_checker(program) == by_twin(program) == set()
    straight = parse_listing("\n".join([".target sm86", LINES[0], LINES[1].replace("R6", "R7"), *LINES[3:], ""]))
    assert by_checker(straight) == by_twin(straight) == {(STALE, 2, "R4")}
