"""A loop's body several times over and no branch: the form in which a reader that follows none sees a second pass.

What a pass leaves in flight meets the next pass's first instructions here as it does on the machine: the branch
back becomes a NOP under the branch's own control word, which takes no longer than the branch.
"""

from __future__ import annotations

from coppelius.isa.parser import parse
from coppelius.isa.refusal import Refusal
from coppelius.program.flow import stem
from coppelius.program.program import Instruction, Program, branch_target


def unrolled(program: Program, times: int = 2) -> Program:
    """The program with the body of its one loop `times` times; refuses a program with other branches.

    The instructions of the tail, and those that stop at themselves to fill the end, are kept.
    """
    rows = list(program)
    places = [i for i, row in enumerate(rows) if stem(row) == "BRA" and branch_target(row, i) != i]
    if len(places) != 1 or (start := branch_target(rows[places[0]], places[0])) is None or start > places[0]:
        raise Refusal(f"unroll: {len(places)} branches; it needs one, back to the start of a loop")
    end = places[0]
    body = [*rows[start:end], _passed(program, rows[end])]
    tail = [row for i, row in enumerate(rows) if i > end and stem(row) != "BRA"]
    return Program.of([*rows[:start], *body * times, *tail], program.table)


def _passed(program: Program, branch: Instruction) -> Instruction:
    """A NOP in the branch's place."""
    encoding, values = parse(program.table, "NOP")
    return Instruction(encoding, tuple(values)).with_control(branch.control)
