"""Guard: late reads that nothing covers get a read barrier and a wait, and nothing else changes.

A program that the scoreboard check accepts comes back byte for byte: barriers on every load are not
harmless (the seed saw a launch stall on a card when each load got one).  Only refused pairs, a late
reader and the instruction that overwrites its operand too early, are repaired.
"""

from __future__ import annotations

from coppelius.check.facts import facts_of
from coppelius.check.flow import graph_of
from coppelius.check.hazard import Hazard
from coppelius.check.scoreboard import scoreboard_hazards
from coppelius.isa.control import BARRIERS, NO_BARRIER
from coppelius.isa.latency import SET_TO_WAIT
from coppelius.isa.refusal import Refusal
from coppelius.isa.word import from_bytes
from coppelius.program.listing import listing_text, parse_listing
from coppelius.program.program import Instruction, Program

RULE = "write after read"


def guard_late_reads(program: Program) -> Program:
    """The program with its refused late reads repaired; the very same one if there are none.

    Refuses a program whose late reads cannot be repaired by read barriers and waits.
    """
    hazards = late_reads(program)
    seen: set[tuple[int, int]] = set()
    while hazards:
        pairs = {(h.cause, h.ordinal) for h in hazards}
        if pairs <= seen:
            reader, writer = min(pairs)
            raise Refusal(
                f"instruction {writer} overwrites an operand of instruction {reader} that is read late, "
                "and no read barrier and wait cover it"
            )
        rows = list(program)
        for reader, writer in sorted(pairs - seen):
            _cover(rows, reader, writer)
        seen |= pairs
        program = Program.of(rows, program.table)
        hazards = late_reads(program)
    return program


def late_reads(program: Program) -> list[Hazard]:
    """Late reads of the program that nothing covers."""
    facts = facts_of(program.decoded, from_bytes(program.encode()))
    known = [f for f in facts if f is not None]
    return [h for h in scoreboard_hazards(known, graph_of(known)) if h.rule == RULE]


def _cover(rows: list[Instruction], reader: int, writer: int) -> None:
    """A read barrier on the reader, a wait on the writer, and the two cycles between setting and waiting."""
    barrier = rows[reader]["read_barrier"]
    if barrier == NO_BARRIER:
        barrier = _least_used(rows)
        rows[reader] = rows[reader].with_fields({"read_barrier": barrier})
    rows[writer] = rows[writer].with_fields({"wait": rows[writer]["wait"] | 1 << barrier})
    for i in (reader, writer - 1):
        _keep_apart(rows, i, barrier)


def _keep_apart(rows: list[Instruction], i: int, barrier: int) -> None:
    """Two cycles between an instruction that raises this scoreboard and a next one that waits for it."""
    if i < 0 or i + 1 >= len(rows):
        return
    raises = barrier in (rows[i]["read_barrier"], rows[i]["write_barrier"])
    if raises and rows[i + 1]["wait"] >> barrier & 1 and rows[i]["stall"] == 1:
        rows[i] = rows[i].with_fields({"stall": SET_TO_WAIT})


def _least_used(rows: list[Instruction]) -> int:
    """The scoreboard that fewest instructions raise: sharing one only makes a wait longer.

    The ones that counted waits name come last: what else raises them counts, too.
    """
    uses = [0] * BARRIERS
    for row in rows:
        if row.encoding.mnemonic.startswith("DEPBAR") and "scoreboard" in row.encoding.column:
            uses[row["scoreboard"]] += len(rows)
    for row in rows:
        for name in ("write_barrier", "read_barrier"):
            if row[name] != NO_BARRIER:
                uses[row[name]] += 1
    return uses.index(min(uses))


def guard(listing: str) -> str:
    """The guard step: a listing whose late reads are covered."""
    program = parse_listing(listing)
    repaired = guard_late_reads(program)
    return listing if repaired is program else listing_text(repaired)
