"""Fixed latencies: does every path leave enough cycles between the instructions that share a register?

Hardware checks none of them, so the stalls between two issues must add up to what the latency grid asks.
Waits and branches may take longer but promise nothing.  Each block is scanned once for itself and its front
again with what comes in from the blocks before: writes and reads whose age is still below their longest need.
Where paths meet, each keeps its least age.

The reuse cache is judged within a block: a kept operand whose register is overwritten must not be read again
through the same slot before that slot has read something else of the same bank.  A wait, or letting another warp
in (bit 109 = 0), ends what is kept (mined: vendor code relies on it).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from coppelius.check.facts import Facts
from coppelius.check.flow import Graph
from coppelius.check.hazard import ALONE, Hazard, register_name
from coppelius.check.scan import exclusive
from coppelius.check.shape import (
    PLAIN,
    PROMPT_NEED,
    RAW_COLUMNS,
    RAW_ROWS,
    RAW_TABLE,
    WAR_COLUMNS,
    WAR_ROWS,
    WAR_TABLE,
    WAW_TABLE,
)

CHECK = "fixed_latency"

# published: the code with stall 0 waits about 45 cycles, longer than any fixed latency
DRAIN = 45
_ROW_NEED = [max(*raw, *waw) for raw, waw in zip(RAW_TABLE, WAW_TABLE[0], strict=True)]
_WAR_NEED = [max(row) for row in WAR_TABLE]
_LONGEST = max(*_ROW_NEED, *_WAR_NEED)


# a register written or read: (time, row of RAW and WAW or of WAR, whether the writer is guarded, ordinal);
# a bare tuple, because every write makes one
Event = tuple[int, int, bool, int]


_WRITTEN, _READ = 0, 1
# (kind, key, row, guarded, ordinal) -> least age at the node's start
State = dict[tuple[int, int, int, bool, int], int]


class _Scan:
    def __init__(self, facts: Sequence[Facts], entry: State | None = None) -> None:
        self.facts = facts
        self.time = 0
        self.written: dict[int, tuple[Event, ...]] = {}
        self.read: dict[int, tuple[Event, ...]] = {}
        # scoreboards that cover something timed: MMAs of old toolkits
        self.waitable = 0
        self.found: dict[tuple[int, int, str, str], Hazard] = {}
        for (kind, key, row, guarded, ordinal), age in (entry or {}).items():
            self.waitable |= facts[ordinal].waitable[1]
            table = self.written if kind == _WRITTEN else self.read
            table[key] = (*table.get(key, ()), (-age, row, guarded, ordinal))

    def run(self, first: int, end: int, limit: int | None = None) -> None:
        """Scan [first, end), or no more than `limit` cycles of it."""
        facts, written, read = self.facts, self.written, self.read
        time = 0
        for i in range(first, end):
            f = facts[i]
            if f.wait & self.waitable:
                self._wait(f.wait)
            for key, column in f.reads:
                if key in written:
                    for event in written[key]:
                        age = time - event[0]
                        if age < _LONGEST and column >= 0 and age < RAW_TABLE[event[1]][column]:
                            self._read_early(i, key, event, column, time)
            for key, row, second, war in f.writes:
                if key in written:
                    self._rewrite(i, key, second, time)
                if key in read:
                    self._overwrite(i, key, war, time)
                    if not f.guarded:
                        # a later writer is this one's concern
                        del read[key]
                if row >= 0:
                    event = (time, row, f.guarded, i)
                    written[key] = (*written.get(key, ()), event) if f.guarded else (event,)
                elif key in written and not f.guarded:
                    del written[key]
            for key, row in f.timed:
                others = tuple(e for e in read[key] if e[1] != row) if key in read else ()
                read[key] = (*others, (time, row, False, i))
            if f.waitable[1]:
                self.waitable |= f.waitable[1]
            time += f.stall or DRAIN
            if limit is not None and time >= limit:
                break
        self.time = time

    def _wait(self, mask: int) -> None:
        """Forget what a scoreboard says is done."""
        for which, table in ((0, self.written), (1, self.read)):
            for key, events in list(table.items()):
                if any(self.facts[e[3]].waitable[which] & mask for e in events):
                    table[key] = tuple(e for e in events if not self.facts[e[3]].waitable[which] & mask)

    def _read_early(self, i: int, key: int, event: Event, column: int, time: int) -> None:
        kinds = f"{RAW_ROWS[event[1]]} to {RAW_COLUMNS[column]}"
        self._report(i, event, "read after write", key, RAW_TABLE[event[1]][column], time, kinds)

    def _rewrite(self, i: int, key: int, column: int, time: int) -> None:
        for event in self.written[key]:
            when, row, guarded, _ = event
            needed = WAW_TABLE[guarded][row][column] if column >= 0 else 0
            if time - when < needed:
                self._report(i, event, "write after write", key, needed, time, RAW_ROWS[row])

    def _overwrite(self, i: int, key: int, column: int, time: int) -> None:
        for event in self.read[key]:
            when, row, _, ordinal = event
            needed = WAR_TABLE[row][column] if column >= 0 else 0
            if time - when < needed and ordinal != i:
                kinds = f"{WAR_ROWS[row]} to {WAR_COLUMNS[column]}"
                self._report(i, event, "write after read", key, needed, time, kinds)

    def _report(self, i: int, event: Event, rule: str, key: int, needed: int, time: int, kinds: str) -> None:
        when, _, _, cause = event
        given = time - when
        if exclusive(self.facts, cause, i):
            return
        name = register_name(key)
        identity = (i, cause, rule, name)
        before = self.found.get(identity)
        if before is not None and (before.needed, -before.given) >= (needed, -given):
            return
        other = self.facts[cause].encoding.mnemonic
        fact = f"{name} of {other} needs {needed} cycles ({kinds}), has {given}"
        remedy = f"add {needed - given} to the stalls between them"
        self.found[identity] = Hazard(i, cause, CHECK, rule, name, needed, given, remedy, fact)

    def left(self) -> State:
        """What is still young at the end."""
        state: State = {}
        for kind, table, needs in ((_WRITTEN, self.written, _ROW_NEED), (_READ, self.read, _WAR_NEED)):
            for key, events in table.items():
                for when, row, guarded, ordinal in events:
                    if self.time - when < needs[row]:
                        state[kind, key, row, guarded, ordinal] = self.time - when
        return state


def fixed_latency_hazards(facts: Sequence[Facts], graph: Graph) -> list[Hazard]:
    """Every pair that some path brings too close together, in program order; stalls too short for any use."""
    found: dict[tuple[int, int, str, str], Hazard] = {}
    scans: dict[int, _Scan] = {}
    for block in set(graph.blocks):
        scan = scans[block] = _Scan(facts)
        scan.run(*graph.spans[block])
        found.update(scan.found)
    for node, entry in enumerate(_entry_states(facts, graph, scans)):
        if entry:
            scan = _Scan(facts, entry)
            scan.run(*graph.spans[graph.blocks[node]], limit=_LONGEST)
            found.update(scan.found)
    return sorted([*found.values(), *_prompt_overwrites(facts), *_short_stalls(facts), *_stale_reuse(facts, graph)])


def _entry_states(facts: Sequence[Facts], graph: Graph, scans: dict[int, _Scan]) -> list[State]:
    """What is still young at each node's start, over all paths: the least fixpoint."""
    states: list[State] = [{} for _ in graph.blocks]
    left = {block: scan.left() for block, scan in scans.items()}
    rewritten: dict[int, set[int]] = {}
    for block, scan in scans.items():
        if scan.time < _LONGEST:
            span = range(*graph.spans[block])
            rewritten[block] = {w[0] for i in span if not facts[i].guarded for w in facts[i].writes}
    pending = deque(range(len(graph.blocks)))
    while pending:
        node = pending.popleft()
        block = graph.blocks[node]
        out = left[block]
        if states[node] and block in rewritten:
            out = dict(out)
            for key, age in states[node].items():
                older = age + scans[block].time
                need = (_ROW_NEED if key[0] == _WRITTEN else _WAR_NEED)[key[2]]
                if older < need and not (key[0] == _WRITTEN and key[1] in rewritten[block]):
                    out[key] = min(older, out.get(key, older))
        for target in graph.successors[node]:
            state = states[target]
            changed = [key for key, age in out.items() if age < state.get(key, age + 1)]
            if changed:
                state.update((key, out[key]) for key in changed)
                pending.append(target)
    return states


def _prompt_overwrites(facts: Sequence[Facts]) -> list[Hazard]:
    """Ordinary operands overwritten by the very next instruction: the only writer that can come too early."""
    found = []
    for i in range(len(facts) - 1):
        f = facts[i]
        if f.stall != 1 or not f.prompt or (f.flow != PLAIN and not f.guarded):
            continue
        for key, _, _, column in facts[i + 1].writes:
            if column >= 0 and PROMPT_NEED[column] > 1 and key in f.prompt:
                needed = PROMPT_NEED[column]
                name = register_name(key)
                fact = f"{name} read by {f.encoding.mnemonic} may be overwritten after {needed} cycles, is after 1"
                remedy = f"add {needed - 1} to the stall of {f.encoding.mnemonic}"
                found.append(Hazard(i + 1, i, CHECK, "write after read", name, needed, 1, remedy, fact))
    return found


def _short_stalls(facts: Sequence[Facts]) -> list[Hazard]:
    """Instructions whose own stall is too short to make them effective."""
    found = []
    for i, f in enumerate(facts):
        if 0 < f.stall < f.minimum:
            name = f.encoding.mnemonic
            fact = f"{name} needs a stall of at least {f.minimum}, has {f.stall}"
            remedy = f"raise its stall to {f.minimum}"
            found.append(Hazard(i, ALONE, CHECK, "minimum stall", "", f.minimum, f.stall, remedy, fact))
    return found


def _stale_reuse(facts: Sequence[Facts], graph: Graph) -> list[Hazard]:
    """Operands read from the reuse cache after their register was overwritten."""
    found: list[Hazard] = []
    if not any(f.reuse for f in facts):
        return found
    for first, end in graph.spans:
        # (slot, bank) -> (register, registers of the operand, ordinal, overwritten by)
        cache: dict[tuple[int, int], tuple[int, int, int, int]] = {}
        for i in range(first, end):
            f = facts[i]
            if f.wait:
                cache.clear()
            if not cache and not f.reuse:
                continue
            for slot, register, _ in f.slots:
                entry = cache.pop((slot, register & 1), None)
                if entry is not None and entry[0] == register and entry[3] != ALONE:
                    found.append(_stale(facts, i, slot, entry))
            for slot, register, width in f.reuse:
                cache[slot, register & 1] = (register, width, i, ALONE)
            for key, *_ in f.writes:
                for place, (register, width, ordinal, _) in list(cache.items()):
                    if register <= key < register + width:
                        cache[place] = (register, width, ordinal, i)
            if not f.keep:
                cache.clear()
    return found


def _stale(facts: Sequence[Facts], i: int, slot: int, entry: tuple[int, int, int, int]) -> Hazard:
    register, _, ordinal, writer = entry
    name = register_name(register)
    fact = (
        f"slot {'ABC'[slot]} still keeps {name} as {facts[ordinal].encoding.mnemonic} read it, "
        f"before {facts[writer].encoding.mnemonic} wrote it"
    )
    remedy = f"drop .reuse from instruction {ordinal}"
    return Hazard(i, writer, CHECK, "stale reuse", name, 0, 0, remedy, fact)
