"""Writes a cubin: each image a kernel, as ptxas would describe it to the driver.

A kernel is its code (`.text.K`, padded with NOPs to 128 bytes), its constant bank 0 (`.nv.constant0.K`, zero; the
driver fills it), its shared bytes (`.nv.shared.K`, no contents) and its records (`.nv.info.K`).  What the records say
of the code (exits, barriers, instructions that need all threads of a warp) is read from the code itself.

Left out, as no driver needs it to run a kernel: frames for debuggers, and from SM100 on the Mercury sections, which
hold the program once more in another form.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from coppelius.container.image import ReleasedImage
from coppelius.container.names import ATTRIBUTES
from coppelius.isa.latency import stem
from coppelius.isa.refusal import Refusal
from coppelius.isa.table import table_of
from coppelius.isa.targets.layout import layout_of
from coppelius.isa.values import Named
from coppelius.program.program import Program

NUMBERS = {name: number for number, name in ATTRIBUTES.items()}
API_VERSION = 0x82  # measured: toolkit 13.0
NOP = bytes.fromhex("18790000000000000000000000c00f00")
_ALIGNMENT = 128
_NULL, _PROGBITS, _SYMTAB, _STRTAB, _NOTE, _NOBITS = 0, 1, 2, 3, 7, 8
_INFO, _CALLGRAPH, _RELOCATION_ACTION, _COMPAT = 0x70000000, 0x70000001, 0x7000000B, 0x70000086
_COOPERATIVE = frozenset(("SHFL", "VOTE", "MATCH", "WARPSYNC"))  # published: ptxas lists where whole warps meet
_MAX_NAME = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_$")


@dataclass
class _Section:
    name: str
    kind: int
    data: bytes = b""
    flags: int = 0
    link: str = ""
    info: int | str = 0  # a number, or the section it belongs to
    alignment: int = 1
    entry: int = 0
    size: int | None = None  # of a section without contents
    offset: int = 0

    @property
    def length(self) -> int:
        return len(self.data) if self.size is None else self.size


@dataclass(frozen=True)
class CodeFacts:
    """What the records say of the code: byte offsets, and how many named barriers it uses."""

    exits: tuple[int, ...]
    cooperative: tuple[int, ...]
    barriers: int
    reads_block_z: bool


@dataclass
class _Symbols:
    """Local symbols first, as ELF wants; numbers are known once all are added."""

    strings: bytearray = field(default_factory=lambda: bytearray(1))
    rows: list[tuple[str, int, int, str, int]] = field(default_factory=list)

    def add(self, name: str, info: int, other: int, section: str, size: int = 0) -> None:
        self.rows.append((name, info, other, section, size))

    def number(self, name: str) -> int:
        """The index of a symbol."""
        return 1 + next(i for i, row in enumerate(self.rows) if row[0] == name)

    def encode(self, sections: Sequence[str]) -> bytes:
        out = bytearray(24)
        for name, info, other, section, size in self.rows:
            at = len(self.strings)
            self.strings += name.encode() + b"\0"
            out += struct.pack("<IBBHQQ", at, info, other, sections.index(section), 0, size)
        return bytes(out)


def symbol_name(identity: str) -> str:
    """An identity as C can call it: `layernorm-forward` is `layernorm_forward`."""
    name = "".join(c if c in _MAX_NAME else "_" for c in identity)
    return name if not name[:1].isdigit() else f"_{name}"


def facts_of(image: ReleasedImage) -> CodeFacts:
    """Read from the code with the target's table."""
    program = Program.decode(image.code, table_of(image.target))
    exits, cooperative, barriers, z = [], [], 0, False
    for ordinal, row in enumerate(program):
        kind = stem(row.encoding)
        if kind == "EXIT":
            exits.append(16 * ordinal)
        if kind in _COOPERATIVE:
            cooperative.append(16 * ordinal)
        if kind == "BAR":
            barriers = max(barriers, row.get("barrier", 15) + 1)
        z |= any(isinstance(s, Named) and s.names[row[s.name]] == "SR_CTAID.Z" for s in row.encoding.operands)
    return CodeFacts(tuple(exits), tuple(cooperative), barriers, z)


def record(name: str, value: int | bytes, *, width: int = 0) -> bytes:
    """One record: no value, `width` bytes of value, or bytes."""
    number = NUMBERS[name]
    if isinstance(value, bytes):
        return struct.pack("<BBH", 4, number, len(value)) + value
    return struct.pack("<BBH", 1 + width, number, value)


def write_cubin(images: Sequence[ReleasedImage]) -> bytes:
    """The cubin of these images of one target; refuses two that C cannot tell apart."""
    targets = {image.target for image in images}
    if len(targets) != 1:
        raise Refusal(f"a cubin is for one target; these images are for {', '.join(sorted(targets)) or 'none'}")
    names = [symbol_name(image.identity) for image in images]
    for image, name in zip(images, names, strict=True):
        if names.count(name) > 1:
            raise Refusal(f"{image.identity}: another image's symbol is {name}, too")
    return _Writer(images, names).write()


class _Writer:
    """Collects sections and symbols, then lays them out."""

    def __init__(self, images: Sequence[ReleasedImage], names: Sequence[str]) -> None:
        self.images, self.names = images, names
        self.target = images[0].target
        self.number = int(self.target.removeprefix("sm"))
        self.layout = layout_of(self.target)
        self.newer = self.number >= 90
        self.symbols = _Symbols()
        self.sections: list[_Section] = [_Section("", _NULL, alignment=0)]

    def write(self) -> bytes:
        self._name_symbols()
        for name in (".shstrtab", ".strtab"):
            self.sections.append(_Section(name, _STRTAB))
        first_global = 1 + sum(info >> 4 == 0 for _, info, *_ in self.symbols.rows)
        self.sections.append(_Section(".symtab", _SYMTAB, link=".strtab", info=first_global, alignment=8, entry=24))
        self._module_sections()
        texts, shared = self._texts(), self._shared()
        constants = self._constants()
        self.sections += [*texts, *shared, *constants] if self.newer else [*constants, *texts, *shared]
        return self._lay_out()

    def _name_symbols(self) -> None:
        for name, image in zip(self.names, self.images, strict=True):
            for prefix in (".text.", *((".nv.shared.",) if image.shared_bytes else ()), ".nv.constant0."):
                self.symbols.add(prefix + name, 3, 0, prefix + name)
        for name, image in zip(self.names, self.images, strict=True):
            self.symbols.add(name, 0x12, 0x10, f".text.{name}", len(_padded(image.code)))

    def _module_sections(self) -> None:
        if self.newer:
            # cuobjdump 13.5 refuses a file for these targets without the two (measured)
            self.sections.append(_Section(".debug_frame", _PROGBITS, _FRAMES))
            self.sections.append(_Section(".note.nv.tkinfo", _NOTE, _tool_note(), 0x2000000, alignment=4))
        note = struct.pack("<III12sHHHH", 12, 8, 1000, b"NVIDIA Corp", 2, self.number, API_VERSION, 0)
        flags, about = (0x1000040, ".nv.compat") if self.newer else (0x1000000, 0)
        self.sections.append(_Section(".note.nv.cuinfo", _NOTE, note, flags=flags, info=about, alignment=4))
        info = b""
        for name, image in zip(self.names, self.images, strict=True):
            number = self.symbols.number(name)
            info += record("REGCOUNT", struct.pack("<II", number, image.registers))
            info += record("FRAME_SIZE", struct.pack("<II", number, 0))
            info += record("MIN_STACK_SIZE", struct.pack("<II", number, 0))
        self.sections.append(_Section(".nv.info", _INFO, info, link=".symtab", alignment=4))
        if self.newer:
            self.sections.append(_Section(".nv.compat", _COMPAT, _COMPATIBILITY, alignment=4))
        for name, image in zip(self.names, self.images, strict=True):
            own = self._records(name, image)
            row = _Section(f".nv.info.{name}", _INFO, own, 0x40, ".symtab", f".text.{name}", 4)
            self.sections.append(row)
        graph = b"".join(struct.pack("<Ii", 0, -n) for n in range(1, 5))
        self.sections.append(_Section(".nv.callgraph", _CALLGRAPH, graph, link=".symtab", alignment=4, entry=8))
        if not self.newer:
            action = bytes.fromhex("73000000000000000000001125000536")
            self.sections.append(_Section(".nv.rel.action", _RELOCATION_ACTION, action, alignment=8, entry=8))

    def _records(self, name: str, image: ReleasedImage) -> bytes:
        """The kernel's own records, in the order in which ptxas writes them for this target."""
        facts = facts_of(image)
        size = image.parameter_bytes
        bank = struct.pack("<IHH", self.symbols.number(f".nv.constant0.{name}"), self.layout.parameters, size)
        parameters = b"".join(
            record("KPARAM_INFO", struct.pack("<IHHI", 0, n, p.offset, self._parameter_word(p.size, p.pointer)))
            for n, p in reversed(list(enumerate(image.parameters)))
        )
        placed = [record("PARAM_CBANK", bank), record("CBANK_PARAM_SIZE", size, width=2)]
        code = [
            record("MAXREG_COUNT", 255, width=2),
            record("NUM_BARRIERS", facts.barriers, width=1) if facts.barriers else b"",
            record("MERCURY_ISA_VERSION", 0x101 if self.newer else 0, width=2),
            *_cooperative(facts),
            record("VRC_CTA_INIT_COUNT", 0, width=1) if self.number >= 100 else b"",
            record("EXIT_INSTR_OFFSETS", struct.pack(f"<{len(facts.exits)}I", *facts.exits)),
            record("CTAIDZ_USED", 0) if facts.reads_block_z else b"",
            record("MAX_THREADS", struct.pack("<III", image.block_x, 1, 1)),
        ]
        first = record("CUDA_API_VERSION", struct.pack("<I", API_VERSION))
        if not self.newer:
            return b"".join([first, record("SW2861232_WAR", 0), *placed, parameters, *code])
        war = record("SW_WAR", struct.pack("<I", 0 if self.number >= 100 else 8))
        mask = record("SPARSE_MMA_MASK", 0, width=2)
        return b"".join([first, parameters, mask, *code, placed[1], placed[0], war])

    def _parameter_word(self, size: int, pointer: bool) -> int:
        """Size, constant bank, and from SM100 on that a pointer is one (measured)."""
        return size << 18 | 0x1F << 12 | (0x500 if pointer and self.number >= 100 else 0)

    def _texts(self) -> list[_Section]:
        rows = []
        for name, image in zip(self.names, self.images, strict=True):
            number = self.symbols.number(name)
            # older drivers read the registers from the section, newer ones from the records alone
            info = number if self.newer else image.registers << 24 | number
            code = _padded(image.code)
            rows.append(_Section(f".text.{name}", _PROGBITS, code, 6, ".symtab", info, _ALIGNMENT))
        return rows

    def _constants(self) -> list[_Section]:
        return [
            _Section(f".nv.constant0.{name}", _PROGBITS, bytes(self.layout.parameters + image.parameter_bytes), 0x42,
                     info=f".text.{name}", alignment=4)
            for name, image in zip(self.names, self.images, strict=True)
        ]  # fmt: skip

    def _shared(self) -> list[_Section]:
        rows = [
            _Section(f".nv.shared.{name}", _NOBITS, b"", 0x43, info=f".text.{name}", alignment=16,
                     size=self.layout.reserved if image.dynamic_shared else image.shared_bytes)
            for name, image in zip(self.names, self.images, strict=True) if image.shared_bytes
        ]  # fmt: skip
        if self.newer and rows:
            reserved = 0x40 if self.number >= 100 else 0
            rows.insert(0, _Section(".nv.shared.reserved.0", _NOBITS, b"", 3, size=reserved))
        return rows

    def _lay_out(self) -> bytes:
        names = [section.name for section in self.sections]
        table = self.symbols.encode(names)
        strings = bytearray(1)
        places = []
        for name in names:
            places.append(len(strings) if name else 0)
            strings += name.encode() + b"\0" if name else b""
        for name, data in ((".shstrtab", strings), (".strtab", self.symbols.strings), (".symtab", table)):
            self.sections[names.index(name)].data = bytes(data)
        out = bytearray(64)
        for section in self.sections[1:]:
            out += bytes(-len(out) % max(section.alignment, 1))
            section.offset = len(out)
            out += section.data
        out += bytes(-len(out) % 64)
        headers = len(out)
        for section, place in zip(self.sections, places, strict=True):
            info = names.index(section.info) if isinstance(section.info, str) else section.info
            link = names.index(section.link) if section.link else 0
            row = (place, section.kind, section.flags, 0, section.offset, section.length, link, info)
            out += struct.pack("<IIQQQQIIQQ", *row, section.alignment, section.entry)
        segments = self._segments(len(out))
        out += b"".join(segments)
        flags = 0x06000002 | self.number << 8 if self.number >= 100 else 0x06000004 | self.number << 8
        ident = b"\x7fELF\x02\x01\x01\x41\x08" + bytes(7)
        fields = (2, 190, 1, 0, headers + 64 * len(names), headers, flags, 64, 56, len(segments), 64, len(names), 1)
        out[:64] = ident + struct.pack("<HHIQQQIHHHHHH", *fields)
        return bytes(out)

    def _segments(self, at: int) -> list[bytes]:
        """Where the driver finds code and constants, shared bytes, and this table; from SM90 on one segment each."""
        stored = [s for s in self.sections if s.flags & 2 and s.kind == _PROGBITS]
        shared = [s for s in self.sections if s.flags & 2 and s.kind == _NOBITS]
        code = [s for s in stored if s.flags & 4]
        groups = [(stored, 5), (shared, 6)]
        if self.newer:
            groups = [(code, 5), (shared, 6), ([s for s in stored if s not in code], 4)]
        rows = [_segment(chosen, access) for chosen, access in groups if chosen]
        size = 56 * (len(rows) + 2)
        access = 4 if self.newer else 5
        own = (1, access, at, size, size)
        rows = [own, *rows] if self.newer else [*rows, own]
        return [
            struct.pack("<IIQQQQQQ", kind, flags, start, 0, 0, length, memory, 8)
            for kind, flags, start, length, memory in [(6, access, at, size, size), *rows]
        ]


def _segment(sections: Sequence[_Section], access: int) -> tuple[int, int, int, int, int]:
    """(kind, access, offset, bytes in the file, bytes in memory) of sections that lie together."""
    start, last = sections[0].offset, sections[-1]
    stored = last.offset + len(last.data) - start
    return 1, access, start, stored if access != 6 else 0, stored if access != 6 else sum(s.length for s in sections)


# measured: what every frame of a kernel without a stack begins with; no frame follows
_FRAMES = bytes.fromhex(
    "ffffffff2400000000000000ffffffffffffffff0300047cffffffff0f0c818080280008ff8180280881808028000000"
)
# measured: the same bytes in every cubin for SM90 and SM121 of toolkit 13.0
_COMPATIBILITY = bytes.fromhex("020900000202010002050500030701010203000002060100040b08000000000000000000")


def _tool_note() -> bytes:
    """Who wrote the file: a version, then where each of five texts begins."""
    texts = [b"", b"coppelius", b"release 13.0", b"", b""]
    strings = b"".join(text + b"\0" for text in texts)
    starts = [sum(len(t) + 1 for t in texts[:n]) for n in range(5)]
    content = struct.pack("<6I", 2, *starts) + strings
    content += bytes(-len(content) % 4)
    return struct.pack("<III12s", 12, len(content), 2000, b"NVIDIA Corp") + content


def _cooperative(facts: CodeFacts) -> list[bytes]:
    """Where threads of a warp meet, and that each mask is no register's."""
    if not facts.cooperative:
        return []
    count = len(facts.cooperative)
    return [
        record("COOP_GROUP_MASK_REGIDS", struct.pack("<I", 0xFFFFFFFF) * count),
        record("COOP_GROUP_INSTR_OFFSETS", struct.pack(f"<{count}I", *facts.cooperative)),
    ]


def _padded(code: bytes) -> bytes:
    return code + NOP * (-len(code) % _ALIGNMENT // len(NOP))
