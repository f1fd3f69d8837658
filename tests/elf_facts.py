"""A cubin as flat facts, so that two can be compared line by line: everything but where bytes lie in the file.

Numbers of sections and symbols become names, since they follow from an order that is a fact of its own.  What is left
out: offsets in the file, and the three tables of names and symbols, which are read here as what they mean.
"""

from __future__ import annotations

import struct

from coppelius.container.elf import ElfFile, Section
from coppelius.container.info import read_attributes

TABLES = (".shstrtab", ".strtab", ".symtab")
BY_SYMBOL = ("REGCOUNT", "FRAME_SIZE", "MIN_STACK_SIZE", "PARAM_CBANK")  # their first word is a symbol's number
SECTION_HEADER, SEGMENT = struct.Struct("<IIQQQQIIQQ"), struct.Struct("<IIQQQQQQ")


def facts_of_file(image: bytes) -> dict[str, str]:
    """What -> how it is there."""
    file = ElfFile(image, "cubin")
    facts = {
        "header: identity": image[:16].hex(),
        "header: type, machine, version, entry": str(struct.unpack_from("<HHIQ", image, 16)),
        "header: flags": hex(file.flags),
        "header: sizes of header, segment, section": str(struct.unpack_from("<HH2xH", image, 52)),
        "header: section of names": str(struct.unpack_from("<H", image, 62)[0]),
        "sections": " ".join(section.name for section in file.sections if section.name),
        "symbols": " ".join(symbol.name or "(none)" for symbol in file.symbols[1:]),
        "segments": " | ".join(_segments(image, file)),
    }
    for section in file.sections[1:]:
        facts |= _section(image, file, section)
    for symbol in file.symbols[1:]:
        where = file.sections[symbol.section].name if symbol.section < len(file.sections) else hex(symbol.section)
        facts[f"symbol {symbol.name or '(none)'}"] = (
            f"kind {symbol.kind}, binding {symbol.binding}, other {symbol.other:#x}, in {where or 'none'}, "
            f"value {symbol.value}, {symbol.size} bytes"
        )
    return facts


def _section(image: bytes, file: ElfFile, section: Section) -> dict[str, str]:
    start = f"section {section.name}"
    entry = SECTION_HEADER.unpack_from(image, struct.unpack_from("<Q", image, 40)[0] + 64 * section.index)[9]
    facts = {
        f"{start}: head": f"type {section.type:#x}, flags {section.flags:#x}, link {_name(file, section.link)}, "
        f"alignment {section.alignment}, entries of {entry}",
        f"{start}: info": _info(file, section),
    }
    if section.name in TABLES:
        return facts
    facts[f"{start}: bytes"] = str(section.size)
    if section.type in (0x70000000, 0x70000083):
        return facts | _records(file, section)
    facts[f"{start}: contents"] = _relocations(file, section) or section.data.hex()
    return facts


def _name(file: ElfFile, number: int) -> str:
    return file.sections[number].name or "none"


def _info(file: ElfFile, section: Section) -> str:
    if section.name == ".symtab":
        return "the first symbol that is not local" if section.info == _first_global(file) else str(section.info)
    if section.name.startswith(".text."):
        symbol = file.symbols[section.info & 0xFFFFFF]
        return f"{section.info >> 24} registers, symbol {symbol.name}"
    return _name(file, section.info) if section.info < len(file.sections) else hex(section.info)


def _first_global(file: ElfFile) -> int:
    return next(symbol.index for symbol in file.symbols if symbol.binding)


def _records(file: ElfFile, section: Section) -> dict[str, str]:
    rows = list(read_attributes(section.data, "cubin"))
    facts, order = {}, []
    seen: dict[str, int] = {}
    for row in rows:
        data, name = row.data.hex(), row.name
        if name in BY_SYMBOL and len(data) >= 8:
            symbol = file.symbols[struct.unpack_from("<I", row.data)[0]].name
            data = f"{symbol} {data[8:]}"
            name = f"{name} of {symbol}" if row.name != "PARAM_CBANK" else name
        order.append(name)
        seen[name] = seen.get(name, 0) + 1
        key = name if seen[name] == 1 else f"{name} {seen[name]}"
        facts[f"record {section.name} {key}"] = f"format {row.format}, value {row.value}, {data}"
    return facts | {f"records {section.name}": " ".join(order)}


def _relocations(file: ElfFile, section: Section) -> str:
    if section.type not in (4, 9):
        return ""
    size, rows = (24, "<QQq") if section.type == 4 else (16, "<QQ")
    found = [struct.unpack_from(rows, section.data, at) for at in range(0, len(section.data), size)]
    return str([(row[0], file.symbols[row[1] >> 32].name, row[1] & 0xFFFFFFFF, *row[2:]) for row in found])


def _segments(image: bytes, file: ElfFile) -> list[str]:
    """Kind, access, and which sections lie inside (or the table itself), whether stored, bytes in memory."""
    table, count = struct.unpack_from("<Q", image, 32)[0], struct.unpack_from("<H", image, 56)[0]
    headers = struct.unpack_from("<Q", image, 40)[0]
    out = []
    for number in range(count):
        kind, access, start, *_, stored, memory, alignment = SEGMENT.unpack_from(image, table + 56 * number)
        inside, last = [], start
        for section in file.sections:
            row = SECTION_HEADER.unpack_from(image, headers + 64 * section.index)
            held = row[1] != 8 and row[5] and start <= row[4] and row[4] + row[5] <= start + stored
            if section.flags & 2 and (held or (row[1] == 8 and access & 2)):
                inside.append(section)
                last = row[4] + (row[5] if held else 0)
        bytes_inside = sum(s.size for s in inside) if access & 2 else last - start
        size = "their bytes" if memory == bytes_inside else f"{memory} bytes"
        what = "the table" if start == table else f"[{' '.join(s.name for s in inside)}] {size}"
        out.append(f"kind {kind}, access {access}, {what}, {'stored' if stored else 'not stored'}, by {alignment}")
    return out
