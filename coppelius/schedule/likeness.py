"""What scheduling sees of a program: everything but its numbers, so that programs alike in the rest are scheduled once.

Which registers an instruction touches, which pipe it takes and how long its result is on its way say its encoding
and its registers; an addend, a factor, a bound or an offset in memory never do.  Passes that ask for a minimum of
cycles therefore give two programs that differ in such numbers the same order, stalls and scoreboards: one block of
memory per pass keeps the last few answers, by all that the pass saw.

A number counts here only where it is known to be free: the second operand of plain arithmetic, the offset of an
address.  Masks of predicates, counts of DEPBAR, look-up tables and branch targets are seen as they are.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Generic, TypeVar

from coppelius.isa.address import AddressOperand
from coppelius.isa.form import Encoding
from coppelius.isa.values import Immediate
from coppelius.program.program import Instruction

_ARITHMETIC = frozenset(("IADD3", "IMAD", "ISETP", "LEA", "LOP3", "MOV", "SHF", "FADD", "FFMA", "FMUL"))
_ACCESSES = frozenset(("LDG", "LDGSTS", "LDS", "LDSM", "STG", "STS"))
_KEPT = 64

Answer = TypeVar("Answer")


class Memory(Generic[Answer]):
    """The last answers of one pass."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Answer] = {}

    def get(self, question: Hashable) -> Answer | None:
        """The answer, if it is still known."""
        return self._known.get(question)

    def keep(self, question: Hashable, answer: Answer) -> Answer:
        """Notes an answer; the oldest goes."""
        if len(self._known) >= _KEPT:
            del self._known[next(iter(self._known))]
        self._known[question] = answer
        return answer


@lru_cache(maxsize=8192)
def free_columns(encoding: Encoding) -> tuple[int, ...]:
    """The columns of the numbers that no pass looks at."""
    names = []
    for slot in encoding.operands:
        if encoding.stem in _ARITHMETIC and isinstance(slot, Immediate) and slot.name == "B":
            names.append(slot.field.name)
        if encoding.stem in _ACCESSES and isinstance(slot, AddressOperand):
            names.append(slot.offset.name)
    return tuple(encoding.column[name] for name in names)


def shape_of(rows: Iterable[Instruction]) -> Hashable:
    """All that passes see of these instructions."""
    return tuple([(row.encoding, _seen(row)) for row in rows])


def _seen(row: Instruction) -> tuple[int, ...]:
    free = free_columns(row.encoding)
    if not free:
        return row.values
    values = list(row.values)
    for column in free:
        values[column] = 0
    return tuple(values)


def pins_of(pins: Sequence[Mapping[str, int]]) -> Hashable:
    """Pins as part of a question."""
    return tuple([tuple(sorted(pin.items())) if pin else () for pin in pins])


def like(known: Instruction, own: Instruction) -> Instruction:
    """A row of an earlier answer with the numbers of its counterpart; what the answer inserted stays."""
    free = free_columns(known.encoding)
    if not free or own.encoding is not known.encoding:
        return known
    values = list(known.values)
    for column in free:
        values[column] = own.values[column]
    return Instruction(known.encoding, tuple(values))
