"""When each instruction would issue if scoreboards were enough: what a shared one would cost is judged by these times.

The program is taken front to back as it stands, loops once; work that a loop carries on to its next round is
timed as if the round were repeated.  Memory is taken at both of the cycle model's figures.
"""

from __future__ import annotations

from collections.abc import Sequence

from coppelius.program.cycles import MEMORY_CYCLES
from coppelius.program.flow import Block
from coppelius.schedule.operation import HORIZON, RAW_NEED, Operation

# a place in a loop counts so many times more than one outside (assumed), up to a depth
_ROUNDS, _DEEPEST = 4, 3
# cycles lost where memory is near hurt more, because the whole takes less (assumed)
_WEIGHTS = (4.0, 1.0)


class Estimate:
    """`needs[i]`: (results, operands) that instruction i waits for, as sets of producers."""

    def __init__(
        self,
        operations: Sequence[Operation],
        blocks: Sequence[Block],
        needs: Sequence[tuple[int, int]],
    ) -> None:
        self.operations = operations
        self.loops = [(t, b.end) for b in blocks for t in b.following if t <= b.start]
        count = len(operations)
        self.depth = [0] * count
        for first, end in self.loops:
            for i in range(first, end):
                self.depth[i] = min(self.depth[i] + 1, _DEEPEST)
        self.issue: list[list[int]] = []
        self.ready: list[tuple[list[int], list[int]]] = []
        operands = [op.left for op in operations]
        for memory in MEMORY_CYCLES:
            results = [op.result(memory) for op in operations]
            issue = self._issue(needs, results, operands)
            self.issue.append(issue)
            done = [t + r for t, r in zip(issue, results, strict=True)]
            read = [t + r for t, r in zip(issue, operands, strict=True)]
            self.ready.append((done, read))

    def _issue(self, needs: Sequence[tuple[int, int]], results: Sequence[int], operands: Sequence[int]) -> list[int]:
        made: dict[int, tuple[int, int]] = {}
        issue: list[int] = []
        time = 0
        for i, op in enumerate(self.operations):
            for key, column in op.reads:
                if key in made and column >= 0:
                    issued, row = made[key]
                    if time - issued < HORIZON:
                        time = max(time, issued + RAW_NEED[row][column])
            for kind, cycles in zip(needs[i], (results, operands), strict=True):
                while kind:
                    p = kind.bit_length() - 1
                    kind &= ~(1 << p)
                    if p < i:
                        time = max(time, issue[p] + cycles[p])
            issue.append(time)
            for key, row, *_ in op.writes:
                if row >= 0:
                    made[key] = (time, row)
            time += op.floor
        return issue

    def spans(self, p: int, waiters: Sequence[int]) -> list[tuple[int, int]]:
        """Where the work that p raises, waited for by these, may be unfinished: after the first, before the second."""
        onward = [w for w in waiters if w > p]
        loop = self._loop(p, min(waiters))
        if loop is None:
            return [(p, max(onward))] if onward else []
        return [(p, loop[1]), (loop[0] - 1, max((w for w in waiters if loop[0] <= w <= p), default=loop[0]))]

    def late(self, p: int, kind: int, c: int) -> float:
        """Weighted cycles that instruction c would lose by waiting for p's result (0) or operands (1)."""
        loop = self._loop(p, c) if c <= p else None
        if c <= p and loop is None:
            return 0.0
        lost = 0.0
        for issue, ready, weight in zip(self.issue, self.ready, _WEIGHTS, strict=True):
            time = issue[c] if loop is None else issue[c] + issue[loop[1] - 1] - issue[loop[0]]
            lost += weight * max(0, ready[kind][p] - time)
        return lost * float(_ROUNDS ** self.depth[c])

    def _loop(self, p: int, c: int) -> tuple[int, int] | None:
        """The smallest loop that leads from p back to c, an earlier place or its own."""
        if c > p:
            return None
        around = [loop for loop in self.loops if loop[0] <= c and p < loop[1]]
        return min(around, key=lambda loop: loop[1] - loop[0], default=None)
