"""Sections, symbols and segments laid out as one ELF file for the CUDA driver.

Contents come first in the sections' order, then the section table, then the segments, which name what lies together.
Sections and symbols refer to each other by name until all are known; numbers are given here.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

NULL, PROGBITS, SYMTAB, STRTAB, RELA, NOTE, NOBITS, REL = 0, 1, 2, 3, 4, 7, 8, 9
ALLOCATED, EXECUTABLE = 2, 4  # section flags
LOCAL, WEAK = 0, 2  # bindings
READ, WRITE, EXECUTE = 4, 2, 1  # a segment's access
_LOADED, _TABLE = 1, 6  # kinds of segment
_SECTION, _SYMBOL, _SEGMENT = struct.Struct("<IIQQQQIIQQ"), struct.Struct("<IBBHQQ"), struct.Struct("<IIQQQQQQ")
_HEADER = struct.Struct("<HHIQQQIHHHHHH")
_IDENTITY = b"\x7fELF\x02\x01\x01\x41\x08" + bytes(7)  # measured: OS/ABI 0x41, ABI version 8


class Symbol(NamedTuple):
    """`info` is binding and kind; `section` is empty for a symbol that lies nowhere."""

    name: str
    info: int
    other: int
    section: str
    value: int = 0
    size: int = 0


@dataclass
class Section:
    """`link` and `info` may name a section; `size` is of one without contents."""

    name: str
    kind: int
    data: bytes = b""
    flags: int = 0
    link: str = ""
    info: int | str = 0
    alignment: int = 1
    entry: int = 0
    size: int | None = None
    offset: int = 0

    @property
    def length(self) -> int:
        return len(self.data) if self.size is None else self.size


class Segment(NamedTuple):
    """Sections that lie together, and how memory holds them; none: the table of segments itself."""

    sections: Sequence[Section]
    access: int


def symbol_numbers(symbols: Sequence[Symbol]) -> dict[str, int]:
    """Each symbol's number; local ones are first, as ELF wants."""
    return {symbol.name: number for number, symbol in enumerate(_ordered(symbols), 1)}


def assemble(flags: int, sections: Sequence[Section], symbols: Sequence[Symbol], segments: Sequence[Segment]) -> bytes:
    """The file; `sections` without the null one and the three that hold names and symbols, which come first."""
    ordered = _ordered(symbols)
    strings = _Strings()
    names = _Strings()
    symtab = Section(".symtab", SYMTAB, link=".strtab", alignment=8, entry=_SYMBOL.size)
    symtab.info = 1 + sum(symbol.info >> 4 == LOCAL for symbol in ordered)
    tables = [Section(".shstrtab", STRTAB), Section(".strtab", STRTAB), symtab]
    rows = [Section("", NULL, alignment=0), *tables, *sections]
    number = {section.name: n for n, section in enumerate(rows)}
    symtab.data = bytes(_SYMBOL.size) + b"".join(
        _SYMBOL.pack(strings.place(s.name), s.info, s.other, number[s.section], s.value, s.size) for s in ordered
    )
    places = [names.place(section.name) for section in rows]
    tables[0].data, tables[1].data = bytes(names.data), bytes(strings.data)
    out = bytearray(_HEADER.size + len(_IDENTITY))
    for section in rows[1:]:
        out += bytes(-len(out) % max(section.alignment, 1))
        section.offset = len(out)
        out += section.data
    out += bytes(-len(out) % 64)
    start = len(out)
    for section, place in zip(rows, places, strict=True):
        info = number[section.info] if isinstance(section.info, str) else section.info
        link = number[section.link] if section.link else 0
        out += _SECTION.pack(
            place, section.kind, section.flags, 0, section.offset, section.length, link, info, section.alignment,
            section.entry,
        )  # fmt: skip
    at, count = len(out), len(segments) + 1
    out += _segments(segments, at)
    out[: len(_IDENTITY)] = _IDENTITY
    _HEADER.pack_into(
        out, len(_IDENTITY), 2, 190, 1, 0, at, start, flags, 64, _SEGMENT.size, count, _SECTION.size, len(rows), 1
    )
    return bytes(out)


class _Strings:
    """A table of strings, each ended by a zero; the empty one is at 0."""

    def __init__(self) -> None:
        self.data = bytearray(1)

    def place(self, text: str) -> int:
        """Where the text lies, now that it does."""
        if not text:
            return 0
        at = len(self.data)
        self.data += text.encode() + b"\0"
        return at


def _ordered(symbols: Sequence[Symbol]) -> list[Symbol]:
    return sorted(symbols, key=lambda symbol: symbol.info >> 4 != LOCAL)


def _segments(segments: Sequence[Segment], at: int) -> bytes:
    """The table, which its first row describes."""
    size = _SEGMENT.size * (len(segments) + 1)
    access = next(segment.access for segment in segments if not segment.sections)
    out = _SEGMENT.pack(_TABLE, access, at, 0, 0, size, size, 8)
    for segment in segments:
        start, stored, memory = at, size, size
        if segment.sections:
            start, last = segment.sections[0].offset, segment.sections[-1]
            stored = last.offset + len(last.data) - start
            memory = stored
            if segment.access & WRITE:
                stored, memory = 0, sum(section.length for section in segment.sections)
        out += _SEGMENT.pack(_LOADED, segment.access, start, 0, 0, stored, memory, 8)
    return out
