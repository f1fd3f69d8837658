"""Operand slots that are no registers: immediates, constants, labels, names, modifiers of the mnemonic."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Unpack

from coppelius.isa import literals
from coppelius.isa.bits import Bits, Field, bits
from coppelius.isa.operands import Constant, Label, Special
from coppelius.isa.slots import READ, Access, Columns, Marks, Modified, Slot, Values


@dataclass(frozen=True)
class Style:
    """How an immediate's bits are written: to text, from text, and from a Python number."""

    text: Callable[[int], str]
    parse: Callable[[str], int | None]
    number: Callable[[object], int | None]
    # whether different bits can have one text
    lossy: bool = False


def _integer(value: object) -> int | None:
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _float(parse: Callable[[str], int | None]) -> Callable[[object], int | None]:
    return lambda value: parse(_spelled(float(value))) if isinstance(value, (int, float)) else None


def _spelled(value: float) -> str:
    return f"{'-' if value < 0 else '+'}INF" if math.isinf(value) else repr(value)


def hexadecimal(value: int) -> str:
    """`0x1f`, `-0x4`."""
    return f"-{-value:#x}" if value < 0 else f"{value:#x}"


HEX = Style(hexadecimal, literals.parse_integer, _integer)
DECIMAL = Style(str, literals.parse_integer, _integer)
F32 = Style(literals.f32_text, literals.parse_f32, _float(literals.parse_f32), lossy=True)
F64_HIGH = Style(literals.f64_high_text, literals.parse_f64_high, _float(literals.parse_f64_high), lossy=True)
F16 = Style(literals.f16_text, literals.parse_f16, _float(literals.parse_f16), lossy=True)
F16_LOW = Style(
    lambda code: literals.f16_text(code & 0xFFFF), literals.parse_f16, _float(literals.parse_f16), lossy=True
)
BF16 = Style(literals.bf16_text, literals.parse_bf16, _float(literals.parse_bf16), lossy=True)


class Immediate(Slot):
    """A number.  Where the text loses bits of a NaN, `hidden` in braces says the whole pattern."""

    def __init__(
        self,
        name: str,
        place: Bits,
        style: Style = HEX,
        *,
        signed: bool = False,
        codes: frozenset[int] | None = None,
        absent: int | None = None,
        default: int = 0,
    ) -> None:
        self.name = name
        self.style = style
        self.field = Field(name, place, signed=signed, codes=codes, default=default)
        self.fields = (self.field,)
        self.absent = None if absent is None else {name: absent}

    def render(self, columns: Columns) -> list[str]:
        memo: dict[int, str] = {} if self.absent is None else {self.absent[self.name]: ""}
        text = self.style.text
        return [memo[v] if v in memo else memo.setdefault(v, text(v)) for v in columns[self.name]]

    def parse(self, text: str) -> Values | None:
        value = self.style.parse(text)
        return None if value is None or not self.field.admits(value) else {self.name: value}

    def accept(self, value: object) -> Values | None:
        code = self.style.number(value)
        if code is None:
            return None
        if not self.field.signed and -(1 << (self.field.width - 1)) <= code < 0 and self.style is HEX:
            code &= (1 << self.field.width) - 1
        if self.field.signed and self.field.width == 32 and 1 << 31 <= code < 1 << 32 and self.style is HEX:
            code -= 1 << 32  # a whole word, whose sign is only how it prints
        return {self.name: code} if self.field.admits(code) else None


class PackedHalves(Slot):
    """Two 16-bit floats in one 32-bit immediate, printed high half first as two operands."""

    tokens = 2

    def __init__(self, name: str, place: Bits, style: Style) -> None:
        self.name = name
        self.style = style
        self.fields = (Field(name, place),)

    def render(self, columns: Columns) -> list[str]:
        text = self.style.text
        return [f"{text(v >> 16)}, {text(v & 0xFFFF)}" for v in columns[self.name]]

    def parse(self, text: str) -> Values | None:
        high, comma, low = text.partition(",")
        codes = (self.style.parse(high), self.style.parse(low)) if comma else (None, None)
        return None if codes[0] is None or codes[1] is None else {self.name: codes[0] << 16 | codes[1]}

    def accept(self, value: object) -> Values | None:
        """A pair (high, low) of numbers, one number for both halves, or the 32 bits as `("bits", n)`."""
        if isinstance(value, tuple) and len(value) == 2 and value[0] == "bits":
            return {self.name: int(value[1])}
        high, low = value if isinstance(value, tuple) and len(value) == 2 else (value, value)
        codes = self.style.number(high), self.style.number(low)
        return None if codes[0] is None or codes[1] is None else {self.name: codes[0] << 16 | codes[1]}


_CONSTANT = re.compile(r"^c\[(0x[0-9a-f]+)\] ?\[(-?0x[0-9a-f]+)\]$")


class ConstantOperand(Modified):
    """`c[bank][offset]`: offset in whole words, bits [53:40] with 53 as sign; bank [58:54]."""

    half_inside = True

    def __init__(self, name: str, *, spaced: bool = False, **marks: Unpack[Marks]) -> None:
        self.space = " " if spaced else ""
        # one field of bank and offset, so that one look-up prints both
        super().__init__(name, Field(name, bits[58:54] + bits[53:40]), **marks)

    def bare(self, index: int) -> str:
        words = index & 0x3FFF
        return f"c[{index >> 14:#x}]{self.space}[{hexadecimal((words - (words >> 13 << 14)) * 4)}]"

    def parse_bare(self, text: str) -> int | None:
        match = _CONSTANT.match(text)
        if not match:
            return None
        return self._pack(int(match[1], 16), int(match[2], 16))

    def _pack(self, bank: int, offset: int) -> int | None:
        if offset % 4 or not -0x8000 <= offset < 0x8000 or not 0 <= bank < 32:
            return None
        return bank << 14 | (offset >> 2) & 0x3FFF

    def accept(self, value: object) -> Values | None:
        if not isinstance(value, Constant):
            return None
        modifiers = self.accept_modifiers(value.negate, value.absolute, value.half)
        packed = self._pack(value.bank, value.offset)
        return None if modifiers is None or packed is None else {self.name: packed, **modifiers}


class BindlessConstant(Modified):
    """`cx[URn][offset]`: the constant bank is named by a 64-bit uniform register pair; its offset has no sign."""

    half_inside = True

    def __init__(self, name: str, *, spaced: bool = False, **marks: Unpack[Marks]) -> None:
        self.space = " " if spaced else ""
        super().__init__(name, Field(name, bits[37:32] + bits[53:40]), **marks)
        self.accesses = (Access(name, "UR", name, READ, 2, shift=14),)

    def bare(self, index: int) -> str:
        words, uniform = index & 0x3FFF, index >> 14
        name = "URZ" if uniform == 63 else f"UR{uniform}"
        return f"cx[{name}]{self.space}[{words * 4:#x}]"

    def parse_bare(self, text: str) -> int | None:
        match = re.match(r"^cx\[UR(Z|\d+)\] ?\[(0x[0-9a-f]+)\]$", text)
        if not match:
            return None
        uniform = 63 if match[1] == "Z" else int(match[1])
        offset = int(match[2], 16)
        if offset % 4 or offset >= 0x10000 or uniform > 63:
            return None
        return uniform << 14 | (offset >> 2) & 0x3FFF

    def accept(self, value: object) -> Values | None:  # noqa: ARG002 - the kernel language has no bindless constants
        return None


class Label_(Slot):  # noqa: N801 - `Label` is the operand value
    """A branch target, kept as the byte offset from the next instruction; printed as an address.

    The printer adds the instruction's own address (`address` in its columns).
    """

    def __init__(self, name: str, place: Bits, scale: int = 4) -> None:
        self.name = name
        self.scale = scale
        self.fields = (Field(name, place, signed=True),)

    def render(self, columns: Columns) -> list[str]:
        scale = self.scale
        pairs = zip(columns[self.name], columns["address"], strict=True)
        return [hexadecimal(a + 16 + v * scale) for v, a in pairs]

    def parse(self, text: str) -> Values | None:
        """The absolute address, to be made relative by the caller, who knows the instruction's own."""
        value = literals.parse_integer(text)
        return None if value is None else {self.name: value}

    def accept(self, value: object) -> Values | None:
        return {self.name: value.ordinal} if isinstance(value, Label) else None


class Named(Slot):
    """A value printed by name as an operand: `SR_TID.X`, `B0`, `SB0`."""

    def __init__(
        self,
        name: str,
        place: Bits,
        names: Mapping[int, str],
        *,
        absent: int | None = None,
        accesses: tuple[Access, ...] = (),
        default: int = 0,
    ) -> None:
        self.name = name
        self.names = dict(names)
        self.codes = {text: code for code, text in names.items()}
        self.fields = (Field(name, place, codes=frozenset(names), default=default),)
        self.accesses = accesses
        self.absent = None if absent is None else {name: absent}
        self._texts = dict(names) | ({} if absent is None else {absent: ""})

    def render(self, columns: Columns) -> list[str]:
        texts = self._texts
        return [texts[v] for v in columns[self.name]]

    def parse(self, text: str) -> Values | None:
        code = self.codes.get(text.strip())
        return None if code is None else {self.name: code}

    def accept(self, value: object) -> Values | None:
        if isinstance(value, Special):
            value = value.name
        return self.parse(value) if isinstance(value, str) else None


class Modifier:
    """Suffixes of the mnemonic chosen by a field: `{0: "", 1: ".FTZ"}`; codes not named are refused."""

    def __init__(self, name: str, place: Bits, suffixes: Mapping[int, str], *, default: int = 0) -> None:
        self.name = name
        self.suffixes = dict(suffixes)
        self.field = Field(name, place, codes=frozenset(suffixes), default=default)
        self.fields: tuple[Field, ...] = (self.field,)

    def render(self, columns: Columns) -> list[str]:
        """The suffix of each instruction."""
        suffixes = self.suffixes
        return [suffixes[v] for v in columns[self.name]]

    def matches(self, tokens: tuple[str, ...]) -> list[tuple[int, Values]]:
        """Ways to read the front of `tokens` (mnemonic parts after the dots): (parts consumed, fields)."""
        found = []
        for code, suffix in self.suffixes.items():
            parts = tuple(suffix.split(".")[1:])
            if tokens[: len(parts)] == parts:
                found.append((len(parts), {self.name: code}))
        return found


class Alias(Modifier):
    """A suffix that nvdisasm derives from the operands and that holds no bits: `IMAD.MOV`."""

    def __init__(self, name: str, choose: Callable[[Columns], list[str]], suffixes: tuple[str, ...]) -> None:
        self.name = name
        self.fields = ()
        self.choose = choose
        self.names = suffixes

    def render(self, columns: Columns) -> list[str]:
        return self.choose(columns)

    def matches(self, tokens: tuple[str, ...]) -> list[tuple[int, Values]]:
        found: list[tuple[int, Values]] = [(0, {})]
        found += [(1, {}) for name in self.names if tokens[:1] == (name,)]
        return found


class Suffix(Modifier):
    """A suffix that every instruction of the row has; its bits are fixed ones of the row."""

    def __init__(self, text: str) -> None:
        self.name = text
        self.fields = ()
        self.text = text

    def render(self, columns: Columns) -> list[str]:
        return [self.text] * len(columns["address"])

    def matches(self, tokens: tuple[str, ...]) -> list[tuple[int, Values]]:
        parts = tuple(self.text.split(".")[1:])
        return [(len(parts), {})] if tokens[: len(parts)] == parts else []


class Hidden:
    """A field that the text does not show, written in braces as `{name=value}` where it is not the usual value.

    `when`: {field: the code at which the text hides it}; a brace then states that code too.
    """

    def __init__(
        self, field: str, label: str, *, usual: int, prefix: str = "", when: Mapping[str, int] | None = None
    ) -> None:
        self.field = field
        self.label = label
        self.usual = usual
        self.prefix = prefix
        self.when = dict(when or {})

    def render(self, columns: Columns) -> list[str]:
        """`name=value` for each instruction; empty where it is as usual or shown."""
        usual, head = self.usual, f"{self.label}={self.prefix}"
        out = ["" if v == usual else f"{head}{v}" for v in columns[self.field]]
        for name, code in self.when.items():
            out = [t if c == code else "" for t, c in zip(out, columns[name], strict=True)]
        return out

    def parse(self, text: str) -> Values | None:
        """Fields from the text after the equals sign."""
        try:
            return {**self.when, self.field: int(text.removeprefix(self.prefix), 0)}
        except ValueError:
            return None


def lru_text(compose: Callable[..., str]) -> Callable[..., str]:
    """`compose` with its answers kept: addresses repeat, and a dictionary is faster than formatting."""
    memo: dict[tuple[int, ...], str] = {}

    def text(*key: int) -> str:
        found = memo.get(key)
        if found is None:
            if len(memo) > 100_000:
                memo.clear()
            found = memo[key] = compose(*key)
        return found

    return text
