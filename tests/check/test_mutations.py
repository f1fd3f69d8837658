"""Loosen schedules in single places: the checkers must name whatever a twin that shares no code with them finds.

A seeded sample of what `tests/bench/bench_mutations.py` does with every image and every compiled kernel.
"""

import random
from pathlib import Path

import pytest
from cuda_launches import cubin_of, launches
from mutations import Strict, Tally
from schedule_twin import RAW, WAR, twin_of

from coppelius.check.facts import facts_of
from coppelius.check.flow import graph_of
from coppelius.check.verdict import schedule_hazards
from coppelius.container.reader import read_kernels
from coppelius.isa.word import from_bytes
from coppelius.program.listing import parse_listing
from coppelius.program.program import Program

CUBINS = Path(__file__).resolve().parents[1] / "data" / "cuda" / "cubins"
MOST, EACH = 120, 5  # instructions of a kernel, loosenings of it


# -O0 waits and stalls for more than it needs
@pytest.mark.parametrize(("variant", "share"), [("O3", 0.5), ("O0", 0.05), ("newer", 0.5), ("spill", 0.5)])
def test_no_loosening_of_compiled_code_is_missed(variant: str, share: float) -> None:
    tally, dice = Tally(), random.Random(variant)
    for path in sorted((CUBINS / variant).glob("*.cubin")):
        for kernel in read_kernels(path)[::2]:
            if kernel.instructions <= MOST:
                targets = {b.offset // 16: [t // 16 for t in b.targets] for b in kernel.indirect_branches}
                tally.add(kernel.name, Program.decode(kernel.code), dice, most=EACH, targets=targets)
    assert tally.missed == []
    assert tally.alarms == []
    assert tally.harmful > share * tally.tried
    assert tally.cautious < 0.01 * tally.tried
    assert tally.tried > 80


@pytest.mark.parametrize("variant", ["O3", "O0"])
def test_what_is_let_pass_is_clean_in_the_strict_emulator(variant: str) -> None:
    """As tests/emulator launches the kernels; most of what is named shows itself there."""
    strict, dice = Strict(), random.Random(variant)
    for (source, name), known in sorted(launches("[!et]*").items())[::3]:
        cubin = cubin_of(variant, source)
        kernel = next(k for k in cubin.kernels if k.name == name)
        if kernel.instructions > 2 * MOST or kernel.indirect_branches:
            continue
        program, tally = Program.decode(kernel.code), Tally()
        tally.add(name, program, dice, most=8)
        strict.add(known[0], cubin, program, tally.unnamed[:2], tally.named[:1])
    print(strict.line())
    assert strict.wrong == []
    assert strict.passed > 25
    assert strict.shown > 0.4 * strict.named


LOOP = """
    .target sm86
    [B------:R-:W-:Y:S13] ISETP.GE.AND P0, PT, R1, R2, PT
    [B0-----:R-:W-:-:S05] FADD R4, R5, R6
    [B------:R0:W-:-:S04] STS [R1], R4
    [B------:R-:W1:-:S02] MUFU.RCP R5, R1
    [B-1----:R-:W-:-:S05] @P0 BRA 0x10
    [B------:R-:W-:Y:S05] EXIT
"""


# fmt: off
SEEN = [
    (0, {"stall": 12}, set()),                               # the guard is read four instructions later
    (1, {"stall": 4}, {(RAW, 2, "R4")}),
    (1, {"wait": 0}, {(WAR, 1, "R4")}),                      # round the loop
    (2, {"read": 7}, {(WAR, 1, "R4")}),
    (3, {"write": 7}, {(RAW, 1, "R5")}),
    (3, {"write": 2}, {(RAW, 1, "R5")}),
    (4, {"wait": 0}, {(RAW, 1, "R5")}),
    (4, {"stall": 4}, {("minimum stall", 4, "")}),
    (3, {"stall": 1}, {("set to wait", 4, "SB1")}),
]
# fmt: on


@pytest.mark.parametrize(("place", "change", "expected"), SEEN)
def test_what_the_twin_sees(place: int, change: dict[str, int], expected: set[tuple[str, int, str]]) -> None:
    twin = twin_of(parse_listing("\n".join(line.strip() for line in LOOP.strip().splitlines()) + "\n"))
    assert twin.named == frozenset()
    assert twin.changed(place, **change) == frozenset(expected)
    assert twin.changed(place) == frozenset()


GROUPS = """
    .target sm86
    [B------:R-:W-:-:S04] LDGSTS.E [R2], [R4.64]
    [B------:R-:W0:-:S02] LDGDEPBAR
    [B------:R-:W-:-:S04] DEPBAR.LE SB0, 0x0
    [B------:R-:W1:-:S02] LDS R6, [R8]
    [B-1----:R-:W-:-:S05] EXIT
"""


@pytest.mark.parametrize(
    ("place", "changes", "named"),
    [
        (1, {}, False),
        (1, {"write_barrier": 7}, True),
        (1, {"write_barrier": 2}, True),
        (1, {"write_barrier": 1}, True),  # EXIT waits for it, for LDS
    ],
)
def test_a_group_of_copies_that_nothing_waits_for(place: int, changes: dict[str, int], named: bool) -> None:
    program = parse_listing("\n".join(line.strip() for line in GROUPS.strip().splitlines()) + "\n")
    rows = list(program)
    rows[place] = rows[place].with_fields(changes)
    loose = Program.of(rows, program.table)
    facts = facts_of(loose.decoded, from_bytes(loose.encode()))
    rule = ("group never waited for", 1, "")
    found = {(h.rule, h.ordinal, h.register) for h in schedule_hazards(facts, graph_of(facts))}
    assert (rule in found) == (rule in twin_of(loose).named) == named
