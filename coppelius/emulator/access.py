"""Rows of the register files: readers give views or constants, writers store under the mask of the group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from coppelius.emulator.group import Group

Array = npt.NDArray[Any]
Read = Callable[[Group], Array]
Write = Callable[[Group, Array], None]

_32 = np.uint64(32)


def row_writer(row: Array) -> Write:
    """Stores into a row of a register file under the group's mask."""

    def write(g: Group, value: Array) -> None:
        if g.mask is None:
            row[g.select] = value
        elif isinstance(g.select, slice):
            np.copyto(row[g.select], value, where=g.mask)
        else:
            part = row[g.select]
            np.copyto(part, value, where=g.mask)
            row[g.select] = part

    return write


def uniform_writer(row: Array) -> Write:
    """Stores `[warps, 1]` values; of `[warps, 32]` values the first active lane's."""

    def write(g: Group, value: Array) -> None:
        if value.shape[-1] != 1:
            value = np.broadcast_to(value, (g.count, value.shape[-1]))
            lane = np.zeros(g.count, np.intp) if g.mask is None else g.mask.argmax(axis=1)
            value = value[np.arange(g.count), lane].reshape(-1, 1)
        if g.mask is None:
            row[g.select] = value
            return
        present = g.mask.any(axis=1, keepdims=True)
        row[g.select] = np.where(present, value, row[g.select])

    return write


def fixed(value: int) -> Read:
    """A reader of the same 32 bits for every lane."""
    constant = np.full((1, 1), value & 0xFFFFFFFF, dtype=np.uint32)
    return lambda _: constant


def joined(low: Read, high: Read) -> Read:
    """Two readers of words as one of 64 bits."""
    return lambda g: low(g).astype(np.uint64) | high(g).astype(np.uint64) << _32


def nowhere(g: Group, value: Array) -> None:
    """RZ, URZ and PT take no value."""
