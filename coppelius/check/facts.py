"""What the checkers need of one machine word, as plain tuples, computed once for each distinct word.

A program repeats its words and a corpus repeats them more, so that facts are kept by word; the loops of the
checkers then touch integers only.  Registers of all spaces share one numbering (`shape.KEY_BASE`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from coppelius.check.shape import KEY_BASE, NO_QUEUE, NOTHING, PLAIN, Kept, Read, Shape, Written, shape_of
from coppelius.isa.codec import Decoded
from coppelius.isa.control import KEEP, READ_BARRIER, STALL, WAIT, WRITE_BARRIER
from coppelius.isa.form import Encoding
from coppelius.isa.word import Words

# (slot, first register, registers) of the reuse cache
_Kept = tuple[int, int, int]
_CONTROL = (STALL, WAIT, WRITE_BARRIER, READ_BARRIER, KEEP)


class Facts(NamedTuple):
    """One word.  Keys are register numbers over all spaces.

    reads: (key, RAW column or -1).
    writes: (key, RAW row or -1 where a scoreboard signals it, WAW column or -1, WAR column or -1).
    timed: (key, WAR row) of reads whose rows ask for more than the next instruction's distance.
    late: keys read late.  results: keys that a scoreboard signals; neither where a stall of 0 waits for them.
    prompt: keys of ordinary timed reads.
    signals: whether the scoreboard checker must look at it.
    waitable: scoreboards, besides cycles, that cover a timed result and timed reads (MMAs of old toolkits).
    guarded: some threads or paths may skip it.
    guard: its predicate's key, negative where inverted, 0 for none.
    A guard of `!PT` leaves only the control bits, and no queue.
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


# by target, then by the word's sixteen bytes
_CACHE: dict[str, dict[bytes, Facts]] = {}
_CACHE_LIMIT = 400_000


def facts_of(decoded: Decoded, words: Words) -> list[Facts]:
    """The facts of each word; every word must have decoded."""
    table = decoded.table
    known = _CACHE.setdefault(table.target, {})
    keys: list[bytes] = np.ascontiguousarray(words).view("V16").ravel().tolist()
    missing = {key: i for i, key in enumerate(keys) if key not in known}
    if missing:
        if len(known) + len(missing) > _CACHE_LIMIT:
            known.clear()
            missing = {key: i for i, key in enumerate(keys)}
        chosen = list(missing.values())
        for key, uid, row in zip(missing, decoded.uids[chosen].tolist(), decoded.values[chosen].tolist(), strict=True):
            encoding = table.encodings[uid]
            known[key] = facts(encoding, tuple(row[: len(encoding.fields)]))
    return [known[key] for key in keys]


def facts(encoding: Encoding, values: tuple[int, ...]) -> Facts:
    """The facts of one instruction."""
    column = encoding.column
    stall, wait, write_barrier, read_barrier, keep = [values[column[f.name]] for f in _CONTROL]
    guard, inverted = values[column["guard"]], values[column["guard.not"]]
    shape = shape_of(encoding, values)
    if guard == 7 and inverted:
        return _idle(stall, wait, write_barrier, read_barrier, shape, keep, encoding, values)
    base, guard_column = shape.guard
    mask = 0x7F if shape.mask is None else values[shape.mask]
    reads, late, prompt, timed = _reads(shape.reads, values, mask)
    writes, results = _writes(shape.writes, values, mask)
    if not stall:
        # nothing goes on before this is done: what `-O0` of the newest toolkit relies on everywhere (mined)
        late, results = [], []
    guard_key = 0
    if guard != 7:
        guard_key = base + guard
        reads.append((guard_key, guard_column))
    write_bit = 0 if write_barrier == 7 else 1 << write_barrier
    late_bits = write_bit | (0 if read_barrier == 7 else 1 << read_barrier)
    reuse, slots = _kept(shape.kept, values) if shape.kept else _NOTHING_KEPT
    return Facts(
        stall, wait, write_barrier, read_barrier,
        tuple(reads), tuple(writes), tuple(timed), tuple(late), tuple(results), tuple(prompt),
        (*[r[0] for r in reads], *[w[0] for w in writes]),
        bool(results or late or late_bits), shape.queue, shape.late_queue,
        guard != 7 or (shape.flow != PLAIN and (shape.divergent or _conditional(shape, values))),
        shape.meaning, shape.flow,
        None if shape.target is None else values[shape.target[0]] * shape.target[1] // 16,
        _NO_DEPBAR if shape.depbar is None else _depbar(shape.depbar, values),
        _NO_ADDRESS if shape.shared is None else _span(shape.shared, values),
        # old toolkits put MMAs under scoreboards: either a wait or the cycles will do
        (write_bit, late_bits) if shape.tensor else _NOT_WAITABLE,
        -guard_key if inverted else guard_key,
        reuse, slots, shape.minimum, keep, encoding, values,
    )  # fmt: skip


_NOTHING_KEPT: tuple[tuple[_Kept, ...], tuple[_Kept, ...]] = ((), ())
_NOT_WAITABLE = (0, 0)
_NO_DEPBAR = (0, 0, 0)
_NO_ADDRESS = (0, 0, 0)


def _idle(
    stall: int,
    wait: int,
    write_barrier: int,
    read_barrier: int,
    shape: Shape,
    keep: int,
    encoding: Encoding,
    values: tuple[int, ...],
) -> Facts:
    """An instruction that never executes: its control bits only."""
    return Facts(
        stall, wait, write_barrier, read_barrier, (), (), (), (), (), (), (),
        (write_barrier, read_barrier) != (7, 7), NO_QUEUE, NO_QUEUE, False, NOTHING, PLAIN, None,
        _NO_DEPBAR, _NO_ADDRESS, (0, 0), 0, (), (), shape.minimum, keep, encoding, values,
    )  # fmt: skip


def _reads(
    rows: Sequence[Read], values: Sequence[int], mask: int
) -> tuple[list[tuple[int, int]], list[int], list[int], list[tuple[int, int]]]:
    """Reads, late reads, prompt reads, timed reads."""
    reads: list[tuple[int, int]] = []
    late: list[int] = []
    prompt: list[int] = []
    timed: list[tuple[int, int]] = []
    for column, shift, base, width, zero, raw, is_late, row in rows:
        number = values[column] >> shift
        if number == zero:
            continue
        number += base
        for key in (number,) if width == 1 else range(number, number + width):
            if base == _PREDICATES and not mask >> (key - base) & 1:
                continue
            reads.append((key, raw))
            if is_late:
                late.append(key)
            elif row == -1:
                prompt.append(key)
            elif row >= 0:
                timed.append((key, row))
    return reads, late, prompt, timed


_PREDICATES = KEY_BASE["P"]


def _writes(
    rows: Sequence[Written], values: Sequence[int], mask: int
) -> tuple[list[tuple[int, int, int, int]], list[int]]:
    """Writes, and those that a scoreboard signals."""
    writes: list[tuple[int, int, int, int]] = []
    results: list[int] = []
    for column, shift, base, width, zero, raw, waw, war, result in rows:
        number = values[column] >> shift
        if number == zero:
            continue
        number += base
        for key in (number,) if width == 1 else range(number, number + width):
            if base == _PREDICATES and not mask >> (key - base) & 1:
                continue
            writes.append((key, raw, waw, war))
            if result:
                results.append(key)
    return writes, results


def _kept(rows: Sequence[Kept], values: Sequence[int]) -> tuple[tuple[_Kept, ...], tuple[_Kept, ...]]:
    """Operands that go into the reuse cache, and all that might be read from it."""
    reuse: list[_Kept] = []
    slots: list[_Kept] = []
    for slot, flag, column, width in rows:
        number = values[column]
        if number != 255:
            entry = (slot, number, width)
            slots.append(entry)
            if values[flag]:
                reuse.append(entry)
    return tuple(reuse), tuple(slots)


def _conditional(shape: Shape, values: Sequence[int]) -> bool:
    """Whether a second predicate may keep control from going on."""
    return any(values[place] != 7 or (inverted >= 0 and values[inverted]) for place, inverted in shape.predicates)


def _depbar(columns: tuple[int, int, int], values: Sequence[int]) -> tuple[int, int, int]:
    mask, scoreboard, count = [0 if c < 0 else values[c] for c in columns]
    return mask, scoreboard, count


def _span(columns: tuple[int, int], values: Sequence[int]) -> tuple[int, int, int]:
    """(base register, first byte, end) of a shared access: four bytes of it, enough to tell a clash."""
    offset = values[columns[1]]
    return values[columns[0]], offset, offset + 4
