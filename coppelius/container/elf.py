"""A CUDA ELF file: sections, symbols, relocations, every offset checked before it is followed.

pyelftools reads header and section table. Their counts and extents are checked first (a wrong count makes
it loop, a wrong size makes it allocate), and contents are sliced here, because it would decompress or
interpret them. Symbols are read here too: it drops bit 4 of st_other, which marks a kernel.

Whatever is wrong with a file is a `Refusal` of one line that names the file and the thing.
"""

import io
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from elftools.elf.elffile import ELFFile

from coppelius.container.names import RELOCATIONS
from coppelius.isa.refusal import Refusal

MAGIC = b"\x7fELF"
EM_CUDA = 190
HEADER_BYTES, SECTION_BYTES, SYMBOL_BYTES = 64, 64, 24  # published: ELF64
SHT_NULL, SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_NOBITS, SHT_REL = 0, 1, 2, 3, 4, 8, 9
SHF_EXECINSTR = 4
STT_OBJECT, STT_FUNC, STT_SECTION = 1, 2, 3
STO_CUDA_ENTRY = 0x10
SHN_RESERVED = 0xFF00  # section numbers from here on name no section


@dataclass(frozen=True)
class Section:
    """One section; `data` is empty for one that takes no bytes in the file (`size` still counts)."""

    index: int
    name: str
    type: int
    flags: int
    size: int  # bytes in memory
    link: int
    info: int
    alignment: int  # bytes
    data: bytes


@dataclass(frozen=True)
class Symbol:
    """One symbol; `value` and `size` in bytes, from the start of its section."""

    index: int
    name: str
    kind: int  # STT_...
    binding: int  # 0 local, 1 global, 2 weak
    other: int
    section: int  # its section's number, 0 for an undefined one
    value: int
    size: int

    @property
    def is_entry(self) -> bool:
        """Whether it is a kernel."""
        return self.kind == STT_FUNC and bool(self.other & STO_CUDA_ENTRY)


@dataclass(frozen=True)
class Relocation:
    """A place the loader patches: `offset` bytes into its section, by the address of `symbol` + `addend`."""

    offset: int
    symbol: str
    type: int
    addend: int

    @property
    def name(self) -> str:
        """R_CUDA_..., or the number where nothing names it."""
        return RELOCATIONS.get(self.type, str(self.type))


class ElfFile:
    """One CUDA ELF image held in memory; `origin` is what its refusals name."""

    def __init__(self, image: bytes, origin: str) -> None:
        self.image, self.origin = image, origin
        _check_header(image, origin)
        self.abi = image[8]
        self.type, self.flags = struct.unpack_from("<H", image, 16)[0], struct.unpack_from("<I", image, 48)[0]
        self.sections = self._read_sections()
        self.symbols = self._read_symbols()

    @property
    def architecture(self) -> int:
        """86 for sm_86: flags bits [15:8] from ABI 8 on, [7:0] before (virtual architecture in [23:16])."""
        number: int = self.flags >> 8 & 0xFF if self.abi >= 8 else self.flags & 0xFF
        return number

    @cached_property
    def by_name(self) -> dict[str, Section]:
        """Sections by name; of several with one name the first."""
        return {section.name: section for section in reversed(self.sections)}

    def refuse(self, what: str) -> Refusal:
        """A refusal that names this file."""
        return Refusal(f"{self.origin}: {what}")

    def _read_sections(self) -> tuple[Section, ...]:
        try:
            headers = [(section.name, section.header) for section in ELFFile(io.BytesIO(self.image)).iter_sections()]
        except Exception as error:  # pyelftools raises whatever its parsers and asserts raise
            raise self.refuse(f"section table does not read ({type(error).__name__}: {error})") from None
        sections = []
        for index, ((name, header), (kind, start, size)) in enumerate(zip(headers, _extents(self.image), strict=True)):
            if not name.isprintable():
                raise self.refuse(f"section {index} has an unprintable name: corrupt")
            data = b"" if kind in (SHT_NULL, SHT_NOBITS) else self.image[start : start + size]
            row = (index, name, kind, header["sh_flags"], size, header["sh_link"], header["sh_info"])
            sections.append(Section(*row, header["sh_addralign"], data))
        return tuple(sections)

    def section(self, index: int, user: str) -> Section:
        """The section of this number, which `user` refers to."""
        if index >= len(self.sections):
            raise self.refuse(f"{user} refers to section {index} of {len(self.sections)}")
        return self.sections[index]

    def _read_symbols(self) -> tuple[Symbol, ...]:
        table = next((section for section in self.sections if section.type == SHT_SYMTAB), None)
        if table is None:
            return ()
        if table.size % SYMBOL_BYTES:
            raise self.refuse(f"symbol table of {table.size} bytes holds no whole number of symbols")
        names = self.section(table.link, "the symbol table").data
        symbols = []
        for index, fields in enumerate(struct.iter_unpack("<IBBHQQ", table.data)):
            at, info, other, section, value, size = fields
            if section >= SHN_RESERVED:
                section = 0
            self.section(section, f"symbol {index}")
            symbols.append(Symbol(index, self._string(names, at), info & 15, info >> 4, other, section, value, size))
        return tuple(symbols)

    def _string(self, table: bytes, at: int) -> str:
        end = table.find(b"\0", at)
        if end < 0:
            raise self.refuse(f"symbol name at byte {at} lies outside its table of {len(table)} bytes")
        name = table[at:end].decode("utf-8", "replace")
        if not name.isprintable():
            raise self.refuse(f"symbol name at byte {at} is unprintable: corrupt")
        return name

    def symbol(self, index: int, user: str) -> Symbol:
        """The symbol of this number, which `user` refers to."""
        if index >= len(self.symbols):
            raise self.refuse(f"{user} refers to symbol {index} of {len(self.symbols)}")
        return self.symbols[index]

    @cached_property
    def relocations(self) -> dict[int, tuple[Relocation, ...]]:
        """Relocations by the number of the section that they patch, in order of offset."""
        found: dict[int, list[Relocation]] = {}
        for section in self.sections:
            if section.type in (SHT_REL, SHT_RELA):
                self.section(section.info, section.name)
                found.setdefault(section.info, []).extend(self._read_relocations(section))
        return {index: tuple(sorted(rows, key=lambda row: row.offset)) for index, rows in found.items()}

    def _read_relocations(self, section: Section) -> Iterator[Relocation]:
        layout = "<QQq" if section.type == SHT_RELA else "<QQ"
        if section.size % struct.calcsize(layout):
            raise self.refuse(f"{section.name}: {section.size} bytes hold no whole number of relocations")
        target = self.sections[section.info]
        for offset, info, *addend in struct.iter_unpack(layout, section.data):
            if offset >= target.size:
                raise self.refuse(
                    f"{section.name}: offset {offset:#x} lies outside {target.name} ({target.size:#x} bytes)"
                )
            symbol = self.symbol(info >> 32, section.name)
            name = symbol.name or self.sections[symbol.section].name
            yield Relocation(offset, name, info & 0xFFFFFFFF, addend[0] if addend else 0)


def _check_header(image: bytes, origin: str) -> None:
    """Refuses what is no whole CUDA ELF; afterwards pyelftools can neither loop nor read outside."""

    def refuse(what: str) -> Refusal:
        return Refusal(f"{origin}: {what}")

    if not image:
        raise refuse("empty file")
    if image[:4] != MAGIC:
        raise refuse(f"no ELF file (it begins with {image[:4].hex(' ')})")
    if len(image) < HEADER_BYTES:
        raise refuse(f"{len(image)} bytes, an ELF header alone has {HEADER_BYTES}: truncated?")
    if image[4] != 2 or image[5] != 1:
        raise refuse("no 64-bit little-endian ELF file")
    kind, machine = struct.unpack_from("<HH", image, 16)
    if machine != EM_CUDA:
        raise refuse(f"ELF machine {machine} is not CUDA ({EM_CUDA}); a fatbin inside it is read by the fatbin reader")
    if kind not in (1, 2):
        raise refuse(f"ELF type {kind}: only relocatable (1) and executable (2) cubins are read")
    table, size, count, names = (*struct.unpack_from("<Q", image, 40), *struct.unpack_from("<HHH", image, 58))
    if size != SECTION_BYTES or not count:
        raise refuse(f"section table of {count} entries of {size} bytes: no cubin has that")
    if table + size * count > len(image):
        raise refuse(f"section table ends at byte {table + size * count} of {len(image)}: truncated?")
    if names >= count:
        raise refuse(f"section names in section {names} of {count}")
    for index, (kind, start, length) in enumerate(_extents(image)):
        if kind not in (SHT_NULL, SHT_NOBITS) and start + length > len(image):
            raise refuse(f"section {index} ends at byte {start + length} of {len(image)}: truncated?")


def _extents(image: bytes) -> Iterator[tuple[int, int, int]]:
    """(type, offset, bytes) of each section, read without pyelftools, which follows what it reads."""
    table, count = struct.unpack_from("<Q", image, 40)[0], struct.unpack_from("<H", image, 60)[0]
    for at in range(table, table + SECTION_BYTES * count, SECTION_BYTES):
        yield struct.unpack_from("<4xI16xQQ", image, at)
