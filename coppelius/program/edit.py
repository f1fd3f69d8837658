"""Changing a program's length: instructions inserted or replaced by several, branches following their targets."""

from __future__ import annotations

from collections.abc import Sequence

from coppelius.program.program import Instruction, Program, branch_target, branch_to


def rebuild(program: Program, groups: Sequence[Sequence[Instruction]]) -> tuple[Program, list[int]]:
    """The program in which instruction i became `groups[i]`; returns it and each new instruction's old ordinal.

    A branch to i goes to the first of `groups[i]`; a group must not be empty, and its branch comes last.
    """
    starts, total = [], 0
    for group in groups:
        starts.append(total)
        total += len(group)
    rows: list[Instruction] = []
    origin: list[int] = []
    for old, group in enumerate(groups):
        target = branch_target(program[old], old)
        for row in group:
            if target is not None and row.label is not None:
                row = branch_to(row, len(rows), starts[target])
            rows.append(row)
            origin.append(old)
    return Program.of(rows, program.table), origin
