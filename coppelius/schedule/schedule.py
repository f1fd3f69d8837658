"""Control words of a whole program: barriers, then stalls, then NOPs where fifteen cycles are not enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coppelius.isa.control import Control, legal_keep
from coppelius.isa.parser import parse
from coppelius.isa.refusal import Refusal
from coppelius.program.edit import rebuild
from coppelius.program.flow import blocks
from coppelius.program.program import Instruction, Program
from coppelius.schedule.barriers import assign
from coppelius.schedule.stalls import Stalls

Pins = Sequence[Mapping[str, int]]

_ROUNDS = 8


def schedule(program: Program, pins: Pins) -> tuple[Program, list[int]]:
    """The program under control words that cover its dependences, and each instruction's ordinal in the input.

    What `pins` fix stays, right or wrong: the checkers judge it.  NOPs are inserted where needed.
    """
    origin = list(range(len(program)))
    for _ in range(_ROUNDS):
        program, missing = _once(program, pins)
        if not missing:
            return program, origin
        nop = _nop(program)
        groups = [[nop] * (i in missing) + [row] for i, row in enumerate(program)]
        program, step = rebuild(program, groups)
        inserted = {k for k in range(1, len(step)) if step[k] == step[k - 1]}
        pins = [{} if k + 1 in inserted else pins[step[k]] for k in range(len(step))]
        origin = [origin[k] for k in step]
    raise Refusal(f"no schedule found in {_ROUNDS} rounds; instructions {sorted(missing)} lack cycles before them")


def _once(program: Program, pins: Pins) -> tuple[Program, dict[int, int]]:
    flow = blocks(program)
    rows = list(program)
    barriers = assign(rows, flow, pins)
    controls = [Control(1, True, w, r, m) for w, r, m in zip(barriers.write, barriers.read, barriers.wait, strict=True)]
    rows = [row.with_control(c) for row, c in zip(rows, controls, strict=True)]
    stalls = Stalls(rows, flow, pins)
    cycles = stalls.run()
    out = []
    for row, stall, pin in zip(rows, cycles, pins, strict=True):
        keep = pin.get("keep", int(legal_keep(stall)))
        out.append(row.with_fields({"stall": stall, "keep": keep}))
    return Program.of(out, program.table), stalls.missing


def _nop(program: Program) -> Instruction:
    encoding, values = parse(program.table, "NOP")
    return Instruction(encoding, tuple(values))
