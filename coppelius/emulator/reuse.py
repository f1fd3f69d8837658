"""The reuse caches, for strict mode: an operand that was kept beside the pipe is read again as it was.

Each warp keeps one operand for each slot (A, B, C) and register bank (even, odd).  The next read through that slot and
bank takes it out: the same register is not fetched, whatever was written to it since; that is a stale reuse.  A wait,
an instruction that lets another warp in (bit 109 = 0) and control flow end what is kept.

Left out: an instruction that reads one register through two slots finds it stale in both.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from coppelius.emulator.flight import Array, Kept, Key, Timed
from coppelius.emulator.group import LANES, Bools, Group
from coppelius.emulator.operation import Operation


@dataclass(eq=False)
class Entry:
    """An operand kept by some warps; `old`: registers written since, as they were; `written`: in which lanes."""

    operand: Kept
    by: Operation
    warps: Bools
    written: Bools
    old: dict[Key, Array] = field(default_factory=dict)


class ReuseCache:
    """What a machine's warps keep."""

    def __init__(self, warps: int) -> None:
        self.warps = warps
        self.entries: dict[tuple[int, int], list[Entry]] = {}

    def read(self, timed: Timed, group: Group) -> list[tuple[Key, Array, Bools, Entry]]:
        """Takes out what this instruction's operands find: registers that are stale there, their values, the lanes."""
        stale = []
        for operand in timed.slots:
            for entry in self.entries.get(operand.place, ()):
                hit = np.zeros((self.warps, LANES), np.bool_)
                hit[group.select] = group.active & entry.warps[group.select].reshape(-1, 1)
                entry.warps[group.select] = False
                lanes = hit & entry.written
                if entry.operand.register == operand.register and lanes.any():
                    stale += [(key, old, lanes, entry) for key, old in entry.old.items()]
        self._sweep()
        return stale

    def keep(self, timed: Timed, group: Group) -> None:
        """The operands that this instruction flags."""
        for operand in timed.kept:
            warps = np.zeros(self.warps, np.bool_)
            warps[group.select] = True
            written = np.zeros((self.warps, LANES), np.bool_)
            entry = Entry(operand, timed.operation, warps, written)
            self.entries.setdefault(operand.place, []).append(entry)

    def write(self, key: Key, row: Array, part: Group) -> None:
        """A register is about to be written: entries remember what it holds."""
        if key[0] != "R":
            return
        for entries in self.entries.values():
            for entry in entries:
                first = entry.operand.register
                if first <= key[1] < first + entry.operand.width and entry.warps[part.select].any():
                    entry.old.setdefault(key, row.copy())
                    entry.written[part.select] |= part.active

    def end(self, group: Group) -> None:
        """These warps keep nothing any more."""
        for entry in self._all():
            entry.warps[group.select] = False
        self._sweep()

    def _all(self) -> Iterable[Entry]:
        return (entry for entries in self.entries.values() for entry in entries)

    def _sweep(self) -> None:
        kept = {place: [e for e in entries if e.warps.any()] for place, entries in self.entries.items()}
        self.entries = {place: entries for place, entries in kept.items() if entries}
