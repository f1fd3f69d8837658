"""What the checkers need of an encoding and its modifiers, whatever its registers and control bits.

An instruction's shape says for each access: which field holds the register, how many, which row or column of the
latency grid it is; and which queue, which way of control, which meaning the whole instruction has.  Shapes are few
and words are many, so that a word's facts are a walk over its shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple

from coppelius.isa import latency
from coppelius.isa.access import Touch
from coppelius.isa.address import AddressOperand
from coppelius.isa.bits import Bits, bits
from coppelius.isa.form import FP64, MEMORY, SHARED, TENSOR, VARIABLE, XU, Encoding
from coppelius.isa.slots import READ, Access
from coppelius.isa.values import Immediate, Label_

KEY_BASE = {"R": 0, "UR": 256, "P": 512, "UP": 520, "B": 528}
# indexes that name no register, in the same numbering of spaces
_STATELESS = {"R": 255, "UR": 63, "P": 7, "UP": 7, "B": -1}

# where control goes next
PLAIN, BRANCH, EXIT, CALL, RETURN, INDIRECT, TRAP = range(7)

# queues whose results come back in the order they went in
NO_QUEUE, SHARED_QUEUE, XU_QUEUE, FP64_QUEUE, TEXTURE_QUEUE, GROUP_QUEUE = range(6)
# queues whose operands are read in the order they went in
LATE_MEMORY, LATE_XU, LATE_FP64, LATE_TEXTURE, LATE_REDUX = range(6, 11)
QUEUES = LATE_REDUX + 1
# queues that a counted wait (DEPBAR.LE) tells apart, the oldest done first
COUNTED_QUEUES = (SHARED_QUEUE, XU_QUEUE, FP64_QUEUE, TEXTURE_QUEUE, GROUP_QUEUE, LATE_XU, LATE_FP64, LATE_TEXTURE)

# what an instruction means to the scoreboard checker beyond its registers
NOTHING, BARRIER, COUNTED_WAIT, PLAIN_WAIT, COPY, GROUP, SHARED_ACCESS = range(7)

_IN_ORDER = frozenset(("SHFL", "LDS", "LDSM", "STS", "MOVM"))
_TEXTURE = frozenset(("TEX", "TLD", "TLD4", "TXD", "TXQ", "TMML"))
_ENDS = {"EXIT": EXIT, "RET": RETURN, "BPT": TRAP, "KILL": TRAP, "CALL": CALL} | dict.fromkeys(
    ("BRX", "BRXU", "JMP", "JMX", "JMXU"), INDIRECT
)
_MEANINGS = {"BAR": BARRIER, "LDGSTS": COPY, "LDGDEPBAR": GROUP} | dict.fromkeys(
    ("LDS", "LDSM", "STS", "ATOMS"), SHARED_ACCESS
)

RAW_COLUMNS = sorted({column for _, column in latency.RAW})
RAW_ROWS = sorted({row for row, _ in latency.RAW})
_COLUMN = {name: i for i, name in enumerate(RAW_COLUMNS)}
_ROW = {name: i for i, name in enumerate(RAW_ROWS)}
RAW_TABLE = [[latency.raw_cell(row, column).cycles for column in RAW_COLUMNS] for row in RAW_ROWS]
WAW_COLUMNS = sorted({column for _, column in latency.WAW})
_WAW_COLUMN = {name: i for i, name in enumerate(WAW_COLUMNS)}


def _waw_rows(predicated: bool) -> list[list[int]]:
    return [[latency.waw_cell(row, column, predicated=predicated).cycles for column in WAW_COLUMNS] for row in RAW_ROWS]


WAW_TABLE = (_waw_rows(False), _waw_rows(True))
WAR_ROWS = sorted({row for row, _ in latency.WAR})
WAR_COLUMNS = sorted({column for _, column in latency.WAR})
_WAR_ROW = {name: i for i, name in enumerate(WAR_ROWS)}
_WAR_COLUMN = {name: i for i, name in enumerate(WAR_COLUMNS)}
# what an ordinary fixed-latency read asks of the writer right after it
PROMPT_NEED = [latency.war_cell("fixed", column).cycles for column in WAR_COLUMNS]
WAR_TABLE = [[latency.war_cell(row, column).cycles for column in WAR_COLUMNS] for row in WAR_ROWS]


class Read(NamedTuple):
    """A register read: its field, and its column of RAW; `late`, or its row of WAR (-1: only the next instruction)."""

    column: int
    shift: int
    base: int
    width: int
    zero: int
    raw: int
    late: bool
    timed: int


class Written(NamedTuple):
    """A register written: its field, and its places in RAW, WAW and WAR; `result`: a scoreboard signals it."""

    column: int
    shift: int
    base: int
    width: int
    zero: int
    raw: int
    waw: int
    war: int
    result: bool


class Kept(NamedTuple):
    """An operand with a reuse flag: which slot, the flag's column, the register's column, registers."""

    slot: int
    flag: int
    column: int
    width: int


class Shape(NamedTuple):
    """See the module's docstring.  `reads` leave the guard out; columns of fields that a word must be asked for."""

    reads: tuple[Read, ...]
    writes: tuple[Written, ...]
    kept: tuple[Kept, ...]
    queue: int
    late_queue: int
    meaning: int
    flow: int
    divergent: bool
    predicates: tuple[tuple[int, int], ...]
    target: tuple[int, int] | None
    depbar: tuple[int, int, int] | None
    shared: tuple[int, int] | None
    mask: int | None
    guard: tuple[int, int]
    tensor: bool
    minimum: int


_SHAPES: dict[tuple[int, object, object], Shape] = {}
_KEYS: dict[tuple[int, Encoding], itemgetter[object] | None] = {}


def shape_of(encoding: Encoding, values: Sequence[int]) -> Shape:
    """The shape of one instruction."""
    identity = (id(encoding), encoding)
    if identity not in _KEYS:
        _KEYS[identity] = _deciding(encoding)
    get = _KEYS[identity]
    codes = None if get is None else get(values)
    key = (id(encoding), encoding, codes)
    found = _SHAPES.get(key)
    if found is None:
        found = _SHAPES[key] = _shape(encoding, values)
    return found


def _deciding(encoding: Encoding) -> itemgetter[object] | None:
    """The fields that decide a shape: modifiers, and what widths and conditions look at."""
    names = {f.name for modifier in encoding.modifiers for f in modifier.fields}
    for access in encoding.accesses:
        names |= {access.width[0]} if isinstance(access.width, tuple) else set()
        names |= {access.when[0]} if access.when else set()
    address = _shared_address(encoding)
    names |= {f.name for f in address.fields if f.name.endswith(".scale")} if address is not None else set()
    columns = sorted(encoding.column[name] for name in names)
    return itemgetter(*columns) if columns else None


def _shape(encoding: Encoding, values: Sequence[int]) -> Shape:
    column = encoding.column
    stem = latency.stem(encoding)
    present = [a for a in encoding.accesses if not a.when or values[column[a.when[0]]] in a.when[1]]
    label = next((slot for slot in encoding.operands if type(slot) is Label_ and stem != "BSSY"), None)
    flow = _ENDS.get(stem, PLAIN if label is None else BRANCH)
    predicates = tuple(
        (column[a.field], column.get(f"{a.field}.not", -1)) for a in present if a.space in ("P", "UP") and flow != PLAIN
    )
    mask = next((column[s.name] for s in encoding.operands if isinstance(s, Immediate)), None)
    return Shape(
        tuple(_read(encoding, values, a) for a in present if a.mode == READ and a.slot != "guard"),
        tuple(_written(encoding, values, a) for a in present if a.mode != READ),
        tuple(_kept(encoding, values)),
        _queue(encoding),
        _late_queue(encoding),
        _meaning(encoding, values),
        flow,
        any(part in latency.full_name(encoding, values) for part in (".DIV", ".CONV")),
        predicates,
        None if label is None else (column[label.name], label.scale),
        _depbar(encoding) if stem == "DEPBAR" else None,
        _shared(encoding, values),
        # P2R and R2P touch the predicates that their mask names (mined: no wait for the others)
        mask if stem in ("P2R", "R2P") else None,
        (KEY_BASE[encoding.guard.space], _COLUMN[f"guard{'.up' if encoding.guard.space == 'UP' else ''}"]),
        encoding.pipe == TENSOR,
        latency.minimum_stall(encoding),
    )


def _place(encoding: Encoding, values: Sequence[int], access: Access) -> tuple[int, int, int, int, int]:
    """(column, shift, key base, width, stateless index) of an access."""
    width = access.width
    if not isinstance(width, int):
        width = width[1].get(values[encoding.column[width[0]]], 1)
    zero = _STATELESS[access.space]
    if access.space == "UR":
        zero = (1 << (encoding.fields[encoding.column[access.field]].width - access.shift)) - 1
    return encoding.column[access.field], access.shift, KEY_BASE[access.space], width, zero


def _read(encoding: Encoding, values: Sequence[int], access: Access) -> Read:
    touch = Touch(access.slot, access.space, 0)
    column = _COLUMN.get(latency.consumer_class(encoding, values, touch), -1)
    late = latency.reads_late(encoding, values, touch)
    row = latency.reader_class(encoding, values, touch)
    timed = -2 if late or row not in _WAR_ROW else -1 if row == "fixed" else _WAR_ROW[row]
    return Read(*_place(encoding, values, access), column, late, timed)


def _written(encoding: Encoding, values: Sequence[int], access: Access) -> Written:
    touch = Touch(access.slot, access.space, 0)
    kind = latency.producer_class(encoding, values, touch)
    war = _WAR_COLUMN.get(latency.writer_class(encoding, values, touch), -1)
    variable = latency.is_variable(encoding, values)
    row = -1 if variable else _ROW.get(kind, -1)
    return Written(
        *_place(encoding, values, access), row, _WAW_COLUMN.get(kind, -1), war, variable and access.space != "B"
    )


def _kept(encoding: Encoding, values: Sequence[int]) -> list[Kept]:
    found = []
    for name, column in encoding.column.items():
        operand = name.removesuffix(".reuse")
        access = next((a for a in encoding.accesses if a.slot == operand and a.space == "R" and a.mode == READ), None)
        if operand == name or access is None:
            continue
        # the flag's own place says which slot: bits 122, 123, 124
        slot = encoding.fields[column].bits.parts[0][0] - 122
        found.append(Kept(slot, column, encoding.column[access.field], _place(encoding, values, access)[3]))
    return found


def _queue(encoding: Encoding) -> int:
    """The queue whose order this instruction's result may rely on."""
    kind = latency.stem(encoding)
    if kind in _IN_ORDER:
        return SHARED_QUEUE
    if kind == "LDGDEPBAR":
        return GROUP_QUEUE
    if kind in _TEXTURE:
        return TEXTURE_QUEUE
    if encoding.latency != VARIABLE:
        return NO_QUEUE
    return {XU: XU_QUEUE, FP64: FP64_QUEUE}.get(encoding.pipe, NO_QUEUE)


def _late_queue(encoding: Encoding) -> int:
    """The queue whose order its operand reads may rely on."""
    kind = latency.stem(encoding)
    if kind in _TEXTURE:
        return LATE_TEXTURE
    if kind == "REDUX":
        return LATE_REDUX
    if encoding.pipe in (MEMORY, SHARED) or kind in _IN_ORDER:
        return LATE_MEMORY
    if encoding.latency != VARIABLE:
        return NO_QUEUE
    return {XU: LATE_XU, FP64: LATE_FP64}.get(encoding.pipe, NO_QUEUE)


def _meaning(encoding: Encoding, values: Sequence[int]) -> int:
    kind = latency.stem(encoding)
    if kind == "DEPBAR":
        return COUNTED_WAIT if ".LE" in latency.full_name(encoding, values) else PLAIN_WAIT
    return _MEANINGS.get(kind, NOTHING)


def _depbar(encoding: Encoding) -> tuple[int, int, int]:
    """Columns of a DEPBAR: scoreboards to wait for, scoreboard, count it may still hold; -1 where it has none."""
    mask, scoreboard, count = (_column_at(encoding, place) for place in (bits[37:32], bits[46:44], bits[43:38]))
    return mask, scoreboard, count


def _column_at(encoding: Encoding, place: Bits) -> int:
    return next((i for i, f in enumerate(encoding.fields) if f.bits == place), -1)


def _shared_address(encoding: Encoding) -> AddressOperand | None:
    if latency.stem(encoding) not in ("LDGSTS", "LDS", "LDSM", "ATOMS", "STS"):
        return None
    return next((s for s in encoding.operands if isinstance(s, AddressOperand)), None)


def _shared(encoding: Encoding, values: Sequence[int]) -> tuple[int, int] | None:
    """Columns of base and offset of a shared address, where these two say all of it."""
    address = _shared_address(encoding)
    if address is None or f"{address.name}.uniform" in encoding.column:
        return None
    scale = encoding.column.get(f"{address.name}.scale")
    if scale is not None and values[scale]:
        return None
    return encoding.column[address.base.name], encoding.column[address.offset.name]
