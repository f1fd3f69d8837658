"""Traces: ordinals in the order in which a warp could issue them, for the cycle model.

`reachable` is every instruction that some path comes to, front to back: what comparing two schedules of one
program wants.  `walk` is one path: forward branches that may fall through do, loops run a number of times.
"""

from __future__ import annotations

from coppelius.program.flow import blocks
from coppelius.program.program import Program

# loops within loops: so many times the program's length, no more (assumed: enough to weigh loops)
_MOST_ROUNDS = 8


def reachable(program: Program) -> list[int]:
    """Ordinals that some path from the start comes to, in order."""
    by_start = {block.start: block for block in blocks(program)}
    seen = {0}
    pending = [0]
    while pending:
        for target in by_start[pending.pop()].following:
            if target not in seen:
                seen.add(target)
                pending.append(target)
    return [i for start in sorted(seen) for i in range(start, by_start[start].end)]


def walk(program: Program, *, rounds: int = 2) -> list[int]:
    """One path from the start: each backward branch is taken `rounds - 1` times in all, if the path is not too long."""
    by_start = {block.start: block for block in blocks(program)}
    taken: dict[int, int] = {}
    path: list[int] = []
    place: int | None = 0
    while place is not None:
        block = by_start[place]
        path += range(block.start, block.end)
        back = [t for t in block.following if t <= block.start]
        onward = [t for t in block.following if t > block.start]
        if back and taken.get(block.start, 0) < rounds - 1 and len(path) < _MOST_ROUNDS * len(program):
            taken[block.start] = taken.get(block.start, 0) + 1
            place = back[0]
        else:
            # what falls through is nearest
            place = min(onward, default=None)
    return path
