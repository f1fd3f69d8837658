"""Who may go on: barriers of a block count its threads, barriers of a warp name lanes.

A block barrier is complete when as many threads have come as it expects: the count given, or all threads
of the block that have not left.  BAR.ARV comes without waiting.  A thread at BSYNC or WARPSYNC goes on
when each lane it waits for is parked at the same barrier or has left.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from coppelius.emulator.group import Bools, Group, Words32, ballot
from coppelius.emulator.operation import Operation

if TYPE_CHECKING:
    from coppelius.emulator.engine import Engine


@dataclass(eq=False)
class Parked:
    """Threads that wait: why ("bar", "bsync", "warpsync"), for which barrier, and where they go on."""

    kind: str
    key: int
    resume: int
    group: Group
    operation: Operation
    need: Words32 | None = None  # of a warp barrier: the lanes each thread waits for, [warps, 32]
    vote: Bools | None = None  # of BAR.RED
    count: int = 0  # of BAR: threads expected, 0 for the whole block
    reduce: str = ""


def release_barriers(engine: Engine) -> None:
    """Lets the threads of complete blocks go on from their BAR."""
    waiting = [p for p in engine.parked if p.kind == "bar"]
    for key, count in sorted({(p.key, p.count) for p in waiting}):
        _release_barrier(engine, key, [p for p in waiting if (p.key, p.count) == (key, count)])


def _release_barrier(engine: Engine, key: int, waiting: list[Parked]) -> None:
    machine = engine.machine
    per_block = machine.warps_per_block
    arrived = _gathered(engine, waiting).reshape(machine.capacity, per_block * 32)
    counts = arrived.sum(axis=1)
    for (barrier, block), threads in engine.arrivals.items():
        if barrier == key:
            counts[block] += threads
    alive = machine.alive.reshape(machine.capacity, -1).sum(axis=1)
    expected = waiting[0].count
    complete = (counts >= np.where(alive == 0, 1, alive)) if expected == 0 else counts >= expected
    complete &= arrived.any(axis=1)
    if not complete.any():
        return
    for block in np.flatnonzero(complete).tolist():
        engine.arrivals.pop((key, block), None)
    first = waiting[0]
    completed(engine, first.operation, first.group, key, complete, arrived.reshape(-1, 32), whole=expected == 0)
    _reduce(engine, waiting, complete)
    whole = complete[machine.block_of_warp].reshape(-1, 1)
    for parked in waiting:
        _resume(engine, parked, whole[parked.group.select])


def completed(
    engine: Engine, operation: Operation, group: Group, key: int, blocks: Bools, arrived: Bools, *, whole: bool
) -> None:
    """Tells the sanitizers of barriers that are complete."""
    if engine.sync is not None and whole:
        engine.sync.complete(operation, group, blocks)
    if engine.machine.races is not None:
        engine.machine.races.passed(key, blocks, arrived, whole=whole)


def _reduce(engine: Engine, waiting: list[Parked], complete: Bools) -> None:
    """The result of BAR.RED over a block's threads, for B2R."""
    machine = engine.machine
    kind = next((p.reduce for p in waiting if p.reduce), "")
    if not kind:
        return
    shape = (machine.capacity, machine.warps_per_block * 32)
    votes = np.zeros((machine.warps, 32), dtype=np.bool_)
    for parked in waiting:
        if parked.vote is not None:
            votes[parked.group.select] |= parked.vote & parked.group.active
    present = _gathered(engine, waiting).reshape(shape)
    flat = votes.reshape(shape)
    result: Any = flat.any(axis=1)
    if kind == "AND":
        result = (flat | ~present).all(axis=1)
    elif kind != "OR":
        result = flat.sum(axis=1)
    spread = result.astype(np.uint32)[machine.block_of_warp].reshape(-1, 1)
    chosen = complete[machine.block_of_warp].reshape(-1, 1)
    np.copyto(machine.barrier_result, spread, where=chosen)


def release_convergence(engine: Engine) -> None:
    """Lets threads go on from BSYNC and WARPSYNC whose fellows have come or left."""
    waiting = [p for p in engine.parked if p.kind in ("bsync", "warpsync")]
    if not waiting:
        return
    gone = engine.exited()
    for key in sorted({(p.kind, p.key) for p in waiting}):
        together = [p for p in waiting if (p.kind, p.key) == key]
        come = ballot(_gathered(engine, together))
        come |= gone
        for parked in together:
            here = parked.group.select
            need = engine.machine.convergence[parked.key, here] if parked.need is None else parked.need
            _met(engine, parked.group, need, (need & ~come[here].reshape(-1, 1)) == 0)
            _resume(engine, parked, (need & ~come[here].reshape(-1, 1)) == 0)


def _met(engine: Engine, group: Group, need: Words32, free: Bools) -> None:
    """Tells racecheck which lanes have waited for which."""
    if engine.machine.races is not None:
        engine.machine.races.together(group, np.where(free, need, np.uint32(0)))


def _gathered(engine: Engine, waiting: list[Parked]) -> Bools:
    """`bool[warps, 32]`: the lanes parked in these."""
    lanes = np.zeros((engine.machine.warps, 32), dtype=np.bool_)
    for parked in waiting:
        if parked.group.mask is None:
            lanes[parked.group.select] = True
        else:
            lanes[parked.group.select] |= parked.group.mask
    return lanes


def _resume(engine: Engine, parked: Parked, free: Bools) -> None:
    """The free lanes go on; the others stay parked."""
    go, stay = parked.group.split(free)
    if go is None:
        return
    engine.push(parked.resume, go)
    engine.parked.remove(parked)
    if stay is not None:
        engine.parked.append(_kept(parked, stay))


def _kept(parked: Parked, stay: Group) -> Parked:
    """The same wait for fewer threads."""
    rows = np.searchsorted(parked.group.warps, stay.warps)
    shape = (parked.group.count, 32)
    need = None if parked.need is None else np.broadcast_to(parked.need, shape)[rows]
    vote = None if parked.vote is None else np.broadcast_to(parked.vote, shape)[rows]
    return replace(parked, group=stay, need=need, vote=vote)
