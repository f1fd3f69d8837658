"""An SM86 program on another target: its instructions in the target's words, its constants moved, scheduled anew.

What may differ: constant operands (loaded once into uniform registers), offsets in constant bank 0, shared addresses
above the reserved kilobyte, rows renamed or with fields elsewhere.  What has no counterpart is refused by name.
Control words are the target's own: nothing of SM86's schedule is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from coppelius.isa.control import Control
from coppelius.isa.forms.special_registers import SPECIAL_REGISTERS
from coppelius.isa.latency import full_name, stem
from coppelius.isa.refusal import Refusal
from coppelius.isa.slots import Slot
from coppelius.isa.table import Table, table_of
from coppelius.isa.targets.layout import Layout, layout_of
from coppelius.isa.word import WORD_BYTES
from coppelius.lowering.constants import (
    LOADED_BYTES,
    WORD,
    Constant,
    constant_of,
    constant_slot,
    load_fields,
    moved_offset,
    place_constants,
    used_uniform_registers,
)
from coppelius.lowering.expand import Spare, expand
from coppelius.lowering.rewrite import rewrite, row_name, target_row
from coppelius.lowering.rules import REMEDIES
from coppelius.program.edit import rebuild
from coppelius.program.listing import listing_text, parse_listing
from coppelius.program.program import Instruction, Program
from coppelius.schedule.compaction import compact_stalls
from coppelius.schedule.late_reads import guard_late_reads
from coppelius.schedule.schedule import schedule

# the operand form of a constant -> that of a uniform register in the same place (facts 3)
_UNIFORM_FORM = {"5": "6", "3": "7"}
# where each shared operation keeps the immediate of its address
_SHARED_OFFSET = {
    "LDS": "address.offset",
    "STS": "address.offset",
    "LDSM": "address.offset",
    "ATOMS": "address.offset",
    "LDGSTS": "shared.offset",
}
_CONSTANT_LOADS = {"LDC": "address", "ULDC": "B"}
_SPECIAL = {"S2R": "special", "S2UR": "SR", "CS2R": "special"}
# what tells where the code lies and how much shared memory there is, which lowering changes
_PLACES = ("SR_ESR_PC", "SR_ESR_PC_HI")
_SIZES = ("SR_SMEMSZ",)


@dataclass(frozen=True)
class Lowered:
    """`origin[i]`: the SM86 instruction that instruction i comes from; `changed`: how many of those are other words."""

    program: Program
    origin: list[int]
    constants: int  # distinct constants that became uniform registers


def lower(program: Program, target: str) -> Lowered:
    """The program of that target, under its own schedule."""
    rewritten, origin, constants = translate(program, target)
    scheduled, step = schedule(rewritten, [{}] * len(rewritten))
    done = guard_late_reads(compact_stalls(scheduled))
    return Lowered(done, [origin[i] for i in step], constants)


def translate(program: Program, target: str) -> tuple[Program, list[int], int]:
    """The target's instructions without a schedule, where each comes from, and how many constants moved."""
    table, source, layout = table_of(target), layout_of(program.table.target), layout_of(target)
    rows = list(program)
    found = {} if layout.constant_operands else _constant_operands(rows, table, source, layout)
    wanted = sorted(set(found.values()))
    places, loads = place_constants(wanted, used_uniform_registers(rows), layout.uniform_registers)
    groups: list[list[Instruction]] = []
    spare = Spare(rows)
    for ordinal, row in enumerate(rows):
        constant = found.get(ordinal)
        with _named(ordinal):
            one = _lowered(row, table, source, layout, None if constant is None else places[constant])
            groups.append(expand(one, table, spare))
    lowered = Program.of([group[-1] for group in groups], table)
    if groups:
        groups[0] = [*(_load(table, load, _register(load, places, wanted)) for load in loads), *groups[0]]
    changed, origin = rebuild(lowered, groups)
    return changed, origin, len(wanted)


def _constant_operands(
    rows: Sequence[Instruction], table: Table, source: Layout, layout: Layout
) -> dict[int, Constant]:
    """Each instruction that reads a constant as an operand, and what it reads."""
    found = {}
    for ordinal, row in enumerate(rows):
        with _named(ordinal):
            slot = constant_slot(row.encoding)
            if slot is not None:
                found[ordinal] = constant_of(row, slot, source, layout, _words(row, slot, table))
    return found


@contextmanager
def _named(ordinal: int) -> Iterator[None]:
    """Says which instruction a refusal is about."""
    try:
        yield
    except Refusal as refusal:
        raise Refusal(f"instruction {ordinal} at {ordinal * WORD_BYTES:#x}: {refusal}") from None


def _words(row: Instruction, slot: Slot, table: Table) -> int:
    """How many words that operand has: as many as the uniform registers that take its place."""
    what = full_name(row.encoding, row.values)
    _, form = row_name(row.encoding)
    if form not in _UNIFORM_FORM:
        raise Refusal(f"{what}: {table.target} has no form without its constant")
    twin = target_row(row, table, _UNIFORM_FORM[form])
    if twin is None:
        instead = REMEDIES.get(stem(row.encoding), "load the constant by LDC")
        raise Refusal(f"{what}: {table.target} has no form with a uniform register; {instead}")
    access = next(a for a in twin.accesses if a.slot == slot.name and a.space == "UR")
    return access.width if isinstance(access.width, int) else access.width[1].get(row.get(access.width[0]), 1)


def _lowered(row: Instruction, table: Table, source: Layout, layout: Layout, register: int | None) -> Instruction:
    """One instruction, its constant operand in that uniform register."""
    kind = stem(row.encoding)
    told = SPECIAL_REGISTERS.get(row.get(_SPECIAL.get(kind, ""), -1))
    if kind == "LEPC" or told in _PLACES:
        raise Refusal(f"{full_name(row.encoding, row.values)}: lowering moves what it points to; branch by BRA")
    if told in _SIZES and layout.reserved != source.reserved:
        name = f"{kind} {told}"
        raise Refusal(f"{name}: {layout.target} counts its reserved kilobyte as well; pass the size as a parameter")
    if kind in _CONSTANT_LOADS:
        row = _moved_load(row, _CONSTANT_LOADS[kind], source, layout)
    if kind in _SHARED_OFFSET and layout.reserved != source.reserved:
        field = _SHARED_OFFSET[kind]
        row = row.with_fields({field: row[field] + layout.reserved - source.reserved})
    if register is None:
        return rewrite(row, table)
    slot = constant_slot(row.encoding)
    assert slot is not None
    _, form = row_name(row.encoding)
    return rewrite(row, table, form=_UNIFORM_FORM[form], more={slot.name: register})


def _moved_load(row: Instruction, slot: str, source: Layout, layout: Layout) -> Instruction:
    """A load of a constant, where the target keeps it."""
    bank = row.get(f"{slot}.bank", -1)
    if bank < 0:
        raise Refusal(f"{full_name(row.encoding, row.values)}: a constant bank named by a register cannot be lowered")
    field, name = f"{slot}.offset", row.encoding.name
    if bank == 0 and source.words != layout.words and row[field] < source.parameters and _indexed(row, slot):
        raise Refusal(f"{name}: {layout.target} keeps words before the parameters elsewhere; index from a parameter on")
    size = LOADED_BYTES.get(row["SIZE"], WORD)
    return row.with_fields({field: moved_offset(source, layout, bank, row[field], size, name)})


def _indexed(row: Instruction, slot: str) -> bool:
    """Whether a register that is not zero is added to the offset."""
    return any(touch.slot == slot for touch in row.reads)


def _register(load: Constant, places: dict[Constant, int], wanted: Sequence[Constant]) -> int:
    """The first register of a load: that of the constant at its start."""
    return next(places[c] for c in wanted if (c.bank, c.offset) == (load.bank, load.offset))


def _load(table: Table, load: Constant, register: int) -> Instruction:
    encoding = table.by_name.get("LDCU") or table.by_name["ULDC"]
    values = dict(zip(encoding.column, encoding.defaults, strict=True)) | load_fields(load, register)
    return Instruction(encoding, tuple(values.values())).with_control(Control())


def lower_listing(listing: str, target: str) -> tuple[str, list[int]]:
    """The lower step: a guarded SM86 listing to the target's, and each instruction's ordinal in the input."""
    lowered = lower(parse_listing(listing), target)
    return listing_text(lowered.program), lowered.origin
