"""A program is a column of instructions: an encoding and its field values each, control word included.

Kept as arrays (`uids int16[n]`, `values int64[n, columns]`), because decoding, encoding and printing
work on whole columns; `Instruction` is one row taken out, for passes that think about one at a time.
A branch holds the distance to its target in bytes from the next instruction, as the word does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from coppelius.isa import access, codec
from coppelius.isa.access import Touch
from coppelius.isa.codec import Decoded, Fields, Uids
from coppelius.isa.control import CONTROL_COLUMNS, Control
from coppelius.isa.form import Encoding
from coppelius.isa.refusal import Refusal
from coppelius.isa.table import Table, sm86
from coppelius.isa.values import Label_
from coppelius.isa.word import WORD_BYTES, from_bytes, to_bytes


@dataclass(frozen=True)
class Instruction:
    """One instruction: `values` in the order of `encoding.fields`."""

    encoding: Encoding
    values: tuple[int, ...]

    def __getitem__(self, field: str) -> int:
        return self.values[self.encoding.column[field]]

    def get(self, field: str, default: int = 0) -> int:
        """The field's value, or `default` where this encoding has no such field."""
        column = self.encoding.column.get(field)
        return default if column is None else self.values[column]

    def with_fields(self, changes: Mapping[str, int]) -> Instruction:
        """The same with some fields changed."""
        values = list(self.values)
        for name, value in changes.items():
            values[self.encoding.column[name]] = value
        return Instruction(self.encoding, tuple(values))

    @property
    def control(self) -> Control:
        """Its control word."""
        return Control(self["stall"], bool(self["keep"]), self["write_barrier"], self["read_barrier"], self["wait"])

    def with_control(self, control: Control) -> Instruction:
        """The same with another control word."""
        codes = (control.stall, int(control.keep), control.write_barrier, control.read_barrier, control.wait)
        guard, own = self.values[: CONTROL_COLUMNS.start], self.values[CONTROL_COLUMNS.stop :]
        return Instruction(self.encoding, (*guard, *codes, *own))

    @property
    def reads(self) -> list[Touch]:
        """Registers it reads."""
        return access.reads(self.encoding, self.values)

    @property
    def writes(self) -> list[Touch]:
        """Registers it may write."""
        return access.writes(self.encoding, self.values)

    @property
    def label(self) -> str | None:
        """The field that holds its branch target, if it has one."""
        slot = _label(self.encoding)
        return None if slot is None else slot.name


@dataclass(frozen=True, eq=False)
class Program:
    """Instructions of one target's table; see the module's docstring for the arrays."""

    decoded: Decoded
    # by name, what was found out about it before: a program does not change
    memo: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def table(self) -> Table:
        return self.decoded.table

    @property
    def uids(self) -> Uids:
        """`int16[n]`: the encoding of each instruction."""
        return self.decoded.uids

    @property
    def values(self) -> Fields:
        """`int64[n, columns]`: the fields of each instruction."""
        return self.decoded.values

    def __len__(self) -> int:
        return len(self.uids)

    def __iter__(self) -> Iterator[Instruction]:
        return iter(self.rows)

    @property
    def rows(self) -> tuple[Instruction, ...]:
        """All instructions."""
        found: tuple[Instruction, ...] | None = self.memo.get("rows")
        if found is None:
            kinds = [self.table.encodings[uid] for uid in self.uids.tolist()]
            pairs = zip(kinds, self.values.tolist(), strict=True)
            found = self.memo["rows"] = tuple([Instruction(e, tuple(row[: len(e.fields)])) for e, row in pairs])
        return found

    def __getitem__(self, ordinal: int) -> Instruction:
        encoding = self.table.encodings[self.uids[ordinal]]
        return Instruction(encoding, tuple(self.values[ordinal, : len(encoding.fields)].tolist()))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Program):
            return NotImplemented
        same = self.table.target == other.table.target and np.array_equal(self.uids, other.uids)
        return bool(same and np.array_equal(self.values, other.values))

    __hash__ = None  # type: ignore[assignment]

    @staticmethod
    def of(instructions: Iterable[Instruction], table: Table | None = None) -> Program:
        """The program of these instructions."""
        table = table or sm86()
        rows = list(instructions)
        values = np.zeros((len(rows), table.columns), dtype=np.int64)
        for i, row in enumerate(rows):
            values[i, : len(row.values)] = row.values
        uids = np.fromiter((row.encoding.uid for row in rows), dtype=np.int16, count=len(rows))
        own = all(row.encoding is table.encodings[row.encoding.uid] for row in rows)
        return Program(Decoded(table, uids, values), {"rows": tuple(rows)} if own else {})

    @staticmethod
    def decode(material: bytes, table: Table | None = None) -> Program:
        """Encoded bytes -> program; refuses by offset a word outside the table."""
        table = table or sm86()
        words = from_bytes(material)
        return Program(codec.require(codec.decode(table, words), words))

    def encode(self) -> bytes:
        """Program -> bytes, 16 an instruction; refuses what no word can hold, or a branch out of the program."""
        self._refuse_wild_branches()
        return to_bytes(codec.encode(self.decoded))

    def with_controls(self, controls: Sequence[Control]) -> Program:
        """The same instructions under other control words."""
        return Program.of([i.with_control(c) for i, c in zip(self, controls, strict=True)], self.table)

    def targets(self) -> list[int | None]:
        """Each instruction's branch target as an ordinal, None where it has none; may lie outside the program."""
        out: list[int | None] = [None] * len(self)
        for ordinal in np.flatnonzero(np.isin(self.uids, _branches(self.table))).tolist():
            out[ordinal] = branch_target(self[ordinal], ordinal)
        return out

    def _refuse_wild_branches(self) -> None:
        for ordinal, target in enumerate(self.targets()):
            if target is not None and not 0 <= target < len(self):
                row = self[ordinal]
                address = branch_address(row, ordinal) or 0
                wrong = f"outside the program's {len(self) * WORD_BYTES:#x} bytes"
                if address % WORD_BYTES:
                    wrong = "where no instruction begins"
                raise Refusal(f"instruction {ordinal} ({row.encoding.mnemonic}) branches to {address:#x}, {wrong}")


@cache
def _label(encoding: Encoding) -> Label_ | None:
    """The operand that holds a branch target."""
    return next((s for s in encoding.operands if isinstance(s, Label_)), None)


@cache
def _branches(table: Table) -> Uids:
    """The encodings that hold a branch target."""
    found = [e.uid for e in table.encodings if _label(e) is not None]
    return np.array(found, dtype=np.int16)


def branch_address(instruction: Instruction, ordinal: int) -> int | None:
    """The byte an instruction at `ordinal` branches to, None where it does not."""
    slot = _label(instruction.encoding)
    return None if slot is None else (ordinal + 1) * WORD_BYTES + instruction[slot.name] * slot.scale


def branch_target(instruction: Instruction, ordinal: int) -> int | None:
    """The ordinal an instruction at `ordinal` branches to; -1 where that is no whole instruction."""
    address = branch_address(instruction, ordinal)
    if address is None:
        return None
    return address // WORD_BYTES if address % WORD_BYTES == 0 else -1


def branch_to(instruction: Instruction, ordinal: int, target: int) -> Instruction:
    """The instruction at `ordinal`, branching to the instruction `target`."""
    slot = _label(instruction.encoding)
    if slot is None:
        raise Refusal(f"{instruction.encoding.mnemonic} has no branch target")
    return instruction.with_fields({slot.name: (target - ordinal - 1) * WORD_BYTES // slot.scale})
