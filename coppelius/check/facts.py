"""What the checkers need of one machine word, as plain tuples, computed once for each distinct word.

A program repeats its words and a corpus repeats them more, so that facts are kept by word; the loops of
the checkers then touch integers only.  Registers of all spaces share one numbering (`KEY_BASE`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from coppelius.isa import latency
from coppelius.isa.access import Touch, reads, writes
from coppelius.isa.address import AddressOperand
from coppelius.isa.bits import Bits, bits
from coppelius.isa.codec import Decoded
from coppelius.isa.control import KEEP, READ_BARRIER, STALL, WAIT, WRITE_BARRIER
from coppelius.isa.form import CONTROL, FP64, MEMORY, SHARED, TENSOR, VARIABLE, XU, Encoding
from coppelius.isa.values import Immediate, Label_
from coppelius.isa.word import Words

KEY_BASE = {"R": 0, "UR": 256, "P": 350, "UP": 360, "B": 384}

# where control goes next
PLAIN, BRANCH, EXIT, CALL, RETURN, INDIRECT, TRAP = range(7)

# queues whose results come back in the order they went in
NO_QUEUE, SHARED_QUEUE, XU_QUEUE, FP64_QUEUE, GROUP_QUEUE = range(5)
# queues whose operands are read in the order they went in
LATE_MEMORY, LATE_XU, LATE_FP64 = 5, 6, 7

# what an instruction means to the scoreboard checker beyond its registers
NOTHING, BARRIER, COUNTED_WAIT, PLAIN_WAIT, COPY, GROUP, SHARED_ACCESS = range(7)

_IN_ORDER = frozenset(("SHFL", "LDS", "LDSM", "STS", "MOVM"))
_ENDS = {"EXIT": EXIT, "RET": RETURN} | dict.fromkeys(("BRX", "BRXU", "JMP", "JMX", "JMXU"), INDIRECT)
_MEANINGS = {"BAR": BARRIER, "LDGSTS": COPY, "LDGDEPBAR": GROUP} | dict.fromkeys(
    ("LDS", "LDSM", "STS", "ATOMS"), SHARED_ACCESS
)
CONTROL_ORDER = (STALL, WAIT, WRITE_BARRIER, READ_BARRIER, KEEP)
# (slot, first register, registers)
_Kept = tuple[int, int, int]

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


class Facts(NamedTuple):
    """One word.  Keys are register numbers over all spaces.

    reads: (key, RAW column or -1).
    writes: (key, RAW row or -1 where a scoreboard signals it, WAW column or -1, WAR column or -1).
    timed: (key, WAR row) of reads whose rows ask for more than the next instruction's distance.
    late: keys read late.  results: keys that a scoreboard signals.  prompt: keys of ordinary timed reads.
    signals: whether the scoreboard checker must look at it.
    waitable: scoreboards, besides cycles, that cover a timed result and timed reads (MMAs of old toolkits).
    guarded: some threads or paths may skip it.
    guard: its predicate's key, negative where inverted, 0 for none.
    A guard of `!PT` leaves only the control bits.
    """

    stall: int
    wait: int
    write_barrier: int
    read_barrier: int
    reads: tuple[tuple[int, int], ...]
    writes: tuple[tuple[int, int, int, int], ...]
    timed: tuple[tuple[int, int], ...]
    late: tuple[int, ...]
    results: tuple[int, ...]
    prompt: tuple[int, ...]
    touched: tuple[int, ...]
    signals: bool
    queue: int
    late_queue: int
    guarded: bool
    meaning: int
    flow: int
    distance: int | None
    depbar: tuple[int, int, int]
    shared: tuple[int, int, int]
    waitable: tuple[int, int]
    guard: int
    reuse: tuple[_Kept, ...]
    slots: tuple[_Kept, ...]
    minimum: int
    keep: int
    encoding: Encoding
    values: tuple[int, ...]


_CACHE: dict[tuple[str, int, int], Facts] = {}
_CACHE_LIMIT = 400_000


def facts_of(decoded: Decoded, words: Words) -> list[Facts]:
    """The facts of each word; every word must have decoded."""
    table = decoded.table
    keys = [(table.target, low, high) for low, high in words.tolist()]
    missing = {key: i for i, key in enumerate(keys) if key not in _CACHE}
    if missing:
        if len(_CACHE) + len(missing) > _CACHE_LIMIT:
            _CACHE.clear()
            missing = {key: i for i, key in enumerate(keys)}
        chosen = list(missing.values())
        for key, uid, row in zip(missing, decoded.uids[chosen].tolist(), decoded.values[chosen].tolist(), strict=True):
            encoding = table.encodings[uid]
            _CACHE[key] = facts(encoding, tuple(row[: len(encoding.fields)]))
    return [_CACHE[key] for key in keys]


def facts(encoding: Encoding, values: tuple[int, ...]) -> Facts:
    """The facts of one instruction."""
    column = encoding.column
    stall, wait, write_barrier, read_barrier, keep = (values[column[f.name]] for f in CONTROL_ORDER)
    never = values[column["guard"]] == 7 and values[column["guard.not"]] == 1
    read, written, timed, late, results, prompt = _NO_TOUCHES if never else _touches(encoding, values)
    # old toolkits put MMAs under scoreboards: either a wait or the cycles will do
    waitable = _waitable(write_barrier, read_barrier) if encoding.pipe == TENSOR else (0, 0)
    flow, distance, conditional = _flow(encoding, values, never)
    kept, through = ((), ()) if never else _reuse(encoding, values)
    return Facts(
        stall,
        wait,
        write_barrier,
        read_barrier,
        read,
        written,
        timed,
        late,
        results,
        prompt,
        tuple({k for k, _ in read} | {w[0] for w in written}),
        bool(results or late or write_barrier != 7 or read_barrier != 7),
        _queue(encoding),
        _late_queue(encoding),
        conditional or values[column["guard"]] != 7,
        NOTHING if never else _meaning(encoding, values),
        flow,
        distance,
        _depbar(encoding, values),
        _shared(encoding, values),
        waitable,
        _guard(encoding, values),
        kept,
        through,
        latency.minimum_stall(encoding),
        keep,
        encoding,
        values,
    )


def _waitable(write_barrier: int, read_barrier: int) -> tuple[int, int]:
    write = 0 if write_barrier == 7 else 1 << write_barrier
    return write, write | (0 if read_barrier == 7 else 1 << read_barrier)


def _guard(encoding: Encoding, values: Sequence[int]) -> int:
    number = values[encoding.column["guard"]]
    if number == 7:
        return 0
    key = KEY_BASE[encoding.guard.space] + number
    return -key if values[encoding.column["guard.not"]] else key


_Keys = tuple[int, ...]
_Touches = tuple[
    tuple[tuple[int, int], ...],
    tuple[tuple[int, int, int, int], ...],
    tuple[tuple[int, int], ...],
    _Keys,
    _Keys,
    _Keys,
]
_NO_TOUCHES: _Touches = ((), (), (), (), (), ())


def _touches(encoding: Encoding, values: Sequence[int]) -> _Touches:
    """Reads, writes, timed, late, results, prompt reads."""
    read, timed, late, prompt = [], [], [], []
    for touch in _masked(encoding, values, reads(encoding, values)):
        key = KEY_BASE[touch.space] + touch.number
        read.append((key, _COLUMN.get(latency.consumer_class(encoding, values, touch), -1)))
        if latency.reads_late(encoding, values, touch):
            late.append(key)
            continue
        row = latency.reader_class(encoding, values, touch)
        if row == "fixed":
            prompt.append(key)
        elif row in _WAR_ROW:
            timed.append((key, _WAR_ROW[row]))
    written, results = [], []
    variable = latency.is_variable(encoding, values)
    for touch in _masked(encoding, values, writes(encoding, values)):
        kind = latency.producer_class(encoding, values, touch)
        war = _WAR_COLUMN.get(latency.writer_class(encoding, values, touch), -1)
        key = KEY_BASE[touch.space] + touch.number
        written.append((key, -1 if variable else _ROW.get(kind, -1), _WAW_COLUMN.get(kind, -1), war))
        if variable and touch.space != "B":
            results.append(key)
    unique = (tuple(dict.fromkeys(found)) for found in (read, written, timed, late, results, prompt))
    return tuple(unique)  # type: ignore[return-value]


def _masked(encoding: Encoding, values: Sequence[int], touches: list[Touch]) -> list[Touch]:
    """P2R and R2P touch the predicates that their mask names (mined: no wait for the others)."""
    if latency.stem(encoding) not in ("P2R", "R2P"):
        return touches
    mask = next((values[encoding.column[s.name]] for s in encoding.operands if isinstance(s, Immediate)), 0x7F)
    return [t for t in touches if t.space != "P" or t.slot == "guard" or mask >> t.number & 1]


def _queue(encoding: Encoding) -> int:
    """The queue whose order this instruction's result may rely on."""
    kind = latency.stem(encoding)
    if kind in _IN_ORDER:
        return SHARED_QUEUE
    if kind == "LDGDEPBAR":
        return GROUP_QUEUE
    if encoding.latency != VARIABLE:
        return NO_QUEUE
    return {XU: XU_QUEUE, FP64: FP64_QUEUE}.get(encoding.pipe, NO_QUEUE)


def _late_queue(encoding: Encoding) -> int:
    """The queue whose order its operand reads may rely on."""
    if encoding.pipe in (MEMORY, SHARED) or latency.stem(encoding) in _IN_ORDER:
        return LATE_MEMORY
    if encoding.latency != VARIABLE:
        return NO_QUEUE
    return {XU: LATE_XU, FP64: LATE_FP64}.get(encoding.pipe, NO_QUEUE)


def _meaning(encoding: Encoding, values: Sequence[int]) -> int:
    kind = latency.stem(encoding)
    if kind == "DEPBAR":
        return COUNTED_WAIT if ".LE" in latency.full_name(encoding, values) else PLAIN_WAIT
    return _MEANINGS.get(kind, NOTHING)


def _stored(encoding: Encoding, values: Sequence[int], place: Bits) -> int:
    """The field at these bits, or what the encoding holds there."""
    for field, value in zip(encoding.fields, values, strict=False):
        if field.bits == place:
            return value
    return place.take(encoding.value)


def _depbar(encoding: Encoding, values: Sequence[int]) -> tuple[int, int, int]:
    """(mask of scoreboards to wait for, scoreboard, count it may still hold) of a DEPBAR."""
    if latency.stem(encoding) != "DEPBAR":
        return (0, 0, 0)
    mask, scoreboard, count = (_stored(encoding, values, b) for b in (bits[37:32], bits[46:44], bits[43:38]))
    return mask, scoreboard, count


def _shared(encoding: Encoding, values: Sequence[int]) -> tuple[int, int, int]:
    """(base register, first byte, end) of a shared access, relative to that register; an empty span otherwise."""
    kind = latency.stem(encoding)
    if kind not in ("LDGSTS", "LDS", "LDSM", "ATOMS", "STS"):
        return (0, 0, 0)
    address = next((s for s in encoding.operands if isinstance(s, AddressOperand)), None)
    if address is None:
        return (0, 0, 0)
    get = dict(zip(encoding.column, values, strict=False)).get
    scaled = get(f"{address.name}.scale", 0) or (f"{address.name}.uniform" in encoding.column)
    offset = values[encoding.column[address.offset.name]]
    return (0, 0, 0) if scaled else (values[encoding.column[address.base.name]], offset, offset + 4)


def _flow(encoding: Encoding, values: Sequence[int], never: bool) -> tuple[int, int | None, bool]:
    """(kind, distance in words to the target from the next instruction, whether it may fall through)."""
    kind = latency.stem(encoding)
    flow = _ENDS.get(kind, CALL if kind == "CALL" else TRAP if kind in ("BPT", "KILL") else PLAIN)
    label = next((slot for slot in encoding.operands if type(slot) is Label_), None)
    distance = None
    if label is not None and kind != "BSSY":
        flow = flow if flow == CALL else BRANCH
        distance = values[encoding.column[label.name]] * label.scale // 16
    if encoding.pipe != CONTROL or flow == PLAIN or never:
        return PLAIN if never or flow == PLAIN else flow, distance if not never else None, False
    return flow, distance, _conditional(encoding, values)


def _conditional(encoding: Encoding, values: Sequence[int]) -> bool:
    """Whether a guard, a second predicate, or thread divergence may let it fall through."""
    name = latency.full_name(encoding, values)
    if ".DIV" in name or ".CONV" in name:
        return True
    return any(a.space in ("P", "UP") and values[encoding.column[a.field]] != 7 for a in encoding.accesses)


def _reuse(encoding: Encoding, values: Sequence[int]) -> tuple[tuple[_Kept, ...], tuple[_Kept, ...]]:
    """(slot, register, registers) kept in the reuse cache by this instruction; the same read through each slot."""
    kept, through = [], []
    read = reads(encoding, values)
    for field, value in zip(encoding.fields, values, strict=True):
        if not field.name.endswith(".reuse"):
            continue
        name = field.name.removesuffix(".reuse")
        numbers = [touch.number for touch in read if touch.slot == name and touch.space == "R"]
        if numbers:
            # the flag's own place says which slot: bits 122, 123, 124
            entry = (field.bits.parts[0][0] - 122, min(numbers), len(numbers))
            through.append(entry)
            if value:
                kept.append(entry)
    return tuple(kept), tuple(through)
