"""Operand slots: registers and predicates.  A slot owns fields, knows its text, and says what it reads and writes.

A slot renders a whole column of instructions at once (one table look-up an instruction), parses one
text, and accepts one operand value; the three agree because they use the same fields.  An empty text
means that nvdisasm prints nothing there.
"""

from __future__ import annotations

import copy
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self, TypedDict, Unpack

from coppelius.isa.bits import Bits, Field, bits
from coppelius.isa.operands import PT_INDEX, RZ_INDEX, UP, UR, P, R

READ = "read"
WRITE = "write"

Columns = Mapping[str, list[int]]
Values = dict[str, int]
# registers an access spans: a number, or (field, {code: number}) where a modifier decides
Width = int | tuple[str, Mapping[int, int]]


@dataclass(frozen=True)
class Access:
    """Registers that an instruction reads or writes: `space` is R, UR, P, UP or B; `field` holds the first index.

    `when` = (field, codes): only then (an address pair that may be single, a descriptor that may be absent).
    """

    slot: str
    space: str
    field: str
    mode: str
    width: Width = 1
    when: tuple[str, frozenset[int]] | None = None
    # the index lies this many bits up in the field (`cx[UR][offset]` packs both)
    shift: int = 0


class Slot(ABC):
    """What every operand can do; see the module's docstring."""

    name: str
    fields: tuple[Field, ...] = ()
    accesses: tuple[Access, ...] = ()
    # how many comma-separated texts it prints as
    tokens: ClassVar[int] = 1
    # field values when its text is absent; None: it is never absent
    absent: Values | None = None

    @abstractmethod
    def render(self, columns: Columns) -> list[str]:
        """Its text for each instruction; empty where nvdisasm prints nothing."""

    @abstractmethod
    def parse(self, text: str) -> Values | None:
        """Its fields from text; None if the text is no such operand."""

    @abstractmethod
    def accept(self, value: object) -> Values | None:
        """Its fields from an operand value; None if the value is no such operand."""


def _flag(name: str, place: Bits | None) -> tuple[Field, ...]:
    return () if place is None else (Field(name, place),)


_HALVES = {0: "", 1: ".F32", 2: ".H0_H0", 3: ".H1_H1", 4: ".H0_NH1"}
# which byte or half of a source a conversion takes; printed inside the bars of a magnitude
BYTE_SELECT = {0: "", 1: ".B1", 2: ".B2", 3: ".B3"}
HALF_SELECT = {0: "", 1: ".H1"}


class Marks(TypedDict, total=False):
    """Where an operand's modifiers lie and how they print; see `Modified`."""

    negate: Bits | None
    absolute: Bits | None
    half: Bits | None
    reuse: Bits | None
    invert: bool
    select: Mapping[int, str] | None
    tail: tuple[Field, Mapping[int, str]] | None
    suffix: str


class Modified(Slot):
    """Shared by operands with sign, magnitude, 16-bit half and reuse: `-|R4|.H0_H0.reuse`.

    `tail` is one more suffix that a form prints on the operand (`.ROW`, `.B1`), as (field, {code: text});
    `suffix` one that it always prints (`.SIGN`).
    """

    sign = "-"
    # whether a half select prints inside the bars of a magnitude
    half_inside: ClassVar[bool] = False

    def __init__(
        self,
        name: str,
        place: Field,
        *,
        negate: Bits | None = None,
        absolute: Bits | None = None,
        half: Bits | None = None,
        reuse: Bits | None = None,
        invert: bool = False,
        select: Mapping[int, str] | None = None,
        tail: tuple[Field, Mapping[int, str]] | None = None,
        suffix: str = "",
    ) -> None:
        self.name = name
        self.suffix = suffix
        self._names = _HALVES if select is None else select
        self._half_codes = {text.lstrip("."): code for code, text in self._names.items() if text}
        self._inside = self.half_inside or (select is not None and absolute is not None)
        self.place = place
        self.sign = "~" if invert else "-"
        self.tail = tail
        self._negate = _flag(f"{name}.negate", negate)
        self._absolute = _flag(f"{name}.absolute", absolute)
        # a third bit adds the code 4, a half of each sign
        codes = None if half is None or (half.width == 2 and len(self._names) >= 4) else frozenset(self._names)
        self._half: tuple[Field, ...] = () if half is None else (Field(f"{name}.half", half, codes=codes),)
        self._reuse = _flag(f"{name}.reuse", reuse)
        self.fields = (
            place,
            *self._negate,
            *self._absolute,
            *self._half,
            *self._reuse,
            *(() if tail is None else (tail[0],)),
        )
        self._table: dict[int, str] = {}

    @abstractmethod
    def bare(self, index: int) -> str:
        """The text of the unmodified operand."""

    @abstractmethod
    def parse_bare(self, text: str) -> int | None:
        """Inverse of `bare`."""

    def _compose(self, key: tuple[int, int, int, int, int, int]) -> str:
        index, negate, absolute, half, reuse, tail = key
        text = self.bare(index)
        if self._inside:
            text += self._names[half]
        if absolute:
            text = f"|{text}|"
        if negate:
            text = self.sign + text
        if reuse:
            text += ".reuse"
        if not self._inside:
            text += self._names[half]
        return text + (self.tail[1][tail] if self.tail else "") + self.suffix

    def render(self, columns: Columns) -> list[str]:
        index = columns[self.place.name]
        flags = [f for f in self.fields[1:] if any(columns[f.name])]
        if not flags and self.tail is None and not self.suffix:
            bare = self.bare
            return [bare(i) for i in index]
        zeros = [0] * len(index)
        parts = (self._negate, self._absolute, self._half, self._reuse, (self.tail[0],) if self.tail else ())
        keys = zip(index, *(columns[p[0].name] if p else zeros for p in parts), strict=True)
        memo: dict[tuple[int, int, int, int, int, int], str] = {}
        out = []
        for key in keys:
            text = memo.get(key)
            if text is None:
                text = memo[key] = self._compose(key)
            out.append(text)
        return out

    def parse(self, text: str) -> Values | None:
        values = dict.fromkeys((f.name for f in self.fields), 0)
        text = text.strip()
        if not text.endswith(self.suffix):
            return None
        text = text[: len(text) - len(self.suffix)]
        if self.tail is not None:
            place, names = self.tail
            for code, suffix in sorted(names.items(), key=lambda item: -len(item[1])):
                if text.endswith(suffix):
                    text = text[: len(text) - len(suffix)]
                    values[place.name] = code
                    break
            else:
                return None
        if not self._inside:
            text = self._take_half(text, values)
        if self._reuse and text.endswith(".reuse"):
            text = text.removesuffix(".reuse")
            values[self._reuse[0].name] = 1
        if self._negate and text.startswith(self.sign):
            text = text[1:]
            values[self._negate[0].name] = 1
        if self._absolute and text.startswith("|") and text.endswith("|"):
            text = text[1:-1]
            values[self._absolute[0].name] = 1
        if self._inside:
            text = self._take_half(text, values)
        index = self.parse_bare(text)
        if index is None:
            return None
        values[self.place.name] = index
        return values

    @property
    def selects_halves(self) -> bool:
        """Whether it takes 16-bit halves as the half pipe does."""
        return self._names is _HALVES

    def without_reuse(self) -> Self:
        """The same without a reuse flag: its bit is reserved."""
        twin = copy.copy(self)
        twin.fields, twin._reuse = tuple(f for f in self.fields if f not in self._reuse), ()
        return twin

    def _take_half(self, text: str, values: Values) -> str:
        """The text without a half select at its end, whose code goes into `values`."""
        head, dot, suffix = text.rpartition(".")
        if not self._half or not dot or suffix not in self._half_codes:
            return text
        values[self._half[0].name] = self._half_codes[suffix]
        return head

    def accept_modifiers(self, negate: bool, absolute: bool, half: str, reuse: bool = False) -> Values | None:
        """Fields of the modifiers; None if this operand has no such modifier."""
        values: Values = {}
        code = self._half_codes.get(half) if half else 0
        if code is None:
            return None
        wanted = (
            (self._negate, int(negate)),
            (self._absolute, int(absolute)),
            (self._half, code),
            (self._reuse, int(reuse)),
        )
        for field, value in wanted:
            if field:
                values[field[0].name] = value
            elif value:
                return None
        return values


_REGISTER_NAMES = [f"R{n}" for n in range(RZ_INDEX)] + ["RZ"]


class Register(Modified):
    """A general register, `width` of them from an aligned index on."""

    def __init__(self, name: str, place: Bits, mode: str, *, width: Width = 1, **marks: Unpack[Marks]) -> None:
        super().__init__(name, Field(name, place, default=RZ_INDEX), **marks)
        self.accesses = (Access(name, "R", name, mode, width),)

    def bare(self, index: int) -> str:
        return _REGISTER_NAMES[index]

    def parse_bare(self, text: str) -> int | None:
        return _index(text, "R", RZ_INDEX)

    def accept(self, value: object) -> Values | None:
        if not isinstance(value, R):
            return None
        modifiers = self.accept_modifiers(value.negate, value.absolute, value.half, value.reuse)
        return None if modifiers is None else {self.name: value.index, **modifiers}


class UniformRegister(Modified):
    """A uniform register; `place` is 6 bits on SM86 (63 = URZ) and 8 from SM100 on (255 = URZ).

    `optional`: not printed where it is URZ.
    """

    half_inside = True

    def __init__(
        self, name: str, place: Bits, mode: str, *, width: Width = 1, optional: bool = False, **marks: Unpack[Marks]
    ) -> None:
        zero = (1 << place.width) - 1
        super().__init__(name, Field(name, place, default=zero), **marks)
        self.absent = {name: zero} if optional else None
        self.accesses = (Access(name, "UR", name, mode, width),)

    @property
    def zero(self) -> int:
        """The index of URZ."""
        return (1 << self.place.width) - 1

    def bare(self, index: int) -> str:
        if index == self.zero:
            return "" if self.absent is not None else "URZ"
        return f"UR{index}"

    def parse_bare(self, text: str) -> int | None:
        return _index(text, "UR", self.zero)

    def accept(self, value: object) -> Values | None:
        if not isinstance(value, UR):
            return None
        modifiers = self.accept_modifiers(value.negate, value.absolute, value.half)
        return None if modifiers is None else {self.name: value.index, **modifiers}


def _index(text: str, prefix: str, zero: int) -> int | None:
    """`R12` or `RZ` -> the index."""
    if text == prefix + "Z":
        return zero
    if text.startswith(prefix) and text[len(prefix) :].isdecimal():
        number = text[len(prefix) :]
        if number == str(int(number)) and int(number) < zero:
            return int(number)
    return None


_PREDICATE = re.compile(r"^(!?)(U?)P([0-6T])$")


class Predicate(Slot):
    """A predicate operand: three bits, an inversion bit where it is read, `optional` where PT is not printed.

    `stored_inverted`: the word holds 0 for "always" (HMMA, the source of LDG).  `default_not`: what an
    instruction gets that leaves the operand out, PT or `!PT`.
    """

    def __init__(
        self,
        name: str,
        place: Bits,
        mode: str,
        *,
        inverted: Bits | None = None,
        uniform: bool = False,
        optional: Values | None = None,
        stored_inverted: bool = False,
        default_not: int = 0,
    ) -> None:
        self.name = name
        self.space = "UP" if uniform else "P"
        self.place = Field(name, place, invert=7 if stored_inverted else 0, default=PT_INDEX)
        self._not = () if inverted is None else (Field(f"{name}.not", inverted, default=default_not),)
        self.fields = (self.place, *self._not)
        self.accesses = (Access(name, self.space, name, mode),)
        self.absent = optional
        names = [f"{self.space}{n}" for n in range(7)] + [f"{self.space}T"]
        self._texts = names + ["!" + n for n in names]
        if optional is not None:
            hidden = optional[name] | optional.get(f"{name}.not", 0) << 3
            self._texts[hidden] = ""

    def always(self) -> Predicate:
        """The same, printed where it is PT, too."""
        twin = copy.copy(self)
        names = [f"{self.space}{n}" for n in range(7)] + [f"{self.space}T"]
        twin.absent, twin._texts = None, names + ["!" + n for n in names]
        return twin

    def render(self, columns: Columns) -> list[str]:
        texts = self._texts
        if not self._not:
            return [texts[i] for i in columns[self.name]]
        return [texts[i | n << 3] for i, n in zip(columns[self.name], columns[self._not[0].name], strict=True)]

    def parse(self, text: str) -> Values | None:
        match = _PREDICATE.match(text.strip())
        if not match or bool(match[2]) != (self.space == "UP") or (match[1] and not self._not):
            return None
        values = {self.name: PT_INDEX if match[3] == "T" else int(match[3])}
        if self._not:
            values[self._not[0].name] = int(bool(match[1]))
        return values

    def accept(self, value: object) -> Values | None:
        wanted = UP if self.space == "UP" else P
        if not isinstance(value, wanted) or (value.inverted and not self._not):
            return None
        values = {self.name: value.index}
        if self._not:
            values[self._not[0].name] = int(value.inverted)
        return values


def guard(*, uniform: bool = False) -> Predicate:
    """The guard of every instruction, bits [15:12]; of the uniform datapath it is a uniform predicate."""
    return Predicate(
        "guard", bits[14:12], READ, inverted=bits[15], uniform=uniform, optional={"guard": 7, "guard.not": 0}
    )
