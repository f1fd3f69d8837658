"""Notes: what a reader of a schedule may want to know and what is never wrong.

Waits on scoreboards that nothing sets, one scoreboard shared by several producers (they are counters), loads in
flight at BAR or EXIT, and the filler that vendor code puts before an LDGSTS that follows a shared access.
"""

from __future__ import annotations

from collections.abc import Sequence

from coppelius.check.facts import Facts
from coppelius.check.flow import Graph
from coppelius.check.hazard import Note
from coppelius.check.scan import BITS, NO_SCOREBOARD
from coppelius.check.shape import BARRIER, COPY, EXIT, SHARED_ACCESS
from coppelius.isa.latency import stem

# mined: at least three of filler, SHFL, MOVM stand between a shared access and the next LDGSTS
FILLERS = 3


def notes_of(facts: Sequence[Facts], graph: Graph) -> list[Note]:
    """All notes, in program order."""
    return sorted([*_idle_waits(facts), *_in_flight(facts, graph), *_fillers(facts, graph)])


def _idle_waits(facts: Sequence[Facts]) -> list[Note]:
    somewhere = {f.write_barrier for f in facts} | {f.read_barrier for f in facts}
    never = sum(1 << s for s in range(6) if s not in somewhere)
    return [
        Note(i, "idle wait", f"SB{s} is waited for and set by nothing")
        for i, f in enumerate(facts)
        if f.wait & never
        for s in BITS[f.wait & never]
    ]


def _in_flight(facts: Sequence[Facts], graph: Graph) -> list[Note]:
    """Within a block: shared scoreboards, and results in flight at BAR and EXIT."""
    found = []
    for first, end in graph.spans:
        # scoreboard -> ordinals of producers since the last wait
        counted: list[list[int]] = [[] for _ in range(6)]
        for i in range(first, end):
            f = facts[i]
            if not (f.wait or f.signals or f.meaning or f.flow):
                continue
            for s in BITS[f.wait]:
                counted[s] = []
            if f.meaning == BARRIER or f.flow == EXIT:
                flying = sum(bool(facts[o].results) for row in counted for o in row)
                if flying:
                    found.append(Note(i, "in flight", f"{flying} results in flight at {stem(f.encoding)}"))
            for s in {f.write_barrier, f.read_barrier} - {NO_SCOREBOARD}:
                counted[s].append(i)
                if len(counted[s]) == 2 and facts[counted[s][0]].encoding is not f.encoding:
                    other = facts[counted[s][0]].encoding.mnemonic
                    found.append(Note(i, "shared scoreboard", f"SB{s} counts {other} and {f.encoding.mnemonic}"))
    return found


def _fillers(facts: Sequence[Facts], graph: Graph) -> list[Note]:
    found = []
    for first, end in graph.spans:
        since: int | None = None
        for i in range(first, end):
            f = facts[i]
            if f.meaning == COPY:
                if since is not None and since < FILLERS:
                    found.append(
                        Note(i, "filler", f"{since} fillers between a shared access and LDGSTS, {FILLERS} usual")
                    )
                since = None
            elif f.meaning == SHARED_ACCESS:
                since = 0
            elif since is not None and stem(f.encoding) in ("LDS", "SHFL", "MOVM"):
                since += 1
    return found
