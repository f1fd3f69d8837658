"""Control flow: where each thread goes on.

A branch sends the threads whose guard (and second predicate) hold to its target, the others to the next
instruction.  BSSY names the active threads of each warp in a convergence barrier; BSYNC waits for those
of them that have not left by EXIT or BREAK.  The barrier is kept per thread, because threads apart from
each other may use the same number for different barriers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from coppelius.emulator.access import row_writer
from coppelius.emulator.barriers import Parked, completed
from coppelius.emulator.group import LANES, Group, Words32, ballot
from coppelius.emulator.operation import Operation
from coppelius.emulator.registry import ControlStep, Step, controls, executes
from coppelius.isa.address import OffsetVia
from coppelius.isa.refusal import Refusal
from coppelius.program.program import branch_target

if TYPE_CHECKING:
    from coppelius.emulator.engine import Engine

_PACKED = 0x31D  # the form of BAR whose register holds number and count

Target = Callable[["Engine", Group], None]


@executes("NOP", "YIELD", "MEMBAR", "ERRBAR", "CCTL", "CCTLL", "PMTRIG", "LDGDEPBAR", "DEPBAR", "NANOSLEEP")
def nothing(op: Operation) -> Step:
    """Order of memory and time: every access is done when its instruction is."""
    op.ignore(*(m.name for m in op.encoding.modifiers))
    return lambda _: None


def _target(op: Operation) -> int:
    target = branch_target(op.instruction, op.ordinal)
    if target is None or target < 0:
        raise Refusal(f"{op.machine.kernel}+{op.ordinal * 16:#06x} {op.text}: branches to no instruction")
    return target


def _branch(op: Operation, go: Target) -> ControlStep:
    """Threads whose guard and second predicate hold take `go`, the others the next instruction."""
    also, bit = op.predicate("Ps"), op.predicate("Pu")
    following = op.ordinal + 1

    def step(engine: Engine, group: Group, part: Group | None) -> None:
        taken = None if part is None else part.under(also(part) & bit(part))
        if taken is None:
            engine.push(following, group)
        elif taken is group:
            go(engine, group)
        else:
            taken, rest = group.split(taken.active)
            engine.push(following, rest)
            if taken is not None:
                go(engine, taken)

    return step


@controls("BRA")
def bra(op: Operation) -> ControlStep:
    target = _target(op)
    if op.has("mask"):
        return _branch_by_mask(op, target)
    _uniform_hint(op)
    return _branch(op, lambda engine, taken: engine.push(target, taken))


def _uniform_hint(op: Operation) -> None:
    """.U promises that a warp's threads agree, which changes nothing here; .DIV and .CONV without a mask do."""
    if op.instruction.get("MODE") in (0, 1):
        op.ignore("MODE")


def _branch_by_mask(op: Operation, target: int) -> ControlStep:
    """BRA.DIV: a warp takes the branch whose active threads are not all those of the mask; BRA.CONV: the others."""
    mask = op.integer("mask")
    following = op.ordinal + 1
    wants_all = op.suffix("DIV") == "CONV"

    def step(engine: Engine, group: Group, _: Group | None) -> None:
        whole = (mask(group) & ~ballot(group.active).reshape(-1, 1)) == 0
        taken, rest = group.split(whole if wants_all else ~whole)
        engine.push(following, rest)
        engine.push(target, taken)

    return step


@controls("EXIT", "KILL")
def exit_(op: Operation) -> ControlStep:
    op.ignore("MODE")
    return _branch(op, lambda engine, taken: engine.leave(taken))


@controls("BPT")
def trap(op: Operation) -> ControlStep:
    """A trap ends the launch."""
    op.ignore("MODE")

    def go(engine: Engine, taken: Group) -> None:
        engine.machine.report(op, "trap", "the kernel trapped", warps=taken.warps, lanes=taken.active)
        engine.leave(taken)

    return _branch(op, go)


@controls("BRX", "BRXU", "JMP", "JMX", "JMXU", "CALL", "RET")
def indirect(op: Operation) -> ControlStep:
    """Calls and returns are branches, because code keeps the return address itself.

    Relative forms count from the next instruction, absolute ones from the program's start, which lies at 0.
    """
    if op.has("mask"):
        raise Refusal(f"{op.encoding.name}: the emulator has no meaning for this form")
    op.ignore(".ABS", ".REL", "NOINC", "NODEC")
    _uniform_hint(op)
    return _branch(op, _indirect(op))


def _base(op: Operation) -> int:
    if op.instruction.label:
        return _target(op) * 16
    offset = next((s for s in op.encoding.operands if isinstance(s, OffsetVia)), None)
    if offset is not None:
        relative = op.mnemonic in ("BRX", "BRXU")
        return op.field(offset.name) * offset.scale + (op.ordinal + 1) * 16 * relative
    return op.field("place", 0) * 4


def _indirect(op: Operation) -> Target:
    """To a fixed place plus a register pair, where there is one."""
    base = _base(op)
    if not op.has("A") and not op.has("B"):
        return lambda engine, taken: engine.push(_place(op, base), taken)
    register = op.integer64("A" if op.has("A") else "B")

    def go(engine: Engine, taken: Group) -> None:
        where = np.broadcast_to(register(taken), (taken.count, LANES)) + np.uint64(base & (2**64 - 1))
        places = where[taken.active] if taken.mask is not None else where
        for address in np.unique(places).tolist():
            engine.push(_place(op, address), taken.part(where == np.uint64(address)))

    return go


def _place(op: Operation, address: int) -> int:
    if address % 16 or address >= 16 * len(op.program):
        raise Refusal(
            f"{op.machine.kernel}+{op.ordinal * 16:#06x} {op.text}: goes to {address:#x}, outside the program"
        )
    return address // 16


# convergence


def _lanes_of_group(group: Group) -> Words32:
    return ballot(group.active).reshape(-1, 1)


@executes("BSSY")
def bssy(op: Operation) -> Step:
    write = row_writer(op.machine.convergence[op.field("barrier")])
    return lambda g: write(g, _lanes_of_group(g))


@executes("BREAK")
def break_(op: Operation) -> Step:
    row = op.machine.convergence[op.field("barrier")]
    also = op.predicate("Ps")

    def step(g: Group) -> None:
        part = g.under(also(g))
        if part is not None:
            row[part.select] &= ~_lanes_of_group(part)

    return step


@controls("BSYNC")
def bsync(op: Operation) -> ControlStep:
    number = op.field("barrier")
    row = op.machine.convergence[number]

    def go(engine: Engine, group: Group) -> None:
        _wait(engine, op, "bsync", number, group, row[group.select])

    return _branch(op, go)


@controls("WARPSYNC")
def warpsync(op: Operation) -> ControlStep:
    op.ignore("EXCLUSIVE")
    mask = op.word("B")

    def go(engine: Engine, group: Group) -> None:
        need = np.broadcast_to(mask(group), (group.count, LANES))
        _wait(engine, op, "warpsync", 0, group, need)

    return _branch(op, go)


def _wait(engine: Engine, op: Operation, kind: str, key: int, group: Group, need: Words32) -> None:
    """Goes on at once where everyone needed is here; else parks."""
    missing = need & ~(_lanes_of_group(group) | engine.exited()[group.select].reshape(-1, 1))
    if engine.sync is not None and kind == "warpsync":
        engine.sync.name(op, group, need)
    if not (missing if group.mask is None else missing[group.mask]).any():
        if engine.machine.races is not None:
            engine.machine.races.together(group, need)
        engine.push(op.ordinal + 1, group)
        return
    kept = None if kind == "bsync" else need
    engine.park(Parked(kind, key, op.ordinal + 1, group, op, need=kept))


# barriers of the block


@controls("BAR")
def bar(op: Operation) -> ControlStep:
    mode = op.suffix("MODE") or "SYNC"
    number, count = _barrier_numbers(op)
    # a barrier's own predicate is what it reduces, not a condition
    vote = op.predicate("Ps")
    reduce = op.suffix("REDUCE") if mode.startswith("RED") else ""

    def go(engine: Engine, group: Group) -> None:
        for key, threads, part in _by_barrier(group, number(group), count(group)):
            if engine.sync is not None:
                engine.sync.arrive(op, part, key, threads)
            if mode.startswith("ARV"):
                _arrive(engine, key, part)
                engine.push(op.ordinal + 1, part)
            elif threads == 0 and not reduce and part.threads == engine.machine.alive_threads:
                everyone = np.ones(engine.machine.capacity, np.bool_)
                completed(engine, op, part, key, everyone, engine.machine.alive, whole=True)
                engine.push(op.ordinal + 1, part)
            else:
                votes = np.broadcast_to(vote(part), (part.count, LANES)).copy() if reduce else None
                wait = Parked("bar", key, op.ordinal + 1, part, op, vote=votes, count=threads, reduce=reduce)
                engine.park(wait)

    following = op.ordinal + 1

    def step(engine: Engine, group: Group, part: Group | None) -> None:
        if part is not None:
            go(engine, part)
        engine.push(following, group if part is None else None if part is group else group.part(~part.active))

    return step


def _barrier_numbers(op: Operation) -> tuple[Callable[[Group], Any], Callable[[Group], Any]]:
    """Readers of barrier number and thread count, from immediates or registers (one may hold both)."""
    zero = np.zeros((1, 1), np.uint32)
    number = op.word("barrier") if op.has("barrier") else lambda _: zero
    if op.has("count"):
        return number, op.word("count")
    if op.encoding.opcode == _PACKED:
        return lambda g: number(g) & np.uint32(15), lambda g: number(g) >> np.uint32(16) & np.uint32(0xFFF)
    return number, lambda _: zero


def _by_barrier(group: Group, number: npt.NDArray[Any], count: npt.NDArray[Any]) -> list[tuple[int, int, Group]]:
    pairs = number.astype(np.int64) << 16 | count.astype(np.int64)
    if pairs.size == 1:
        return [(int(pairs.flat[0]) >> 16, int(pairs.flat[0]) & 0xFFFF, group)]
    spread = np.broadcast_to(pairs, (group.count, LANES))
    found = []
    for pair in np.unique(spread[group.active]).tolist():
        part = group.part(spread == pair)
        if part is not None:
            found.append((pair >> 16, pair & 0xFFFF, part))
    return found


def _arrive(engine: Engine, key: int, group: Group) -> None:
    blocks = engine.machine.block_of_warp[group.select]
    lanes = group.active.sum(axis=1)
    for block in np.unique(blocks).tolist():
        place = (key, block)
        engine.arrivals[place] = engine.arrivals.get(place, 0) + int(lanes[blocks == block].sum())
    if engine.machine.races is not None:
        engine.machine.races.arrive(key, group)


@executes("B2R")
def b2r(op: Operation) -> Step:
    """The result of BAR.RED: a count, or a truth in a predicate."""
    if not op.marked(".RESULT"):
        raise Refusal(f"{op.encoding.name}: the emulator has no meaning for this form")
    result = op.machine.barrier_result
    d = op.destination("D") if op.has("D") else None
    p = op.destination_predicate("Pd")

    def step(g: Group) -> None:
        value = result[g.select]
        if d is not None:
            d(g, value)
        p(g, value != 0)

    return step
