"""Writes a cubin: each image a kernel, as ptxas would describe it to the driver.

A kernel is its code (`.text.K`, padded with NOPs to 128 bytes), its constant bank 0 (`.nv.constant0.K`, zero; the
driver fills it), its shared bytes (`.nv.shared.K`, no contents), its records (`.nv.info.K`) and a debugger's frame.
From SM90 on the driver's own shared bytes have a section and symbols as well.

Left out: the Mercury sections, which from SM100 on hold the program once more in another form, for drivers that
translate it to a later target.  tests/container/test_structure.py explains every difference from what ptxas writes.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from coppelius.container import records
from coppelius.container.code_facts import CodeFacts, facts_of
from coppelius.container.elf_writer import (
    ALLOCATED,
    EXECUTABLE,
    EXECUTE,
    NOBITS,
    NOTE,
    PROGBITS,
    READ,
    REL,
    RELA,
    WEAK,
    WRITE,
    Section,
    Segment,
    Symbol,
    assemble,
    symbol_numbers,
)
from coppelius.container.image import ReleasedImage
from coppelius.isa.refusal import Refusal
from coppelius.isa.targets.layout import layout_of

NOP = bytes.fromhex("18790000000000000000000000c00f00")
_CODE_ALIGNMENT = 128
_INFO, _CALL_GRAPH, _RELOCATION_ACTION, _COMPATIBILITY = 0x70000000, 0x70000001, 0x7000000B, 0x70000086
_OF_KERNEL = 0x40  # section flag: `info` names the section that this one is for
_OBJECT, _FUNCTION, _SECTION = 1, 2, 3  # kinds of symbol
_GLOBAL = 1
_KERNEL, _ALIAS = 0x10, 0xA0  # a symbol's other bits
_R_CUDA_64 = 2
# measured: what the driver keeps of the reserved kilobyte, and where its symbols point
_RESERVED, _RESERVED_ALIAS = ".nv.reservedSmem.offset0", "__nv_reservedSMEM_offset_0_alias"
_RESERVED_LIMIT = ".nv.reservedSmem.cap"
_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_$")


class _Kernel(NamedTuple):
    name: str
    image: ReleasedImage
    facts: CodeFacts
    code: bytes  # padded

    @property
    def text(self) -> str:
        return f".text.{self.name}"


def symbol_name(identity: str) -> str:
    """An identity as C can call it: `layernorm-forward` is `layernorm_forward`."""
    name = "".join(c if c in _LETTERS else "_" for c in identity)
    return name if not name[:1].isdigit() else f"_{name}"


def write_cubin(images: Sequence[ReleasedImage]) -> bytes:
    """The cubin of these images of one target; refuses two that C cannot tell apart."""
    return _Writer(_kernels(images)).write()


def write_release(images: Sequence[ReleasedImage]) -> list[bytes]:
    """The cubin of all these images, then one of each."""
    kernels = _kernels(images)
    return [_Writer(part).write() for part in (kernels, *([kernel] for kernel in kernels))]


def _kernels(images: Sequence[ReleasedImage]) -> list[_Kernel]:
    targets = sorted({image.target for image in images})
    if len(targets) != 1:
        raise Refusal(f"a cubin is for one target; these images are for {', '.join(targets) or 'none'}")
    names = Counter(symbol_name(image.identity) for image in images)
    for image in images:
        if names[symbol_name(image.identity)] > 1:
            raise Refusal(f"{image.identity}: another image's symbol is {symbol_name(image.identity)}, too")
    facts = facts_of(targets[0], [image.code for image in images], [image.identity for image in images])
    return [
        _Kernel(symbol_name(i.identity), i, f, i.code + NOP * (-len(i.code) % _CODE_ALIGNMENT // len(NOP)))
        for i, f in zip(images, facts, strict=True)
    ]


class _Writer:
    """The sections and symbols of these kernels."""

    def __init__(self, kernels: Sequence[_Kernel]) -> None:
        self.kernels, target = kernels, kernels[0].image.target
        self.number = int(target.removeprefix("sm"))
        self.layout = layout_of(target)
        self.newer = self.number >= 90
        self.symbols = self._symbols()
        self.numbers = symbol_numbers(self.symbols)

    def write(self) -> bytes:
        texts, shared, constants = list(self._texts()), list(self._shared()), list(self._constants())
        kernels = [*texts, *shared, *constants] if self.newer else [*constants, *texts, *shared]
        if self.newer:
            segments = [Segment((), READ), Segment(texts, READ | EXECUTE), Segment(shared, READ | WRITE),
                        Segment(constants, READ)]  # fmt: skip
        else:
            rows = [Segment([*constants, *texts], READ | EXECUTE), Segment(shared, READ | WRITE)]
            segments = [*(row for row in rows if row.sections), Segment((), READ | EXECUTE)]
        # measured: what the last byte says is not known
        flags = 0x06000002 if self.number >= 100 else 0x06000004
        sections = [*self._module_sections(), *kernels]
        return assemble(flags | self.number << 8, sections, self.symbols, segments)

    def _symbols(self) -> list[Symbol]:
        rows = [_at_section(name) for name in (".note.nv.tkinfo", ".note.nv.cuinfo")]
        for kernel in self.kernels:
            has_static = kernel.image.shared_bytes and not kernel.image.dynamic_shared
            shared = (f".nv.shared.{kernel.name}",) if has_static else ()
            rows += [_at_section(name) for name in (kernel.text, *shared, f".nv.constant0.{kernel.name}")]
        later = () if self.newer else (".nv.rel.action",)
        rows += [_at_section(name) for name in (".debug_frame", ".nv.callgraph", *later)]
        if self.newer:
            kept = self._kept_of_the_reserved
            rows.append(Symbol(_RESERVED, WEAK << 4 | _OBJECT, 0, "", kept, 4))
            rows.append(Symbol(_RESERVED_ALIAS, WEAK << 4, _ALIAS, ".nv.shared.reserved.0", kept))
        if self.number >= 100 and any(kernel.image.shared_bytes for kernel in self.kernels):
            rows.append(Symbol(_RESERVED_LIMIT, WEAK << 4 | _OBJECT, 0, "", self.layout.reserved, 4))
        rows += [Symbol(k.name, _GLOBAL << 4 | _FUNCTION, _KERNEL, k.text, 0, len(k.code)) for k in self.kernels]
        return rows

    @property
    def _kept_of_the_reserved(self) -> int:
        return 64 if self.number >= 100 else 0

    def _module_sections(self) -> list[Section]:
        frame, places = records.frames([len(kernel.code) for kernel in self.kernels])
        registers = [(self.numbers[kernel.name], kernel.image.registers) for kernel in self.kernels]
        info = records.module_records(registers)
        rows = [
            Section(".debug_frame", PROGBITS, frame),
            Section(".note.nv.tkinfo", NOTE, records.tool_note(), 0x2000000, alignment=4),
            Section(
                ".note.nv.cuinfo", NOTE, records.target_note(self.number), 0x1000000, ".note.nv.tkinfo", alignment=4
            ),
            Section(".nv.info", _INFO, info, link=".symtab", alignment=4),
        ]
        if self.newer:
            rows[2].flags, rows[2].info = 0x1000040, ".nv.compat"
            rows.append(Section(".nv.compat", _COMPATIBILITY, records.COMPATIBILITY[self.number], alignment=4))
        rows += self._records()
        rows.append(Section(".nv.callgraph", _CALL_GRAPH, records.CALL_GRAPH, link=".symtab", alignment=4, entry=8))
        if not self.newer:
            action = records.RELOCATION_ACTION
            rows.append(Section(".nv.rel.action", _RELOCATION_ACTION, action, alignment=8, entry=8))
        rows.append(self._relocated_frames(places))
        return rows

    def _relocated_frames(self, places: Sequence[int]) -> Section:
        """Each frame's address of its kernel."""
        kind, entry, name = (RELA, 24, ".rela.debug_frame") if self.newer else (REL, 16, ".rel.debug_frame")
        rows = [
            struct.pack("<QQ", at, self.numbers[kernel.name] << 32 | _R_CUDA_64)
            for at, kernel in zip(places, self.kernels, strict=True)
        ]
        data = b"".join(row + bytes(entry - len(row)) for row in rows)
        return Section(name, kind, data, _OF_KERNEL, ".symtab", ".debug_frame", 8, entry)

    def _records(self) -> Iterable[Section]:
        for k in self.kernels:
            bank = self.numbers[f".nv.constant0.{k.name}"]
            own = records.kernel_records(k.image, k.facts, bank, self.layout.parameters)
            yield Section(f".nv.info.{k.name}", _INFO, own, _OF_KERNEL, ".symtab", k.text, 4)

    def _texts(self) -> Iterable[Section]:
        for k in self.kernels:
            number = self.numbers[k.name]
            # older drivers read the registers from the section, newer ones from the records alone
            info = number if self.newer else k.image.registers << 24 | number
            yield Section(k.text, PROGBITS, k.code, ALLOCATED | EXECUTABLE, ".symtab", info, _CODE_ALIGNMENT)

    def _constants(self) -> Iterable[Section]:
        for k in self.kernels:
            bank = bytes(self.layout.parameters + k.image.parameter_bytes)
            yield Section(f".nv.constant0.{k.name}", PROGBITS, bank, ALLOCATED | _OF_KERNEL, info=k.text, alignment=4)

    def _shared(self) -> Iterable[Section]:
        """Of dynamic shared memory only the reserved bytes: the rest is asked for at the launch."""
        flags = ALLOCATED | 1  # writable
        for k in self.kernels:
            if k.image.shared_bytes:
                size = self.layout.reserved if k.image.dynamic_shared else k.image.shared_bytes
                name = f".nv.shared.{k.name}"
                yield Section(name, NOBITS, flags=flags | _OF_KERNEL, info=k.text, alignment=16, size=size)
        if self.newer:
            yield Section(".nv.shared.reserved.0", NOBITS, flags=flags, size=self._kept_of_the_reserved)


def _at_section(name: str) -> Symbol:
    return Symbol(name, _SECTION, 0, name)
