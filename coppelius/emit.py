"""The emit step: one image's kernel, built, scheduled and printed.

The kernel is named by a string and imported here, so that a module that cannot be imported refuses its
own images only.  Beside the listing goes the line table: for each emitted instruction the kernel's file
and line, apart, so that a moved comment leaves the listing's bytes alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

from coppelius.builder.assemble import Assembled, assemble
from coppelius.builder.draft import Draft, Loop, Source
from coppelius.builder.flow import Liveness
from coppelius.builder.kernel import Kernel
from coppelius.builder.loops import LaidOut, lay_out, lay_out_all, own_registers
from coppelius.builder.registers import Virtual
from coppelius.isa.refusal import Refusal
from coppelius.isa.table import Table
from coppelius.program.cycles import MEMORY_CYCLES, modelled_cycles
from coppelius.program.flow import Block
from coppelius.program.listing import listing_text
from coppelius.program.program import Instruction, Program
from coppelius.program.stages import Stages, in_turn
from coppelius.schedule.compaction import compact_stalls
from coppelius.schedule.operation import SPACES, operation_of
from coppelius.schedule.pipeline import Body, candidates
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
    built, program, origin = _looped(k, registers, reorder)
    pinned = frozenset(i for i, old in enumerate(origin) if "stall" in built.pins[old])
    program = compact_stalls(program, pinned=pinned)
    return Emitted(listing_text(program), _line_table([built.sources[i] for i in origin]))


class Scheduled(NamedTuple):
    """A kernel under control words; `origin`: each instruction's ordinal in what was built."""

    built: Assembled
    program: Program
    origin: list[int]


def _looped(k: Kernel, registers: int | None, reorder: bool) -> Scheduled:
    """The kernel scheduled, each loop in the stages that the cycle model finds quickest.

    While one is judged, those before it are laid out and those behind it are as they are written.
    """
    draft, done = k.draft, None
    while draft.loops:
        alone = lay_out_all(draft, k.table, but=0)
        own = own_registers(alone, alone.loops[0], k.table)
        stages, done = best_stages(alone, own, k.table, registers, reorder)
        draft = lay_out(draft, draft.loops[0], stages, k.table, own).draft
    return done or scheduled(draft, k.table, registers, reorder)


def best_stages(
    draft: Draft, own: Sequence[Virtual], table: Table, registers: int | None, reorder: bool
) -> tuple[Stages, Scheduled]:
    """The stages in which the draft's one loop is quickest; if the kernel asks for none, not slower than as written.

    Refused by the loop's name where the stages that the kernel asks for do not fit.
    """
    loop = draft.loops[0]
    where = f"{loop.source.file}:{loop.source.line}: loop {loop.name}: "
    base: list[int] = []
    best: tuple[float, Stages, Scheduled] | None = None
    reason = "no interval was found"
    try:
        asked = candidates(body_of(draft, own), loop.stages, loop.marks)
    except Refusal as refusal:
        raise Refusal(f"{where}{refusal}") from None
    forced = loop.stages is not None or bool(loop.marks)
    plain = () if forced else (in_turn(loop.end - loop.first),)
    for stages in dict.fromkeys((*plain, *asked)):
        laid = lay_out(draft, loop, stages, table, own)
        try:
            done = scheduled(laid.draft, table, registers, reorder)
        except Refusal as refusal:
            reason = str(refusal)
            continue
        cycles = path_cycles(done, laid, loop)
        base = base or cycles
        shares = [now / was for now, was in zip(cycles, base, strict=True)]
        if (forced or max(shares) <= 1) and (best is None or sum(shares) < best[0]):
            best = sum(shares), stages, done
    if best is None:
        raise Refusal(f"{where}{reason}")
    return best[1:]


def body_of(draft: Draft, own: Sequence[Virtual]) -> Body:
    """The body of a draft's one loop; `own`: the registers of one iteration."""
    loop = draft.loops[0]
    items = draft.items[loop.first : loop.end]
    rows = [Instruction(item.encoding, tuple(item.values)) for item in items]
    keys = frozenset(SPACES[v.space] + v.first + lane for v in own for lane in range(v.width))
    return Body(rows, [item.pins for item in items], keys, loop.apart)


def path_cycles(done: Scheduled, laid: LaidOut, loop: Loop) -> list[int]:
    """Modelled cycles of the counts that a loop is judged by, at either memory figure."""
    found = []
    for count in [loop.count] if isinstance(loop.count, int) else [loop.often, 4 * loop.often]:
        spans = laid.path(count)
        trace = [i for first, end in spans for i, old in enumerate(done.origin) if first <= old < end]
        found += [modelled_cycles(done.program, trace, memory=memory) for memory in MEMORY_CYCLES]
    return found


def scheduled(draft: Draft, table: Table, registers: int | None, reorder: bool) -> Scheduled:
    """Registers placed and control words assigned; in the quicker order, where instructions may move."""
    budget = 253 if registers is None else registers - RESERVED_REGISTERS
    movable = reorder and bool(draft.items)  # an empty kernel is refused where it is assembled
    liveness = Liveness(draft) if movable else None
    moved = None if liveness is None else ordered_draft(draft, budget if registers is not None else None, liveness)
    own = Draft([item.copy() for item in draft.items], draft.labels, draft.names)
    built = assemble(own, table, registers=budget, liveness=liveness)
    program, origin = schedule(built.program, built.pins, reorder=reorder)
    if moved is None:
        return Scheduled(built, program, origin)
    return _quicker(Scheduled(built, program, origin), moved, table, budget)


def _quicker(own: Scheduled, draft: Draft, table: Table, registers: int) -> Scheduled:
    """The kernel's own order, or the draft's where it has places for its registers and the model finds it quicker."""
    try:
        built = assemble(draft, table, registers=registers)
    except Refusal:
        return own
    program, origin = schedule(built.program, built.pins, reorder=True)
    return Scheduled(built, program, origin) if is_quicker(program, own.program) else own


def ordered_draft(draft: Draft, registers: int | None, liveness: Liveness | None = None) -> Draft:
    """The draft with its blocks ordered before registers are placed, no more live at once than `registers`.

    None: than the draft's own order has live at its widest.  liveness: the draft's, where it is known.
    """
    items = draft.items
    spans = _spans(draft)
    live, widest = _live(
        draft, liveness or Liveness(draft), {place for s in spans for place in (2 * s.start, 2 * s.end - 1)}
    )
    budget = Budget(
        widest if registers is None else registers,
        {s.start: live[2 * s.start] for s in spans},
        {s.start: live[2 * s.end - 1] for s in spans},
    )
    rows = [Instruction(item.encoding, tuple(item.values)) for item in items]
    operations = [operation_of(row.encoding, row.values) for row in rows]
    order = ordered(rows, operations, spans, [item.pins for item in items], budget)
    return Draft([items[i].copy() for i in order], draft.labels, draft.names)


def _spans(draft: Draft) -> list[Block]:
    """Runs that are entered at their first instruction and left at their last."""
    ends = {i + 1 for i, item in enumerate(draft.items) if item.encoding.mnemonic.split(".")[0] in ("BRA", "EXIT")}
    starts = sorted({0, *draft.labels.values(), *ends} - {len(draft.items)})
    return [Block(s, e, ()) for s, e in zip(starts, [*starts[1:], len(draft.items)], strict=True)]


def _live(draft: Draft, liveness: Liveness, wanted: set[int]) -> tuple[dict[int, frozenset[int]], int]:
    """General registers live at these places, and how many are at the widest: even before instructions, odd after."""
    places = 2 * len(draft.items)
    begin: list[list[range]] = [[] for _ in range(places + 1)]
    end: list[list[range]] = [[] for _ in range(places + 1)]
    for virtual, points in zip(draft.names.virtuals, liveness.points, strict=True):
        own = range(virtual.first, virtual.first + virtual.width)
        first = 0
        while points and virtual.space == "R":
            first += (skipped := (points & -points).bit_length() - 1)
            points >>= skipped
            length = (~points & (points + 1)).bit_length() - 1
            begin[first].append(own)
            end[first + length].append(own)
            first += length
            points >>= length
    now: set[int] = set()
    found, widest = {}, 0
    for place in range(places):
        now.difference_update(*end[place])
        now.update(*begin[place])
        widest = max(widest, len(now))
        if place in wanted:
            found[place] = frozenset(now)
    return found, widest


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
