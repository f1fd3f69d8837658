"""Variable-latency results and late reads: is each waited for before another instruction needs its register?

A scoreboard is a counter that a producer raises and that falls when its result is written (write barrier) or
its operands have been read (read barrier); a wait mask holds an instruction until the counters are zero.
Four things free a late-read register: the reader's read barrier, its write barrier, a later instruction of the
load/store queue that was waited on (operands leave that queue in order), a BAR.  Results of SHFL, LDS, LDSM,
MOVM and of the MUFU kind come back in the order of their queue; those of LDG, LDL, LDC, ATOM, S2R do not.

A stall of 0 lets nothing go on before the instruction is done, its result and its operands included: no scoreboard
is needed (ptxas 13.5 gives every instruction one at -O0, and no barriers at all).

Where paths meet: the items in flight of both, covered only by what covers them on both.

An instruction whose guard may be false is a possible producer.  Skipped, it still passes its queue: it raises its
scoreboards and lowers them in its turn, so that waiting for it covers the earlier ones (mined: an unguarded LDS
whose only cover is a wait for a later `@P1 LDS`; an STG under one predicate covered by an STG under another).
One under `!PT` covers nothing: no shipped code relies on it.  `schedule` and strict mode hold to the same rule.

Copies into shared memory are compared with reads by their base register alone.  What no address tells: a group whose
scoreboard no DEPBAR of the program waits for is never known to be there (mined: a DEPBAR names the scoreboard of all
1,566 groups of shipped code; other instructions' waits for it do not count, as they may be for other producers).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from coppelius.check.facts import Facts
from coppelius.check.flow import Graph
from coppelius.check.hazard import ALONE, Hazard
from coppelius.check.scan import CHECK, COPIED, NO_SCOREBOARD, Scan, State, Summary, carried, summarise
from coppelius.check.shape import COPY, COUNTED_WAIT, GROUP, PLAIN, PLAIN_WAIT
from coppelius.isa.latency import SET_TO_WAIT


def scoreboard_hazards(facts: Sequence[Facts], graph: Graph) -> list[Hazard]:
    """Every uncovered dependence on a scoreboard, in program order."""
    found: dict[tuple[int, int, str, str], Hazard] = {}
    copies = any(f.meaning == COPY for f in facts)
    summaries: dict[int, Summary] = {}
    for block in set(graph.blocks):
        first, end = graph.spans[block]
        scan = Scan(facts)
        scan.run(first, end)
        found.update(scan.found)
        written = frozenset(w[0] for i in range(first, end) for w in facts[i].writes) if copies else frozenset()
        touched = frozenset(key for i in range(first, end) for key in facts[i].touched)
        summaries[block] = summarise(scan, written, touched)
    for node, entry in enumerate(entry_states(facts, graph, summaries)):
        block = graph.blocks[node]
        # what the block never touches cannot be overtaken there
        met = {key: value for key, value in entry.items() if key[0] == COPIED or key[1] in summaries[block].touched}
        if met:
            scan = Scan(facts, met)
            scan.run(*graph.spans[block])
            found.update(scan.found)
    return sorted([*found.values(), *set_to_wait(facts), *unwaited_groups(facts)])


def entry_states(facts: Sequence[Facts], graph: Graph, summaries: dict[int, Summary]) -> list[State]:
    """The items in flight at each node's start, over all paths: the least fixpoint."""
    states: list[State] = [{} for _ in graph.blocks]
    pending = deque(range(len(graph.blocks)))
    waiting = [True] * len(graph.blocks)
    while pending:
        node = pending.popleft()
        waiting[node] = False
        summary = summaries[graph.blocks[node]]
        out = dict(summary.left)
        for key, value in states[node].items():
            after = carried(summary, facts, key, value)
            if after is not None:
                out[key] = after if key not in out else _meet(out[key], after)
        for target in graph.successors[node]:
            if _merge(states[target], out) and not waiting[target]:
                waiting[target] = True
                pending.append(target)
    return states


def _meet(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    return one[0] & other[0], min(one[1], other[1])


def _merge(state: State, more: State) -> bool:
    """Join `more` into `state`; whether that changed it."""
    changed = False
    for key, value in more.items():
        before = state.get(key)
        if before == value:
            continue
        after = value if before is None else _meet(before, value)
        if after != before:
            state[key] = after
            changed = True
    return changed


def set_to_wait(facts: Sequence[Facts]) -> list[Hazard]:
    """Wait masks on a scoreboard that the instruction just before sets: not yet visible a cycle later."""
    found = []
    for i in range(len(facts) - 1):
        f = facts[i]
        wait = facts[i + 1].wait
        if f.stall != 1 or not wait or (f.flow != PLAIN and not f.guarded):
            continue
        for barrier in {f.write_barrier, f.read_barrier} - {NO_SCOREBOARD}:
            if wait >> barrier & 1:
                found.append(
                    Hazard(
                        i + 1,
                        i,
                        CHECK,
                        "set to wait",
                        f"SB{barrier}",
                        SET_TO_WAIT,
                        f.stall,
                        f"raise the stall of {f.encoding.mnemonic} to {SET_TO_WAIT}",
                        f"SB{barrier} is waited for {f.stall} cycle after it is set, {SET_TO_WAIT} are needed",
                    )
                )
    return found


def unwaited_groups(facts: Sequence[Facts]) -> list[Hazard]:
    """Groups of copies that raise no scoreboard, or one that no DEPBAR waits for."""
    groups = [i for i, f in enumerate(facts) if f.meaning == GROUP]
    if not groups:
        return []
    waited = 0
    for f in facts:
        if f.meaning in (PLAIN_WAIT, COUNTED_WAIT):
            mask, scoreboard, _ = f.depbar
            waited |= mask | (1 << scoreboard if f.meaning == COUNTED_WAIT else 0)
    found = []
    for i in groups:
        board = facts[i].write_barrier
        if board != NO_SCOREBOARD and waited >> board & 1:
            continue
        what = "raises no scoreboard" if board == NO_SCOREBOARD else f"raises SB{board}, for which no DEPBAR waits"
        remedy = "give LDGDEPBAR a write barrier and wait for it with DEPBAR.LE before the copies are read"
        found.append(Hazard(i, ALONE, CHECK, "group never waited for", "", 0, 0, remedy, f"the group of copies {what}"))
    return found
