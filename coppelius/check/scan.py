"""One block of instructions front to back: which registers are in flight, and what covers them.

An item is one register in flight: a result to come, an operand still to be read, a copy into shared memory
still to land.  Nothing is removed when a wait comes: each wait notes what it covers (a scoreboard, the front of
a queue), and an item is looked up when its register is next touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from coppelius.check.facts import Facts
from coppelius.check.hazard import Hazard, register_name
from coppelius.check.shape import (
    BARRIER,
    COPY,
    COUNTED_QUEUES,
    COUNTED_WAIT,
    GROUP,
    GROUP_QUEUE,
    PLAIN,
    PLAIN_WAIT,
    QUEUES,
    SHARED_ACCESS,
)

CHECK = "scoreboard"
NO_SCOREBOARD = 7
RESULT, LATE, COPIED = 0, 1, 2

BITS = tuple(tuple(s for s in range(6) if mask >> s & 1) for mask in range(64))
_NEVER = 1 << 30
_NOTHING_SET: dict[int, int] = {}

# (kind, register key, ordinal) -> (scoreboards that cover it, younger producers on its own scoreboard)
State = dict[tuple[int, int, int], tuple[int, int]]


class Item(NamedTuple):
    """A register in flight.

    position: its ordinal (of a copy: of its commit), -1 where it came into the block.  mask: scoreboards that
    cover it.  queue: whose order covers it.  own: the scoreboard that counts it.  younger: later producers of its
    queue on `own`, before this block.
    """

    position: int
    mask: int
    queue: int
    cause: int
    own: int
    younger: int


class Scan:
    """A block with the items that come into it; `run`, then `found` holds the hazards."""

    def __init__(self, facts: Sequence[Facts], entry: State | None = None) -> None:
        self.facts = facts
        self.last_wait = [-1] * 6
        self.covered = [-2] * QUEUES
        # scoreboard -> queue -> its last producer since the last wait
        self.last_set: dict[int, dict[int, int]] = {}
        self.setters: dict[tuple[int, int], list[int]] = {}
        # (queue, scoreboard) -> producers before this block that a counted wait lets pass
        self.counted: dict[tuple[int, int], int] = {}
        # scoreboards of which a count was waited for
        self.counts = 0
        self.last_barrier = -1
        self.first_commit = NO_SCOREBOARD
        self.results: dict[int, list[Item]] = {}
        self.late: dict[int, list[Item]] = {}
        self.copies: dict[int, Item] = {}
        self.found: dict[tuple[int, int, str, str], Hazard] = {}
        for (kind, key, ordinal), (mask, younger) in entry.items() if entry else ():
            queue, own = queue_and_own(facts[ordinal], kind, mask)
            item = Item(-1, mask, queue, ordinal, own, younger)
            if kind == COPIED:
                self.copies[ordinal] = item
            else:
                (self.results if kind == RESULT else self.late).setdefault(key, []).append(item)

    def run(self, first: int, end: int) -> None:
        """Scan the instructions [first, end)."""
        facts, results, late = self.facts, self.results, self.late
        for i in range(first, end):
            f = facts[i]
            if f.wait:
                self._wait(i, f.wait)
            if f.meaning:
                self._special(i, f)
            if results:
                for key in f.touched:
                    if key in results:
                        self._touch_result(i, f, key)
            if late:
                for write in f.writes:
                    if write[0] in late:
                        self._overwrite(i, write[0])
            if f.signals:
                self._issue(i, f)
            if self.copies and f.writes:
                self._forget_copies(f)

    def _wait(self, i: int, mask: int) -> None:
        covered = self.covered
        for s in BITS[mask]:
            self.last_wait[s] = i
            for queue, position in self.last_set.pop(s, _NOTHING_SET).items():
                if queue and position > covered[queue]:
                    covered[queue] = position

    def _special(self, i: int, f: Facts) -> None:
        if f.meaning == BARRIER:
            self.last_barrier = i
        elif f.meaning in (COUNTED_WAIT, PLAIN_WAIT):
            self._depbar(i, f)
        elif f.meaning == COPY:
            self.copies[i] = Item(i, 0, 0, i, NO_SCOREBOARD, 0)
        elif f.meaning == GROUP:
            self._commit(i, f.write_barrier)
        elif f.meaning == SHARED_ACCESS and self.copies:
            self._read_copies(i, f)

    def _depbar(self, i: int, f: Facts) -> None:
        mask, scoreboard, count = f.depbar
        if f.meaning == COUNTED_WAIT and count == 0:
            mask |= 1 << scoreboard
        self._wait(i, mask)
        if f.meaning != COUNTED_WAIT or not count:
            return
        self.counts |= 1 << scoreboard
        for queue in COUNTED_QUEUES:
            setters = self.setters.get((queue, scoreboard), [])
            if len(setters) > count:
                # this one is done, and with it all of its queue before
                self.covered[queue] = max(self.covered[queue], setters[-count - 1])
            rest = self.counted.get((queue, scoreboard), _NEVER)
            self.counted[queue, scoreboard] = min(rest, count - len(setters))

    def _commit(self, i: int, scoreboard: int) -> None:
        if scoreboard == NO_SCOREBOARD:
            return
        if self.first_commit == NO_SCOREBOARD:
            self.first_commit = scoreboard
        for ordinal, item in self.copies.items():
            if not item.mask:
                self.copies[ordinal] = Item(i, 1 << scoreboard, GROUP_QUEUE, ordinal, scoreboard, 0)

    def _forget_copies(self, f: Facts) -> None:
        """A shared address whose register is overwritten can no longer be compared."""
        written = {w[0] for w in f.writes}
        for ordinal in [o for o in self.copies if self.facts[o].shared[0] in written]:
            del self.copies[ordinal]

    def _read_copies(self, i: int, f: Facts) -> None:
        base, low, high = f.shared
        for ordinal, item in list(self.copies.items()):
            its_base, its_low, its_high = self.facts[ordinal].shared
            if not self.alive(item):
                del self.copies[ordinal]
            elif base == its_base and low < its_high and its_low < high:
                name = f"[{register_name(base)}{max(low, its_low):+#x}]"
                remedy = "commit with LDGDEPBAR and wait with DEPBAR.LE before the read"
                self._report(i, ordinal, "read before copied", name, remedy)

    def alive(self, item: Item) -> bool:
        """Whether nothing has covered it yet."""
        position, mask, queue, _, own, younger = item
        for s in BITS[mask]:
            if self.last_wait[s] > position:
                return False
        if queue and self.covered[queue] >= position:
            return False
        return position >= 0 or not self.counted or self.counted.get((queue, own), _NEVER) > younger

    def _touch_result(self, i: int, f: Facts, key: int) -> None:
        left = [item for item in self.results[key] if self.alive(item)]
        if not left:
            del self.results[key]
            return
        self.results[key] = left
        read = any(k == key for k, _ in f.reads)
        for item in left:
            # results of one queue arrive in order, so the later write wins
            if read or not (item.queue and item.queue == f.queue):
                rule = "read after write" if read else "write after write"
                self._report(i, item.cause, rule, register_name(key), self._result_remedy(item))

    def _result_remedy(self, item: Item) -> str:
        if not item.queue and self.counts >> item.own & 1:
            return f"wait for SB{item.own} to be zero: it finishes out of order, so a count says nothing of it"
        return _remedy(item, "write")

    def _overwrite(self, i: int, key: int) -> None:
        barrier = self.last_barrier
        left = [item for item in self.late[key] if self.alive(item) and barrier <= item.position]
        if not left:
            del self.late[key]
            return
        self.late[key] = left
        queue = self.facts[i].late_queue
        for item in left:
            # a later instruction of the same queue reads, and so writes, after the earlier one has read
            if queue and queue == item.queue:
                continue
            self._report(i, item.cause, "write after read", register_name(key), _remedy(item, "read"))

    def _report(self, i: int, cause: int, rule: str, name: str, remedy: str) -> None:
        if exclusive(self.facts, cause, i):
            return
        other = self.facts[cause].encoding.mnemonic
        fact = _FACTS[rule].format(name=name, other=other)
        self.found.setdefault((i, cause, rule, name), Hazard(i, cause, CHECK, rule, name, 1, 0, remedy, fact))

    def _issue(self, i: int, f: Facts) -> None:
        write, read = f.write_barrier, f.read_barrier
        queue, late = f.queue, f.late_queue
        write_bit = 0 if write == NO_SCOREBOARD else 1 << write
        late_mask = write_bit | (0 if read == NO_SCOREBOARD else 1 << read)
        # whatever its guard: one that is skipped still passes its queue (see `scoreboard`)
        if late_mask:
            if write_bit:
                row = self.last_set.setdefault(write, {})
                row[queue] = row[late] = i
                for kind in (queue, late):
                    self.setters.setdefault((kind, write), []).append(i)
            if read != NO_SCOREBOARD:
                self.last_set.setdefault(read, {})[late] = i
        for key in f.results:
            self.results.setdefault(key, []).append(Item(i, write_bit, queue, i, write, 0))
        for key in f.late:
            self.late.setdefault(key, []).append(Item(i, late_mask, late, i, late_own(f), 0))

    def left(self) -> State:
        """The items in flight at the block's end."""
        state: State = {}
        for kind, table in ((RESULT, self.results), (LATE, self.late)):
            for key, items in table.items():
                for item in items:
                    if self.alive(item) and not (kind == LATE and self.last_barrier > item.position):
                        state[kind, key, item.cause] = self._leaving(item)
        for ordinal, item in self.copies.items():
            if self.alive(item):
                state[COPIED, self.facts[ordinal].shared[0], ordinal] = self._leaving(item)
        return state

    def _leaving(self, item: Item) -> tuple[int, int]:
        mask = item.mask
        for s, row in self.last_set.items():
            if item.queue and row.get(item.queue, -2) > item.position:
                mask |= 1 << s
        after = self.setters.get((item.queue, item.own), ())
        return mask, min(63, item.younger + sum(p > item.position for p in after))


def exclusive(facts: Sequence[Facts], first: int, second: int) -> bool:
    """Whether opposite guards keep a thread from executing both of two instructions of one straight run."""
    guard = facts[first].guard
    if not guard or facts[second].guard != -guard or second <= first:
        return False
    between = (facts[i] for i in range(first, second))
    return not any(f.flow != PLAIN or any(w[0] == abs(guard) for w in f.writes) for f in between)


_FACTS = {
    "read after write": "{name} is read while {other} has still to write it",
    "write after write": "{name} is written while {other} has still to write it",
    "write after read": "{name} is written while {other} may still have to read it",
    "read before copied": "shared {name} is read while {other} has still to fill it",
}


def _remedy(item: Item, which: str) -> str:
    bit = item.own
    if bit == NO_SCOREBOARD:
        return f"give the earlier one a {which} barrier and wait for it here"
    return f"wait for its scoreboard SB{bit} here or before"


def late_own(f: Facts) -> int:
    """The scoreboard that says a late read is done: the result's where there is one."""
    return f.read_barrier if f.write_barrier == NO_SCOREBOARD else f.write_barrier


def queue_and_own(f: Facts, kind: int, mask: int) -> tuple[int, int]:
    """The queue whose order covers an item of this instruction, and the scoreboard that counts it."""
    if kind == RESULT:
        return f.queue, f.write_barrier
    if kind == LATE:
        return f.late_queue, late_own(f)
    return (GROUP_QUEUE, mask.bit_length() - 1) if mask else (0, NO_SCOREBOARD)


class Summary(NamedTuple):
    """What a block does to the items that come into it, and those it leaves behind.

    written, touched: registers.  moved: queues of which an item's cover or count may change, a bit each.
    """

    waited: int
    covered: tuple[int, ...]
    added: tuple[int, ...]
    barrier: bool
    counted: dict[tuple[int, int], int]
    setters: dict[tuple[int, int], int]
    written: frozenset[int]
    touched: frozenset[int]
    moved: int
    committed: int
    left: State


def summarise(scan: Scan, written: frozenset[int], touched: frozenset[int]) -> Summary:
    """The summary of a block that `scan` has run over with nothing coming in."""
    moved = sum(1 << queue for queue, position in enumerate(scan.covered) if position >= 0)
    added = [0] * QUEUES
    for s, row in scan.last_set.items():
        for queue in row:
            added[queue] |= 1 << s if queue else 0
            moved |= 1 << queue
    for queue, _ in (*scan.counted, *scan.setters):
        moved |= 1 << queue
    return Summary(
        sum(1 << s for s in range(6) if scan.last_wait[s] >= 0),
        tuple(scan.covered),
        tuple(added),
        scan.last_barrier >= 0,
        dict(scan.counted),
        {key: len(found) for key, found in scan.setters.items()},
        written,
        touched,
        moved,
        scan.first_commit,
        scan.left(),
    )


def carried(
    summary: Summary, facts: Sequence[Facts], key: tuple[int, int, int], value: tuple[int, int]
) -> tuple[int, int] | None:
    """What becomes of an item that comes into the block: its new value, or None where it is covered or unknowable."""
    kind, register, ordinal = key
    mask, younger = value
    if mask & summary.waited or (kind == LATE and summary.barrier):
        return None
    if kind != COPIED:
        queue = facts[ordinal].queue if kind == RESULT else facts[ordinal].late_queue
        if not queue or not summary.moved >> queue & 1:
            return value
    else:
        if register in summary.written:
            return None
        if not mask and summary.committed != NO_SCOREBOARD:
            mask, younger = 1 << summary.committed, -1
    queue, own = queue_and_own(facts[ordinal], kind, mask)
    if queue and summary.covered[queue] >= 0:
        return None
    if summary.counted.get((queue, own), _NEVER) <= younger:
        return None
    return mask | summary.added[queue], min(63, younger + summary.setters.get((queue, own), 0))
