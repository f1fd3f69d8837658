"""A finished draft to a program: registers placed, branches resolved, pins and sources set beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from coppelius.builder.allocation import allocate
from coppelius.builder.draft import Draft, Source
from coppelius.builder.flow import Liveness
from coppelius.builder.loops import lay_out_all
from coppelius.isa.refusal import Refusal
from coppelius.isa.table import Table
from coppelius.program.program import Instruction, Program, branch_to


@dataclass(frozen=True)
class Assembled:
    """`pins[i]`: control fields the kernel fixed; `sources[i]`: where instruction i comes from."""

    program: Program
    pins: list[Mapping[str, int]]
    sources: list[Source]


def assemble(draft: Draft, table: Table, *, registers: int, liveness: Liveness | None = None) -> Assembled:
    """Allocate within `registers` general registers, resolve labels; refuses an empty kernel.

    Loops that are not laid out yet run as they are written.  liveness: where it is known, of a draft without loops.
    """
    if not draft.items:
        raise Refusal("the kernel emits no instruction")
    draft = lay_out_all(draft, table)
    allocate(draft, registers=registers, liveness=liveness)
    rows = []
    for ordinal, item in enumerate(draft.items):
        instruction = Instruction(item.encoding, tuple(item.values))
        if item.target is not None:
            if item.target not in draft.labels:
                raise Refusal(f"{item.source.file}:{item.source.line}: label {item.target} is never placed")
            instruction = branch_to(instruction, ordinal, draft.labels[item.target])
        rows.append(instruction)
    return Assembled(Program.of(rows, table), [i.pins for i in draft.items], [i.source for i in draft.items])
