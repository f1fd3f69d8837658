"""A module as the driver loads it: code, constant banks and globals at addresses, and what refers to them patched.

Code addresses count from 0: the device functions first, in order, each at a multiple of 128, then the kernel
that is launched (where there are no functions of their own, a kernel lies at 0).  Globals lie in memory once
for the module, so that a launch sees what the one before it stored.  Bank 0 is filled at launch; bank 2 is the
kernel's own (literals, jump tables as offsets into it), banks 3 (`__constant__`) and 4 (addresses) are shared.

    module = load(cubin)
    module.launch("saxpy", 3, 128, out, x, np.float32(2), 300)

Each value becomes a parameter of the size that the cubin tells: an array a pointer (8 bytes, to the array
itself), an int or a float a scalar of 4 or 8 bytes, a numpy scalar or `bytes` as it is.  A grid or block is a
number or up to three.  Left out: system calls (printf, malloc, assert), textures, launches from a kernel.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from coppelius.container.cubin import PARAMETER_BASE, Cubin, Kernel, read_cubin
from coppelius.container.elf import Relocation
from coppelius.container.info import Parameter
from coppelius.emulator.faults import Triple
from coppelius.emulator.launch import Report, launch
from coppelius.emulator.memory import Memory
from coppelius.emulator.parameters import Value, pointer_to
from coppelius.isa.refusal import Refusal

CODE_ALIGNMENT = 128  # published: of a .text section
DEFAULT_STACK = 1024  # published: cudaLimitStackSize, what a recursion gets that does not say
SHARED_ALIGNMENT = 16  # measured: dynamic shared memory follows the static at a multiple of it

# relocation -> first bit of the field, its width, and how far the value is shifted right before
# fmt: off
_FIELDS = {
    "R_CUDA_32":            (0, 32, 0),  "R_CUDA_64":            (0, 64, 0),
    "R_CUDA_G32":           (0, 32, 0),  "R_CUDA_G64":           (0, 64, 0),
    "R_CUDA_32_LO":         (0, 32, 0),  "R_CUDA_32_HI":         (0, 32, 32),
    "R_CUDA_FUNC_DESC_32":  (0, 32, 0),  "R_CUDA_FUNC_DESC_64":  (0, 64, 0),
    "R_CUDA_ABS32_32":      (32, 32, 0), "R_CUDA_ABS32_LO_32":   (32, 32, 0),
    "R_CUDA_ABS32_HI_32":   (32, 32, 32),
    "R_CUDA_FUNC_DESC32_32":    (32, 32, 0),
    "R_CUDA_FUNC_DESC32_LO_32": (32, 32, 0),
    "R_CUDA_FUNC_DESC32_HI_32": (32, 32, 32),
    "R_CUDA_ABS47_34":      (34, 47, 2),  # CALL.ABS counts in units of four bytes
    **{f"R_CUDA_{kind}8_{shift}": (0, 8, shift) for kind in ("", "G", "FUNC_DESC_") for shift in range(0, 64, 8)},
}
# fmt: on


class Module:
    """A loaded cubin; `memory` holds its globals and every array passed to it."""

    def __init__(self, cubin: Cubin, memory: Memory | None = None) -> None:
        self.cubin = cubin
        self.memory = memory or Memory()
        self.kernels = {k.name: k for k in cubin.kernels if k.is_entry}
        self._functions = [k for k in cubin.kernels if not k.is_entry]
        self._code: dict[str, bytes] = {}
        self._places: dict[str, int] = {}
        at = 0
        for function in self._functions:
            self._places[function.name] = at
            at += _padded(len(function.code))
        self.entry = at
        self.globals: dict[str, npt.NDArray[np.uint8]] = {}
        self._load_globals()

    def _load_globals(self) -> None:
        """Gives globals their places, then patches the pointers among them."""
        loaded = []
        for data in self.cubin.globals:
            array = np.frombuffer(data.data or bytes(data.size), np.uint8).copy()
            base = self.memory.place(array, data.name)
            loaded.append((data, array))
            self._places[data.name] = base
            for symbol in data.symbols:
                self._places[symbol.name] = base + symbol.value
                self.globals[symbol.name] = array[symbol.value : symbol.value + symbol.size]
        for data, array in loaded:
            array[:] = np.frombuffer(_patched(array.tobytes(), data.relocations, self._address), np.uint8)

    def _address(self, name: str, kernel: Kernel | None = None) -> int:
        """The address of a global, a function or the kernel itself."""
        if kernel is not None:
            inside = next((f.offset for f in kernel.functions if f.name == name), 0 if name == kernel.name else None)
            if inside is None and name == f".text.{kernel.name}":
                inside = 0
            if inside is not None:
                return self._places.get(name, self.entry) + inside
        found = self._places.get(name.removeprefix(".text."))
        if found is None:
            where = "" if kernel is None else f"{kernel.name}: "
            raise Refusal(f"{self.cubin.origin}: {where}{name} lies in no section of this module; link it first")
        return found

    def kernel(self, name: str) -> Kernel:
        """The kernel of that name."""
        found = self.kernels.get(name)
        if found is None:
            raise Refusal(f"{self.cubin.origin}: no kernel {name!r}; it holds {', '.join(self.kernels) or 'none'}")
        return found

    def code(self, kernel: Kernel) -> bytes:
        """The words of the device functions and of this kernel, patched; the kernel begins at `entry`."""
        found = self._code.get(kernel.name)
        if found is None:
            parts = [
                self._relocated(function).ljust(_padded(len(function.code)), b"\0") for function in self._functions
            ]
            found = self._code[kernel.name] = b"".join([*map(_filled, parts), self._relocated(kernel)])
        return found

    def _relocated(self, kernel: Kernel) -> bytes:
        return _patched(kernel.code, kernel.relocations, lambda name: self._address(name, kernel))

    def constants(self, kernel: Kernel) -> dict[int, bytes]:
        """Constant banks but bank 0."""
        rows = (bank for bank in kernel.constants if bank.bank)
        return {b.bank: _patched(b.data, b.relocations, lambda name: self._address(name, kernel)) for b in rows}

    def local_bytes(self, kernel: Kernel, stack: int = DEFAULT_STACK) -> int:
        """Local memory of a thread: what the kernel says; of a recursion, and of calls by address, `stack` more."""
        said = max([kernel.frame, kernel.stack or 0, *(f.frame for f in kernel.functions)])
        unsure = kernel.stack is None or self._functions or kernel.functions
        return said + stack if unsure else said

    def launch(
        self,
        name: str,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        *values: Value,
        shared: int = 0,
        stack: int = DEFAULT_STACK,
        **options: Any,
    ) -> Report:
        """Launches a kernel; `shared`: bytes of dynamic shared memory; options as of `launch.launch`."""
        kernel = self.kernel(name)
        static = -(-kernel.shared // SHARED_ALIGNMENT) * SHARED_ALIGNMENT if shared else kernel.shared
        return launch(
            self.code(kernel),
            entry=self.entry,
            sections={at: symbol for symbol, at in self._places.items() if at < self.entry and self._is_code(symbol)},
            grid=three(grid),
            block=_allowed(three(block), kernel),
            # measured: kernels with more than 4 KiB of parameters find them further on
            parameters=bytes(kernel.parameter_base - PARAMETER_BASE) + packed(kernel, values, self.memory),
            memory=self.memory,
            shared_bytes=static + shared,
            local_bytes=self.local_bytes(kernel, stack),
            constants=self.constants(kernel),
            kernel=name,
            **options,
        )

    def _is_code(self, symbol: str) -> bool:
        return any(function.name == symbol for function in self._functions)


def load(cubin: Cubin | bytes | Path | str, memory: Memory | None = None) -> Module:
    """A module from a cubin: read, its bytes, or a file that is one."""
    if isinstance(cubin, Path | str):
        cubin = read_cubin(Path(cubin).read_bytes(), Path(cubin).name)
    return Module(read_cubin(cubin) if isinstance(cubin, bytes) else cubin, memory)


def three(size: int | Sequence[int]) -> Triple:
    """A grid or block of up to three numbers, the rest 1."""
    given = (size,) if isinstance(size, int) else tuple(size)
    if not 1 <= len(given) <= 3:
        raise Refusal(f"{given}: a grid or block has one to three numbers")
    x, y, z = (*given, *(1,) * (3 - len(given)))
    return x, y, z


def packed(kernel: Kernel, values: Sequence[Value], memory: Memory) -> bytes:
    """The parameter bytes of a kernel, each value in its place and of its size."""
    rows = kernel.parameters
    if len(rows) != len(values):
        raise Refusal(f"{kernel.name}: {len(values)} values for {len(rows)} parameters")
    out = bytearray(kernel.parameter_bytes)
    for row, value in zip(rows, values, strict=True):
        out[row.offset : row.offset + row.size] = _one(kernel, row, value, memory)
    return bytes(out)


def _one(kernel: Kernel, row: Parameter, value: Value, memory: Memory) -> bytes:
    if isinstance(value, np.ndarray):
        data = struct.pack("<Q", pointer_to(value, memory))
    elif isinstance(value, bytes):
        data = value
    elif isinstance(value, np.generic):
        data = value.tobytes()
    elif isinstance(value, float):
        data = struct.pack("<f" if row.size == 4 else "<d", value)
    else:
        fits = -(1 << 8 * row.size - 1) <= value < 1 << 8 * row.size
        data = (value % (1 << 8 * row.size)).to_bytes(row.size, "little") if fits else b""
    if len(data) != row.size:
        given = (
            f"an array's address has {len(data)}" if isinstance(value, np.ndarray) else f"{value!r} is not of that size"
        )
        raise Refusal(f"{kernel.name}: parameter {row.ordinal} has {row.size} bytes; {given}")
    return data


def _allowed(block: Triple, kernel: Kernel) -> Triple:
    """The block, unless the kernel was compiled for another size."""
    threads = block[0] * block[1] * block[2]
    if kernel.required_threads and block != kernel.required_threads:
        raise Refusal(f"{kernel.name}: compiled for blocks of {kernel.required_threads}, not of {block}")
    if kernel.max_threads:
        most = kernel.max_threads[0] * kernel.max_threads[1] * kernel.max_threads[2]
        if threads > most:
            raise Refusal(f"{kernel.name}: compiled for at most {most} threads a block, not {threads}")
    return block


def _patched(data: bytes, relocations: Iterable[Relocation], address: Callable[[str], int]) -> bytes:
    """The bytes with each relocation's field set to the address it names plus its addend."""
    out = bytearray(data)
    for r in relocations:
        field = _FIELDS.get(r.name)
        if field is None:
            raise Refusal(f"relocation {r.name} of {r.symbol} at byte {r.offset:#x}: the emulator's loader lacks it")
        first, width, shift = field
        size = min(16 if first else -(-width // 8), len(out) - r.offset)
        word = int.from_bytes(out[r.offset : r.offset + size], "little")
        mask = ((1 << width) - 1) << first
        value = (address(r.symbol) + r.addend) >> shift << first & mask
        out[r.offset : r.offset + size] = (word & ~mask | value).to_bytes(size, "little")
    return bytes(out)


_NOP = bytes.fromhex("18790000000000000000000000e20f00")


def _filled(code: bytes) -> bytes:
    """The code with NOPs where padding is all zero, which is no instruction."""
    words = [code[at : at + 16] for at in range(0, len(code), 16)]
    return b"".join(word if any(word) else _NOP for word in words)


def _padded(size: int) -> int:
    return -(-size // CODE_ALIGNMENT) * CODE_ALIGNMENT
