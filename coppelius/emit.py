"""The emit step: one image's kernel, built, scheduled and printed.

The kernel is named by a string and imported here, so that a module that cannot be imported refuses its
own images only.  Beside the listing goes the line table: for each emitted instruction the kernel's file
and line, apart, so that a moved comment leaves the listing's bytes alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from coppelius.builder.assemble import Assembled, assemble
from coppelius.builder.draft import Draft, Source
from coppelius.builder.flow import Liveness
from coppelius.builder.kernel import Kernel
from coppelius.isa.refusal import Refusal
from coppelius.isa.table import Table
from coppelius.program.flow import Block
from coppelius.program.listing import listing_text
from coppelius.program.program import Instruction, Program
from coppelius.schedule.compaction import compact_stalls
from coppelius.schedule.operation import operation_of
from coppelius.schedule.pressure import Budget
from coppelius.schedule.reorder import ordered
from coppelius.schedule.schedule import is_quicker, schedule

RESERVED_REGISTERS = 2  # facts 3.9: the hardware keeps two of the declared registers


@dataclass(frozen=True)
class Emitted:
    """`lines`: JSON text {"files": [...], "lines": [[file, line, region], ...]}, an entry an instruction."""

    listing: str
    lines: str


def emit(
    kernel: str,
    options: Mapping[str, Any],
    *,
    parameters: Sequence[Mapping[str, Any]],
    registers: int | None,
    block_x: int,
    reorder: bool = True,
) -> Emitted:
    """Build `module:function` with its options.

    parameters: rows with name, kind, type, offset.  registers: the declared budget (None: its demand).
    reorder: instructions may change places within their blocks, before and after registers are placed, where the
    cycle model finds that quicker; what the kernel pins stays where it is.
    Refuses by name a kernel that cannot be found, imported, allocated within its budget or scheduled.
    """
    function = _load(kernel)
    k = Kernel({p["name"]: (p["kind"], p["type"], p["offset"]) for p in parameters}, block_x=block_x)
    function(k, **options)
    budget = 253 if registers is None else registers - RESERVED_REGISTERS
    movable = reorder and bool(k.draft.items)  # an empty kernel is refused where it is assembled
    moved = ordered_draft(k.draft, budget if registers is not None else None) if movable else None
    built = assemble(k.draft, k.table, registers=budget)
    program, origin = schedule(built.program, built.pins, reorder=reorder)
    if moved is not None:
        built, program, origin = _quicker((built, program, origin), moved, k.table, budget)
    pinned = frozenset(i for i, old in enumerate(origin) if "stall" in built.pins[old])
    program = compact_stalls(program, pinned=pinned)
    return Emitted(listing_text(program), _line_table([built.sources[i] for i in origin]))


_Scheduled = tuple[Assembled, Program, list[int]]


def _quicker(own: _Scheduled, draft: Draft, table: Table, registers: int) -> _Scheduled:
    """The kernel's own order, or the draft's where it has places for its registers and the model finds it quicker."""
    try:
        built = assemble(draft, table, registers=registers)
    except Refusal:
        return own
    program, origin = schedule(built.program, built.pins, reorder=True)
    return (built, program, origin) if is_quicker(program, own[1]) else own


def ordered_draft(draft: Draft, registers: int | None) -> Draft:
    """The draft with its blocks ordered before registers are placed, no more live at once than `registers`.

    None: than the draft's own order has live at its widest.
    """
    items = draft.items
    spans = _spans(draft)
    live = [frozenset(keys) for keys in _live(draft)]
    widest = max(len(keys) for keys in live)
    budget = Budget(
        widest if registers is None else registers,
        {s.start: live[2 * s.start] for s in spans},
        {s.start: live[2 * s.end - 1] for s in spans},
    )
    rows = [Instruction(item.encoding, tuple(item.values)) for item in items]
    operations = [operation_of(row.encoding, row.values) for row in rows]
    order = ordered(rows, operations, spans, [item.pins for item in items], budget)
    return Draft([replace(items[i], values=list(items[i].values)) for i in order], draft.labels, draft.names)


def _spans(draft: Draft) -> list[Block]:
    """Runs that are entered at their first instruction and left at their last."""
    ends = {i + 1 for i, item in enumerate(draft.items) if item.encoding.mnemonic.split(".")[0] in ("BRA", "EXIT")}
    starts = sorted({0, *draft.labels.values(), *ends} - {len(draft.items)})
    return [Block(s, e, ()) for s, e in zip(starts, [*starts[1:], len(draft.items)], strict=True)]


def _live(draft: Draft) -> list[set[int]]:
    """General registers live before each instruction (even places) and after it (odd ones)."""
    live: list[set[int]] = [set() for _ in range(2 * len(draft.items))]
    for virtual, points in zip(draft.names.virtuals, Liveness(draft).points, strict=True):
        for place in range(points.bit_length()) if virtual.space == "R" else ():
            if points >> place & 1:
                live[place].update(range(virtual.first, virtual.first + virtual.width))
    return live


def _load(kernel: str) -> Any:
    module, _, function = kernel.partition(":")
    found = getattr(import_module(module), function, None)
    if found is None:
        raise Refusal(f"kernel {kernel}: module {module} has no {function}")
    return found


def _line_table(sources: Sequence[Source]) -> str:
    files = list(dict.fromkeys(s.file for s in sources))
    lines = [[files.index(s.file), s.line, s.region] for s in sources]
    return json.dumps({"files": files, "lines": lines}, separators=(",", ":")) + "\n"
