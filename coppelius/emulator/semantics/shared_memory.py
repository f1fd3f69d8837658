"""Shared memory beyond plain loads and stores: matrix loads, and copies from global memory.

LDSM: lane i supplies the address of row i % 8 of matrix i / 8; register j of lane l is row l / 4, columns
2 (l % 4) and the next of matrix j, or transposed rows 2 (l % 4) and the next of column l / 4.
LDGSTS copies when it executes; that a copy lands later is strict mode's matter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from coppelius.emulator import spaces
from coppelius.emulator.group import LANES, Group
from coppelius.emulator.operation import Operation
from coppelius.emulator.registry import Step, executes
from coppelius.emulator.semantics.shared_access import access_size, address_of
from coppelius.emulator.traffic import MATRIX_ROWS
from coppelius.emulator.undefined import NONE

Array = npt.NDArray[Any]
_LANE = np.arange(LANES)
_COUNTS = {"": 1, "2": 2, "4": 4, "x1": 1, "x2": 2, "x4": 4}


@executes("LDSM.16")
def ldsm(op: Operation) -> Step:
    address = address_of(op, wide=False)
    count = _COUNTS[op.suffix("COUNT")]
    transposed = "MT88" in op.suffix("SHAPE")
    writes = [op.destination("D", part) for part in range(count)]

    def step(g: Group) -> None:
        rows = np.broadcast_to(address(g), (g.count, LANES))
        _check_rows(op, g, rows, count)
        if op.machine.traffic is not None:
            op.machine.traffic.note_rows(op, rows[:, : MATRIX_ROWS * count])
        found = []
        for j in range(count):
            if not transposed:
                at = rows[:, 8 * j + _LANE // 4] + (4 * (_LANE % 4)).astype(np.uint32)
                found.append(spaces.load(op, "shared", g, at, 4)[0])
                continue
            column = (2 * (_LANE // 4)).astype(np.uint32)
            low, high = (
                spaces.load(op, "shared", g, rows[:, 8 * j + 2 * (_LANE % 4) + k] + column, 2)[0] for k in (0, 1)
            )
            found.append(low.astype(np.uint32) | high.astype(np.uint32) << np.uint32(16))
        for write, value in zip(writes, found, strict=True):
            write(g, value)

    return step


def _check_rows(op: Operation, g: Group, rows: Array, count: int) -> None:
    used = rows[:, : 8 * count]
    crooked = (used & np.uint32(15)) != 0
    if not crooked.any():
        return
    lanes = np.zeros((g.count, LANES), np.bool_)
    lanes[:, : 8 * count] = crooked
    first = int(used[crooked][0])
    text = "misaligned: a matrix row must start at a multiple of 16"
    op.machine.report(op, "memcheck", text, warps=g.warps, lanes=lanes, address=first)


@executes("LDGSTS")
def ldgsts(op: Operation) -> Step:
    """Where the predicate is false, zeros; of .ZFILL the source's low bits say how many bytes at the end are zero
    (# read from ptxas: `cp.async ..., 16, n` adds 16 - n to the address)."""
    target, source = address_of(op, "shared", wide=False), address_of(op, "address", wide=True)
    size, _ = access_size(op)
    wanted, fill = op.predicate("Ps"), op.flag("ZFILL")
    low = np.uint64(size - 1)

    def step(g: Group) -> None:
        part = g.under(wanted(g))
        words = [np.zeros((g.count, LANES), np.uint32) for _ in range(size // 4)]
        if part is not None:
            address = source(part)
            missing = (address & low).astype(np.int64) if fill else None
            words = spaces.load(op, "global", part, address & ~low if fill else address, size)
            if missing is not None:
                words = [_front(word, size - missing - 4 * k) for k, word in enumerate(words)]
        _copy(op, g, target(g), size, words)

    return step


def _front(word: Array, kept: Array) -> Array:
    """The first `kept` bytes of each word, 0 to 4."""
    mask = (np.int64(1) << np.int64(8) * np.clip(kept, 0, 4)) - 1
    cut: Array = word & mask.astype(np.uint32)
    return cut


def _copy(op: Operation, g: Group, target: Array, size: int, values: list[Array]) -> None:
    """Stores into shared memory, now or when strict mode says; as defined as what was loaded."""
    shadow = op.machine.shadow
    masks = [NONE] if shadow is None else shadow.loaded or [NONE]
    kept = [np.array(v) for v in (target, *values)] if op.machine.defer is not None else [target, *values]

    def put() -> None:
        if shadow is not None:
            shadow.storing = masks
        spaces.store(op, "shared", g, kept[0], size, kept[1:])

    if op.machine.defer is None:
        put()
    else:
        op.machine.defer(put)
