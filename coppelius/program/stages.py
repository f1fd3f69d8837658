"""A software-pipelined loop as data: which phase of an iteration each instruction of the body belongs to.

A phase starts one iteration and takes every other one that is under way a stage further: in phase t, the
instructions of stage s are those of iteration t - s.  Within a phase all of them issue in one order, whatever their
iteration.  So an instruction's place is its stage, then its rank in that order; a dependence from one iteration to
the next has a phase to spare.  A stage may be empty: its iteration waits for what is under way.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from coppelius.isa.refusal import Refusal


@dataclass(frozen=True)
class Stages:
    """`order`: the body's ordinals as they issue in one phase; `stage[i]`: phases after the iteration's first."""

    order: tuple[int, ...]
    stage: tuple[int, ...]

    def __post_init__(self) -> None:
        if sorted(self.order) != list(range(len(self.stage))):
            raise Refusal(f"stages: the order {list(self.order)} is not one of {len(self.stage)} instructions")
        if self.stage and min(self.stage) != 0:
            raise Refusal(f"stages from {min(self.stage)} on: they are counted from 0")

    @property
    def count(self) -> int:
        """How many iterations are under way at once."""
        return max(self.stage, default=0) + 1

    @cached_property
    def rank(self) -> tuple[int, ...]:
        """Each instruction's place in the order."""
        rank = [0] * len(self.order)
        for place, i in enumerate(self.order):
            rank[i] = place
        return tuple(rank)

    def between(self, first: int, second: int) -> int:
        """The least d for which iteration n's `first` issues before iteration n + d's `second`."""
        later = int(self.rank[first] >= self.rank[second])
        return self.stage[first] - self.stage[second] + later

    def copies(self, touches: Iterable[tuple[int, bool]]) -> int:
        """Iterations whose values of one register are alive at once; touches: (instruction, whether it writes)."""
        found = list(touches)
        pairs = ((a, b) for a, writes in found for b, also in found if writes or also)
        return max(1, *(self.between(a, b) for a, b in pairs), 1)


def in_turn(count: int) -> Stages:
    """One stage: a loop as it is written."""
    return Stages(tuple(range(count)), (0,) * count)
