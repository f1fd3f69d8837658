"""Compaction: stalls lowered, front to back, until no single one can be without a hazard.

The checkers judge each trial, so a compacted program passes whatever it passed before.  No stall is ever
raised, and a program in which nothing can be lowered comes back as it is.  Stalls that compiled code
never lowers (after a branch, a barrier) keep their floor.

`drained` also keeps, for each result that is ready by the end of its block, that it stays so: then the
block may be repeated or followed by anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from coppelius.check.facts import Facts, facts_of
from coppelius.check.fixed_latency import fixed_latency_hazards
from coppelius.check.flow import Graph, graph_of
from coppelius.check.scoreboard import scoreboard_hazards, set_to_wait
from coppelius.isa.access import Touch
from coppelius.isa.control import legal_keep
from coppelius.isa.latency import RAW, producer_class
from coppelius.isa.word import from_bytes
from coppelius.program.flow import blocks
from coppelius.program.program import Instruction, Program
from coppelius.schedule.stalls import Stalls, floor


def compact_stalls(program: Program, *, pinned: frozenset[int] = frozenset(), drained: bool = False) -> Program:
    """The program with every stall as low as the checks allow; `pinned` instructions keep theirs.

    A program that the checks refuse comes back unchanged: there is nothing to preserve.
    """
    facts = _facts(program)
    graph = graph_of(facts)
    if _hazards(facts, graph):
        return program
    stalls = [f.stall for f in facts]
    floors = [floor(row) for row in program]
    kept = _drains(program) if drained else []
    for i in candidates(program):
        if i in pinned:
            continue
        while stalls[i] > floors[i]:
            trial = [f._replace(stall=s) for f, s in zip(facts, stalls, strict=True)]
            trial[i] = trial[i]._replace(stall=stalls[i] - 1)
            if _hazards(trial, graph) or not all(_left(stalls, i, d) for d in kept):
                break
            stalls[i] -= 1
    if stalls == [f.stall for f in facts]:
        return program
    rows = [
        row.with_fields({"stall": s, "keep": int(legal_keep(s)) if s != row["stall"] else row["keep"]})
        for row, s in zip(program, stalls, strict=True)
    ]
    return Program.of(rows, program.table)


@dataclass(frozen=True)
class Drain:
    """A result that is ready when its block, which ends before `end`, is left: it needs `cycles` from `producer` on."""

    producer: int
    end: int
    cycles: int


def _drains(program: Program) -> list[Drain]:
    rows = list(program)
    found = []
    for block in blocks(program):
        for i in range(block.start, block.end):
            needed = max((_longest(rows[i], w) for w in rows[i].writes), default=0)
            if sum(row["stall"] for row in rows[i : block.end]) >= needed > 0:
                found.append(Drain(i, block.end, needed))
    return found


def _longest(row: Instruction, written: Touch) -> int:
    """Cycles after which any reader may have this fixed-latency result."""
    kind = producer_class(row.encoding, row.values, written)
    return max((cell.cycles for (producer, _), cell in RAW.items() if producer == kind), default=0)


def _left(stalls: Sequence[int], lowered: int, drain: Drain) -> bool:
    """Whether the result is still ready at its block's end when that stall is one lower."""
    inside = drain.producer <= lowered < drain.end
    return not inside or sum(stalls[drain.producer : drain.end]) - 1 >= drain.cycles


def candidates(program: Program) -> list[int]:
    """Instructions whose stall some path may not need; all others are held by a distance that is just met."""
    rows = list(program)
    flow = Stalls(rows, blocks(program), [{}] * len(rows))
    flow.cycles = [row["stall"] for row in rows]
    tight = flow.tight()
    return [i for i, row in enumerate(rows) if i not in tight and row["stall"] > floor(row)]


def _facts(program: Program) -> list[Facts]:
    return [f for f in facts_of(program.decoded, from_bytes(program.encode())) if f is not None]


def _hazards(facts: Sequence[Facts], graph: Graph) -> bool:
    return bool(fixed_latency_hazards(facts, graph) or scoreboard_hazards(facts, graph) or set_to_wait(facts))
