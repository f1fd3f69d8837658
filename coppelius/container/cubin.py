"""A cubin: one architecture's kernels with all that the driver is told about them.

Each function with a section of its own is a `Kernel` (a device function of a relocatable cubin too, with
`is_entry` False). Its facts lie in several places: the code in `.text.K`, records in `.nv.info.K` and, by symbol
number, in `.nv.info`; banks in `.nv.constantN.K`; static shared bytes are the size of `.nv.shared.K`. Banks without
a kernel's name belong to the module and are given to every kernel.

Numbers are bytes unless a field says otherwise. The text of a kernel is unrelocated, as it lies in the file.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from coppelius.container import elf
from coppelius.container.elf import ElfFile, Relocation, Section, Symbol
from coppelius.container.info import (
    Attribute,
    IndirectBranch,
    Parameter,
    read_attributes,
    read_indirect_branches,
    read_parameter,
)

WORD_BYTES = 16
UNKNOWN_STACK = 0xFFFFFFFF  # measured: what ptxas 13.5 writes for a recursion
PARAMETER_BASE = 0x160  # published for sm_86: where bank 0 holds the first parameter


@dataclass(frozen=True)
class ConstantBank:
    """What a constant bank holds at launch; bank 0 is all zero here, the driver fills it."""

    bank: int
    data: bytes
    relocations: tuple[Relocation, ...] = ()


@dataclass(frozen=True)
class Function:
    """A device function inside a kernel's section: `offset` and `size` of its code, `frame` in local memory."""

    name: str
    offset: int
    size: int
    frame: int


@dataclass(frozen=True)
class GlobalData:
    """Global memory that the module brings: `.nv.global.init` with contents, `.nv.global` all zero."""

    name: str
    size: int
    alignment: int
    data: bytes  # empty where the memory is zero
    symbols: tuple[Symbol, ...]
    relocations: tuple[Relocation, ...]


@dataclass(frozen=True)
class Kernel:
    """One kernel (or device function) of one architecture."""

    name: str
    architecture: int  # 86 for sm_86
    is_entry: bool
    code: bytes
    registers: int = 0  # general registers a thread
    shared: int = 0  # static shared bytes a block
    frame: int = 0  # local bytes of its own frame a thread
    stack: int | None = 0  # local bytes a thread with all it calls; for a recursion None (ptxas 13.5), 0 (before)
    barriers: int = 0  # named barriers used
    parameters: tuple[Parameter, ...] = ()  # by ordinal
    parameter_base: int = PARAMETER_BASE  # offset of the first parameter in bank 0
    parameter_bytes: int = 0
    constants: tuple[ConstantBank, ...] = ()
    exits: tuple[int, ...] = ()  # offsets of EXIT instructions
    indirect_branches: tuple[IndirectBranch, ...] = ()
    max_threads: tuple[int, int, int] | None = None  # __launch_bounds__
    required_threads: tuple[int, int, int] | None = None  # .reqntid
    functions: tuple[Function, ...] = ()
    relocations: tuple[Relocation, ...] = ()  # of the code
    attributes: tuple[Attribute, ...] = ()  # its own records, as they lie
    origin: str = ""

    @property
    def instructions(self) -> int:
        """128-bit words of code, padding included."""
        return len(self.code) // WORD_BYTES

    def constant(self, bank: int) -> ConstantBank | None:
        """The bank of this number, if the kernel has one."""
        return next((row for row in self.constants if row.bank == bank), None)


@dataclass(frozen=True)
class Cubin:
    """One cubin, read whole."""

    origin: str
    architecture: int
    abi: int  # 7 up to toolkit 12, 8 from 13 on
    is_linked: bool  # False for a relocatable cubin
    kernels: tuple[Kernel, ...]
    globals: tuple[GlobalData, ...]
    symbols: tuple[Symbol, ...]
    attributes: tuple[Attribute, ...]  # the module's records, `.nv.info`


def read_cubin(image: bytes, origin: str = "cubin") -> Cubin:
    """Reads a cubin; refuses, in one line, whatever is no whole, consistent one."""
    return _Reader(ElfFile(image, origin)).cubin()


class _Reader:
    """Collects facts by section and symbol number, then makes the kernels."""

    def __init__(self, file: ElfFile) -> None:
        self.file = file
        self.module = self._attributes(".nv.info")

    def _attributes(self, section: str) -> tuple[Attribute, ...]:
        found = self.file.by_name.get(section)
        return tuple(read_attributes(found.data, f"{self.file.origin}: {section}")) if found else ()

    @cached_property
    def by_symbol(self) -> dict[str, dict[int, int]]:
        """The module's records of a symbol number and a value: registers and stacks."""
        table: dict[str, dict[int, int]] = {}
        for record in self.module:
            if record.name in ("REGCOUNT", "FRAME_SIZE", "MIN_STACK_SIZE"):
                symbol, value = record.words(self.file.origin, at_least=2)[:2]
                table.setdefault(record.name, {})[symbol] = value
        return table

    def _by_symbol(self, name: str, symbol: Symbol | None) -> int:
        return self.by_symbol.get(name, {}).get(symbol.index, 0) if symbol else 0

    @cached_property
    def functions(self) -> dict[int, list[Symbol]]:
        """Function symbols by section number."""
        table: dict[int, list[Symbol]] = {}
        for symbol in self.file.symbols:
            if symbol.kind == elf.STT_FUNC and symbol.section:
                table.setdefault(symbol.section, []).append(symbol)
        return table

    @cached_property
    def module_banks(self) -> tuple[ConstantBank, ...]:
        """Banks that every kernel sees: `.nv.constant3` (__constant__), `.nv.constant4` (addresses), ..."""
        named = (section for section in self.file.sections if section.name.startswith(".nv.constant"))
        return tuple(self._bank(section) for section in named if section.name[12:].isdecimal())

    def _bank(self, section: Section) -> ConstantBank:
        digits = section.name[12:].partition(".")[0]
        if not digits.isdecimal() or len(digits) > 2:
            raise self.file.refuse(f"section {section.name} names no constant bank")
        return ConstantBank(int(digits), section.data, self.file.relocations.get(section.index, ()))

    @cached_property
    def kernel_banks(self) -> dict[str, list[ConstantBank]]:
        """A kernel's own banks by its name: 0 (parameters) and 2 (compiler's constants, jump tables)."""
        table: dict[str, list[ConstantBank]] = {}
        for section in self.file.sections:
            if section.name.startswith(".nv.constant") and "." in section.name[12:]:
                table.setdefault(section.name[12:].partition(".")[2], []).append(self._bank(section))
        return table

    def cubin(self) -> Cubin:
        file = self.file
        code = [s for s in file.sections if s.type == elf.SHT_PROGBITS and s.flags & elf.SHF_EXECINSTR and s.size]
        kernels = tuple(self._kernel(section) for section in code if section.name.startswith(".text."))
        linked = file.type == 2
        return Cubin(
            file.origin, file.architecture, file.abi, linked, kernels, self._globals(), file.symbols, self.module
        )

    def _globals(self) -> tuple[GlobalData, ...]:
        rows = []
        for section in self.file.sections:
            if section.name in (".nv.global", ".nv.global.init"):
                inside = (s for s in self.file.symbols if s.section == section.index and s.kind == elf.STT_OBJECT)
                symbols = tuple(sorted(inside, key=lambda symbol: symbol.value))
                relocations = self.file.relocations.get(section.index, ())
                row = (section.name, section.size, section.alignment, section.data, symbols, relocations)
                rows.append(GlobalData(*row))
        return tuple(rows)

    def _kernel(self, section: Section) -> Kernel:
        name = section.name.removeprefix(".text.")
        origin = f"{self.file.origin}: kernel {name}"
        if section.size % WORD_BYTES:
            raise self.file.refuse(f"kernel {name}: {section.size} bytes of code are no whole number of instructions")
        functions = self.functions.get(section.index, [])
        symbol = next((row for row in functions if row.name == name), None)
        own = self._attributes(f".nv.info.{name}")
        shared = self.file.by_name.get(f".nv.shared.{name}")
        facts = _facts(own, origin)
        return Kernel(
            name=name,
            architecture=self.file.architecture,
            is_entry=symbol is not None and symbol.is_entry,
            code=section.data,
            # sh_info holds the registers in [31:24] and the symbol below
            registers=self._by_symbol("REGCOUNT", symbol) or section.info >> 24,
            shared=shared.size if shared else 0,
            frame=self._by_symbol("FRAME_SIZE", symbol),
            stack=None if (stack := self._by_symbol("MIN_STACK_SIZE", symbol)) == UNKNOWN_STACK else stack,
            barriers=facts.barriers if facts.barriers is not None else section.flags >> 20 & 0x7F,
            parameters=facts.parameters,
            parameter_base=facts.parameter_base,
            parameter_bytes=facts.parameter_bytes,
            constants=tuple(sorted([*self.kernel_banks.get(name, []), *self.module_banks], key=lambda b: b.bank)),
            exits=facts.exits,
            indirect_branches=facts.indirect_branches,
            max_threads=facts.max_threads,
            required_threads=facts.required_threads,
            functions=tuple(
                Function(row.name, row.value, row.size, self._by_symbol("FRAME_SIZE", row))
                for row in functions
                if row is not symbol
            ),
            relocations=self.file.relocations.get(section.index, ()),
            attributes=own,
            origin=self.file.origin,
        )


@dataclass
class _Facts:
    """What a kernel's own records say."""

    parameters: tuple[Parameter, ...] = ()
    parameter_base: int = PARAMETER_BASE
    parameter_bytes: int = 0
    barriers: int | None = None
    exits: tuple[int, ...] = ()
    indirect_branches: tuple[IndirectBranch, ...] = ()
    max_threads: tuple[int, int, int] | None = None
    required_threads: tuple[int, int, int] | None = None


def _facts(records: Iterable[Attribute], origin: str) -> _Facts:
    facts, parameters = _Facts(), []
    for record in records:
        match record.name:
            case "KPARAM_INFO" | "KPARAM_INFO_V2":
                parameters.append(read_parameter(record, origin))
            case "PARAM_CBANK":
                packed = record.words(origin, at_least=2)[1]
                facts.parameter_base, facts.parameter_bytes = packed & 0xFFFF, packed >> 16
            case "NUM_BARRIERS":
                facts.barriers = record.value
            case "EXIT_INSTR_OFFSETS":
                facts.exits = record.words(origin)
            case "INDIRECT_BRANCH_TARGETS":
                facts.indirect_branches = tuple(read_indirect_branches(record, origin))
            case "MAX_THREADS":
                x, y, z = record.words(origin, at_least=3)[:3]
                facts.max_threads = (x, y, z)
            case "REQNTID":
                x, y, z = record.words(origin, at_least=3)[:3]
                facts.required_threads = (x, y, z)
    facts.parameters = tuple(sorted(parameters, key=lambda parameter: parameter.ordinal))
    return facts
