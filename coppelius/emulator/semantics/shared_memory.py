"""Shared memory beyond plain loads and stores: matrix loads, and copies from global memory.

LDSM: lane i supplies the address of row i % 8 of matrix i / 8; register j of lane l is row l / 4, columns
2 (l % 4) and the next of matrix j, or transposed rows 2 (l % 4) and the next of column l / 4.
LDGSTS copies when it executes; that the copy lands later is strict mode's matter.
"""

from __future__ import annotations

import numpy as np

from coppelius.emulator import spaces
from coppelius.emulator.group import LANES, Group
from coppelius.emulator.operation import Operation
from coppelius.emulator.registry import Step, executes
from coppelius.emulator.semantics.shared_access import access_size, address_of

_LANE = np.arange(LANES)
_COUNTS = {"": 1, "2": 2, "4": 4, "x1": 1, "x2": 2, "x4": 4}


@executes("LDSM", "LDSM.16")
def ldsm(op: Operation) -> Step:
    address = address_of(op, wide=False)
    count = _COUNTS[op.suffix("COUNT")]
    transposed = "MT88" in op.suffix("SHAPE")
    writes = [op.destination("D", part) for part in range(count)]

    def step(g: Group) -> None:
        rows = np.broadcast_to(address(g), (g.count, LANES))
        _check_rows(op, g, rows, count)
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


def _check_rows(op: Operation, g: Group, rows: np.ndarray[tuple[int, ...], np.dtype[np.uint32]], count: int) -> None:
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
    """Where the predicate is false, .ZFILL stores zeros and the plain form stores nothing."""
    target, source = address_of(op, "shared", wide=False), address_of(op, "address", wide=True)
    size, _ = access_size(op)
    wanted, fill = op.predicate("Ps"), bool(op.field("ZFILL", 0))

    def step(g: Group) -> None:
        part = g.under(wanted(g))
        if part is not None:
            values = spaces.load(op, "global", part, source(part), size)
            spaces.store(op, "shared", part, target(part), size, values)
        if fill:
            rest = g.under(~wanted(g))
            if rest is not None:
                zeros = [np.zeros((g.count, LANES), np.uint32)] * max(1, size // 4)
                spaces.store(op, "shared", rest, target(rest), size, zeros)

    return step
