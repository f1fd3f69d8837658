"""How many general registers are live at once, in whatever order a block's instructions issue."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from coppelius.program.flow import Block
from coppelius.schedule.operation import SPACES, Operation

_END = SPACES["UR"]


@dataclass(frozen=True)
class Budget:
    """General registers that may be live at once; by block start, those live before the block and after it."""

    registers: int
    before: Mapping[int, frozenset[int]]
    after: Mapping[int, frozenset[int]]

    @property
    def bounds(self) -> Hashable:
        """All of it, to be looked up by."""
        return self.registers, tuple(sorted(self.before.items())), tuple(sorted(self.after.items()))


class Pressure:
    """The registers live along one block; `read`, `written`: of each of its instructions."""

    def __init__(self, operations: Sequence[Operation], block: Block, budget: Budget) -> None:
        self.registers = budget.registers
        self.live = set(budget.before[block.start])
        self.after = budget.after[block.start]
        self.read = {i: _read(operations[i]) for i in range(block.start, block.end)}
        self.written = {i: _written(operations[i]) for i in range(block.start, block.end)}
        self.most = max(map(len, self.written.values()), default=0)
        self.readers: dict[int, int] = {}
        for keys in self.read.values():
            for key in keys:
                self.readers[key] = self.readers.get(key, 0) + 1

    def tight(self) -> bool:
        """Whether any instruction may take more registers than the budget has."""
        return len(self.live) + self.most > self.registers

    def over(self, i: int) -> int:
        """Registers over the budget once instruction i has issued."""
        written = self.written[i]
        if len(self.live) + len(written) <= self.registers:
            return 0
        left = len(self.live) + len(written - self.live) - len(self._ended(i) - written)
        return max(0, left - self.registers)

    def issue(self, i: int) -> int:
        """Instruction i issues; how many are live then, operands and results both."""
        written, ended = self.written[i], self._ended(i)
        self.live |= written
        most = len(self.live)
        readers = self.readers
        for key in self.read[i]:
            readers[key] -= 1
        self.live -= {key for key in ended | written if not readers.get(key) and key not in self.after}
        return most

    def _ended(self, i: int) -> set[int]:
        """Registers that nothing reads after instruction i."""
        keys = self.read[i] & self.live
        return {key for key in keys if self.readers[key] == 1 and key not in self.after}


def _read(op: Operation) -> set[int]:
    return {key for key, _ in op.reads if key < _END}


def _written(op: Operation) -> set[int]:
    return {key for key, *_ in op.writes if key < _END}
