"""Which producers share a scoreboard: those that cost each other least.

A waiter of one waits for the other, too, where both are in flight; what that costs is judged by the times of a
schedule with scoreboards enough (`estimate`).  Costs of pairs add up (more than true where three share one).
Front to back each takes the scoreboard that is cheapest; then single moves as long as they save something.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coppelius.isa.control import NO_BARRIER
from coppelius.schedule.estimate import Estimate

Work = tuple[int, int]  # (producer, 0 result or 1 operands)
# moves are tried so many times over (assumed: more seldom helps)
_ROUNDS = 4


class Sharing:
    """waiters: work that needs a scoreboard -> who waits for it.  fixed: what the kernel chose."""

    def __init__(
        self,
        estimate: Estimate,
        waiters: Mapping[Work, Sequence[int]],
        fixed: Mapping[Work, int],
        boards: Sequence[int],
    ) -> None:
        self.estimate, self.waiters, self.boards = estimate, waiters, boards
        self.chosen = {work: board for work, board in fixed.items() if board != NO_BARRIER}
        self.free = sorted(work for work in waiters if work not in fixed)
        self.spans = {work: estimate.spans(work[0], waiting) for work, waiting in waiters.items()}
        self.neighbours: dict[Work, dict[Work, float]] = {work: {} for work in waiters}
        self._meet()

    def run(self) -> dict[Work, int]:
        """The scoreboard of each piece of work."""
        last = dict.fromkeys(self.boards, -1)
        for work in self.free:
            costs, alike, held = self._costs(work)
            # of the cheapest: one waited for by the same, else an idle one, the longest idle first
            board = min(self.boards, key=lambda b: (costs[b], not alike[b], held[b], last[b], b))
            self.chosen[work] = board
            last[board] = work[0]
        for _ in range(_ROUNDS):
            moved = [self._move(work) for work in self.free]
            if not any(moved):
                break
        return self.chosen

    def _move(self, work: Work) -> bool:
        costs, _, _ = self._costs(work)
        now = self.chosen[work]
        best = min(self.boards, key=lambda b: (costs[b], b != now, b))
        self.chosen[work] = best
        return best != now

    def _costs(self, work: Work) -> tuple[dict[int, float], dict[int, bool], dict[int, bool]]:
        """For each scoreboard: what sharing it costs; whether only work with the same waiters has it, or any."""
        costs = dict.fromkeys(self.boards, 0.0)
        alike, held = dict.fromkeys(self.boards, False), dict.fromkeys(self.boards, False)
        for other, cost in self.neighbours[work].items():
            board = self.chosen.get(other)
            if board in costs:
                costs[board] += cost
                same = self.waiters[other] == self.waiters[work]
                alike[board] = same and (alike[board] or not held[board])
                held[board] = True
        return costs, alike, held

    def _meet(self) -> None:
        """Find the pairs that are in flight together, and what they cost each other."""
        starts = sorted((first, end, work) for work, spans in self.spans.items() for first, end in spans)
        active: list[tuple[int, Work]] = []
        for first, end, work in starts:
            active = [(until, other) for until, other in active if until > first]
            for _, other in active:
                if other != work and other not in self.neighbours[work]:
                    cost = self._pair(work, other) + self._pair(other, work)
                    self.neighbours[work][other] = self.neighbours[other][work] = cost
            active.append((end, work))

    def _pair(self, one: Work, other: Work) -> float:
        """What the waiters of one lose by waiting for the other."""
        cost = 0.0
        also = self.waiters[other]
        for c in self.waiters[one]:
            if c not in also and any(first < c < end for first, end in self.spans[other]):
                cost += self.estimate.late(*other, c)
        return cost
