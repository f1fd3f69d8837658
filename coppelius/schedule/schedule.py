"""Control words of a whole program: barriers, stalls, NOPs where fifteen cycles are not enough; then reuse flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coppelius.isa.control import MAX_STALL, Control, legal_keep
from coppelius.isa.parser import parse
from coppelius.isa.refusal import Refusal
from coppelius.program.cycles import MEMORY_CYCLES, modelled_cycles
from coppelius.program.edit import rebuild
from coppelius.program.flow import blocks
from coppelius.program.program import Instruction, Program, branch_target, branch_to
from coppelius.program.trace import reachable, walk
from coppelius.schedule.barriers import assign
from coppelius.schedule.likeness import Memory, like, pins_of, shape_of
from coppelius.schedule.operation import Operation, operation_of
from coppelius.schedule.reorder import ordered
from coppelius.schedule.reuse import with_reuse
from coppelius.schedule.stalls import Stalls

Pins = Sequence[Mapping[str, int]]

_ROUNDS = 8
_SCHEDULES: Memory[tuple[tuple[Instruction, ...], tuple[int, ...]]] = Memory()
_FIGURES: Memory[_Figures] = Memory()


def schedule(program: Program, pins: Pins, *, reorder: bool = False) -> tuple[Program, list[int]]:
    """The program under control words that cover its dependences, and each instruction's ordinal in the input.

    What `pins` fix stays, right or wrong: the checkers judge it.  NOPs are inserted where needed.
    reorder: instructions may change places within their blocks, if the cycle model finds that quicker.
    """
    question = (shape_of(program.rows), pins_of(pins), reorder)
    known = _SCHEDULES.get(question)
    if known is None:
        made, origin = _schedule(program, pins, reorder)
        _SCHEDULES.keep(question, (made.rows, tuple(origin)))
        return made, origin
    rows, places = known
    own = program.rows
    return Program.of([like(row, own[i]) for row, i in zip(rows, places, strict=True)], program.table), list(places)


def _schedule(program: Program, pins: Pins, reorder: bool) -> tuple[Program, list[int]]:
    own = _scheduled(program, pins)
    if not reorder:
        return own
    order, moved = _moved(program, pins)
    if order == list(range(len(program))):
        return own
    other, step = _scheduled(moved, [pins[i] for i in order])
    if not is_quicker(other, own[0]):
        return own
    return other, [order[i] for i in step]


def is_quicker(program: Program, than: Program) -> bool:
    """Whether the model finds it quicker somewhere and slower nowhere: either trace, either memory figure."""
    mine, other = _figures(program), _figures(than)
    quicker = False
    for n in range(2 * len(MEMORY_CYCLES)):
        if mine[n] > other[n]:
            return False
        quicker |= mine[n] < other[n]
    return quicker


class _Figures:
    """Modelled cycles of both traces, each at both memory figures; found when they are asked for."""

    def __init__(self, program: Program) -> None:
        self.program, self.found = program, dict[int, int]()
        self.traces = [reachable(program), walk(program)]

    def __getitem__(self, n: int) -> int:
        trace, memory = divmod(n, len(MEMORY_CYCLES))
        if trace and self.traces[1] == self.traces[0]:
            return self[memory]
        if n not in self.found:
            self.found[n] = modelled_cycles(self.program, self.traces[trace], memory=MEMORY_CYCLES[memory])
        return self.found[n]


def _figures(program: Program) -> _Figures:
    shape = shape_of(program.rows)
    return _FIGURES.get(shape) or _FIGURES.keep(shape, _Figures(program))


def _moved(program: Program, pins: Pins) -> tuple[list[int], Program]:
    """The old ordinals in their new order, and the program so ordered; branches follow their targets."""
    rows = list(program)
    order = ordered(rows, [operation_of(r.encoding, r.values) for r in rows], blocks(program), pins)
    moved = []
    for new, old in enumerate(order):
        target = branch_target(rows[old], old)
        # targets begin blocks, and those keep their places
        moved.append(rows[old] if target is None or new == old else branch_to(rows[old], new, target))
    return order, Program.of(moved, program.table)


def _scheduled(program: Program, pins: Pins) -> tuple[Program, list[int]]:
    origin = list(range(len(program)))
    for _ in range(_ROUNDS):
        program, missing = _once(program, pins)
        if not missing:
            return program, origin
        nop = _nop(program)
        groups = [[nop] * -(-missing.get(i, 0) // MAX_STALL) + [row] for i, row in enumerate(program)]
        program, step = rebuild(program, groups)
        inserted = {k for k in range(1, len(step)) if step[k] == step[k - 1]}
        pins = [{} if k + 1 in inserted else pins[step[k]] for k in range(len(step))]
        origin = [origin[k] for k in step]
    raise Refusal(f"no schedule found in {_ROUNDS} rounds; instructions {sorted(missing)} lack cycles before them")


def _once(program: Program, pins: Pins) -> tuple[Program, dict[int, int]]:
    flow = blocks(program)
    rows = list(program)
    operations = [operation_of(row.encoding, row.values) for row in rows]
    barriers = assign(rows, operations, flow, pins)
    controls = [Control(1, True, w, r, m) for w, r, m in zip(barriers.write, barriers.read, barriers.wait, strict=True)]
    rows = [row.with_control(c) for row, c in zip(rows, controls, strict=True)]
    stalls = Stalls(rows, operations, flow, pins)
    cycles = stalls.run()
    out = []
    ended = False
    for i, (row, stall, pin) in enumerate(zip(rows, cycles, pins, strict=True)):
        # compiled code drains at the branch to itself that ends a program, and at the padding after it (mined)
        ended = branch_target(row, i) == i or (ended and operations[i].kind == "NOP")
        if ended and "stall" not in pin:
            stall = 0
        keep = pin.get("keep", int(_keeps(operations, i, stall)))
        out.append(row.with_fields({"stall": stall, "keep": keep}))
    return Program.of(with_reuse(out, flow), program.table), stalls.missing


def _keeps(operations: Sequence[Operation], i: int, stall: int) -> bool:
    """Whether to keep issuing (bit 109): compiled code does unless what comes next waits for something made before."""
    if not legal_keep(stall) or operations[i].kind == "DEPBAR":
        return False
    own = operations[i]
    following = operations[i + 1] if i + 1 < len(operations) else own
    # mined: up to 2, and as long as the pipe is taken or as always after such an instruction
    shared = own.taken if own.pipes == following.pipes else 1
    return stall <= max(2, own.floor, shared) or own.kind == "BAR"


def retime(program: Program, changed: frozenset[int]) -> tuple[Program, list[int]]:
    """The program with stalls raised where distances to or from the changed instructions lack cycles.

    And the instructions before which no stall can give them.
    """
    rows = list(program)
    operations = [operation_of(row.encoding, row.values) for row in rows]
    before = [row["stall"] for row in rows]
    stalls = Stalls(rows, operations, blocks(program), [{}] * len(rows), list(before), among=changed)
    cycles = stalls.run()
    raised = [
        row.with_fields({"stall": now, "keep": row["keep"] and int(legal_keep(now))}) if now != was else row
        for row, was, now in zip(rows, before, cycles, strict=True)
    ]
    return Program.of(raised, program.table), sorted(stalls.missing)


def _nop(program: Program) -> Instruction:
    encoding, values = parse(program.table, "NOP")
    return Instruction(encoding, tuple(values))
