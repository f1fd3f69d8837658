"""Compaction against its twin: try each stall, front to back, and ask the checkers."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable

import pytest
from vendor_schedule import hazards

from coppelius.isa.control import legal_keep
from coppelius.isa.latency import RAW, producer_class
from coppelius.program.flow import blocks
from coppelius.program.program import Program
from coppelius.schedule.compaction import compact_stalls
from coppelius.schedule.schedule import schedule

# random stalls come from these: what a hand might write
STALLS = (0, 1, 2, 4, 5, 6, 9, 13, 15)


def with_stalls(program: Program, stalls: list[int]) -> Program:
    pairs = zip(program, stalls, strict=True)
    return Program.of([r.with_fields({"stall": s, "keep": int(legal_keep(s)) & r["keep"]}) for r, s in pairs])


def barrier_is_near(program: Program) -> bool:
    """Whether BAR stands closer to what is not of fixed latency than compiled code leaves it: no check asks."""
    rows = list(program)
    for b in blocks(program):
        for i in range(b.start, b.end):
            for j in range(i + 1, b.end) if rows[i].encoding.mnemonic.startswith("BAR") else ():
                if rows[j].encoding.latency != "fixed" and sum(r["stall"] or 45 for r in rows[i:j]) < 6:
                    return True
    return False


def drained(program: Program, before: Program) -> bool:
    """Whether what was ready at the end of its block still is."""
    for block in blocks(before):
        for i in range(block.start, block.end):
            row = before[i]
            kinds = [producer_class(row.encoding, row.values, w) for w in row.writes]
            need = max((cell.cycles for (kind, _), cell in RAW.items() if kind in kinds), default=0)
            span = range(i, block.end)
            if sum(before[k]["stall"] for k in span) >= need > sum(program[k]["stall"] for k in span):
                return False
    return True


def twin(program: Program, drain: bool = False) -> Program:
    """Ten lines: lower each stall by one for as long as nobody objects."""
    now = program
    for i in range(len(program)):
        while now[i]["stall"] > 1:
            stalls = [row["stall"] for row in now]
            stalls[i] -= 1
            trial = with_stalls(now, stalls)
            if hazards(trial) or barrier_is_near(trial) or (drain and not drained(trial, program)):
                break
            now = trial
    return now


def loosened(seed: int, random_program: Callable[..., Program], count: int = 14) -> Program:
    """A random program's schedule with some stalls raised."""
    pick = random.Random(seed)
    program = random_program(seed, count)
    done, _ = schedule(program, [{}] * len(program))
    cleared = [row.with_fields({f.name: 0 for f in row.encoding.fields if f.name.endswith(".reuse")}) for row in done]
    stalls = [max(row["stall"], pick.choice(STALLS)) if row["stall"] else 0 for row in cleared]
    return with_stalls(Program.of(cleared), stalls)


def stalls_of(program: Program) -> list[int]:
    return [row["stall"] for row in program]


def has_barrier_across(program: Program) -> bool:
    """Whether a block ends so soon after BAR that the twin, which looks within blocks, would lower more."""
    rows = list(program)
    ends = [b.end for b in blocks(program)]
    return any(
        r.encoding.mnemonic.startswith("BAR") and min(e for e in ends if e > i) - i < 7 for i, r in enumerate(rows)
    )


@pytest.mark.parametrize("drain", [False, True])
@pytest.mark.parametrize("seed", range(25))
def test_as_low_as_the_twin(seed: int, drain: bool, random_program: Callable[..., Program]) -> None:
    drawn = (loosened(n, random_program) for n in itertools.count(1000 * seed))
    program = next(p for p in drawn if not has_barrier_across(p))
    assert stalls_of(compact_stalls(program, drained=drain)) == stalls_of(twin(program, drain))


@pytest.mark.parametrize("seed", range(60))
def test_accepted_lower_and_done_at_once(seed: int, random_program: Callable[..., Program]) -> None:
    program = loosened(500 + seed, random_program, 60)
    for drain in (False, True):
        done = compact_stalls(program, drained=drain)
        assert hazards(done) == []
        assert all(a <= b for a, b in zip(stalls_of(done), stalls_of(program), strict=True))
        assert compact_stalls(done, drained=drain) == done
        fields = {"stall": 0, "keep": 0}
        assert [r.with_fields(fields) for r in done] == [r.with_fields(fields) for r in program]


def test_a_pinned_stall_stays(random_program: Callable[..., Program]) -> None:
    program = loosened(7, random_program, 30)
    pinned = frozenset(range(0, len(program), 3))
    done = compact_stalls(program, pinned=pinned)
    assert done != program
    assert all(done[i] == program[i] for i in pinned)


def test_a_refused_program_comes_back(program_of: Callable[[str], Program]) -> None:
    program = program_of("[B------:R-:W-:Y:S01] FADD R0, R1, R2\n[B------:R-:W-:Y:S15] FADD R3, R0, R2\nEXIT")
    assert hazards(program)
    assert compact_stalls(program) is program


def test_a_loop_shorter_than_a_latency(program_of: Callable[[str], Program]) -> None:
    program = program_of("""
        top:
        [B------:R-:W-:Y:S15] ISETP.LT.AND P0, PT, R0, R1, PT
        [B------:R-:W-:Y:S15] @P1 BRA top
        [B------:R-:W-:Y:S15] @P0 BRA top
        [B------:R-:W-:Y:S05] EXIT""")
    assert stalls_of(compact_stalls(program)) == stalls_of(twin(program)) == [1, 12, 5, 5]


def test_a_long_program_takes_seconds(random_program: Callable[..., Program]) -> None:
    program = loosened(3, random_program, 3000)
    start = time.process_time()
    done = compact_stalls(program)
    assert time.process_time() - start < 20
    assert sum(stalls_of(done)) < sum(stalls_of(program))
