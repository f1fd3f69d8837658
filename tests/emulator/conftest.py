"""Kernels of tests/data/cuda by name, and a fixture that launches one with numpy arrays and scalars."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coppelius.container.cubin import Cubin, Kernel, read_cubin
from coppelius.emulator.launch import Report, launch
from coppelius.emulator.memory import Memory
from coppelius.emulator.parameters import pack_naturally
from coppelius.program.listing import parse_listing

CUBINS = Path(__file__).resolve().parents[1] / "data" / "cuda" / "cubins"
# how a cubin was compiled, and how it runs here: once watched by initcheck, once with its schedule honoured
WAYS = {"O3": {"checks": ["initcheck"]}, "O0": {}, "spill": {}, "newer": {"mode": "strict"}}


@cache
def cubin_of(variant: str, source: str) -> Cubin:
    """One cubin of tests/data/cuda."""
    return read_cubin((CUBINS / variant / f"{source}.cubin").read_bytes())


def linked_banks(cubin: Cubin, kernel: Kernel, memory: Memory) -> dict[int, bytes]:
    """The kernel's constant banks but bank 0, with the addresses of the module's globals, which get their places."""
    places = {}
    for data in cubin.globals:
        array = np.frombuffer(data.data or bytes(data.size), np.uint8).copy()
        base = memory.place(array, data.name)
        places.update({symbol.name: base + symbol.value for symbol in data.symbols})
    banks = {}
    for bank in kernel.constants:
        patched = bytearray(bank.data)
        for r in bank.relocations:
            struct.pack_into("<Q", patched, r.offset, places[r.symbol] + r.addend)
        banks[bank.bank] = bytes(patched)
    banks.pop(0)
    return banks


def run_kernel(
    source: str, name: str, grid: Any, block: Any, *values: Any, variant: str = "O3", shared: int = 0, **options: Any
) -> Report:
    """Launches a kernel; arrays are buffers in place, numpy scalars keep their size."""
    cubin, memory = cubin_of(variant, source), Memory()
    kernel = next(k for k in cubin.kernels if k.name == name)
    return launch(
        kernel.code,
        grid=_three(grid),
        block=_three(block),
        parameters=pack_naturally(values, memory),
        memory=memory,
        shared_bytes=kernel.shared + shared,
        constants=linked_banks(cubin, kernel, memory),
        kernel=name,
        **options,
    )


def _three(size: Any) -> tuple[int, int, int]:
    given = (size,) if isinstance(size, int) else tuple(size)
    return (*given, *(1,) * (3 - len(given)))  # type: ignore[return-value]


@pytest.fixture(params=WAYS)
def run(request: pytest.FixtureRequest) -> Callable[..., Report]:
    """`run(source, kernel, grid, block, *values)`, of each way the kernel was compiled."""

    def one(source: str, name: str, grid: Any, block: Any, *values: Any, **options: Any) -> Report:
        way = WAYS[request.param]
        return run_kernel(source, name, grid, block, *values, variant=request.param, **way, **options)

    return one


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(86)


def assemble(*instructions: str) -> bytes:
    """Words of these instructions, one after another at address 0, with a control word of no consequence."""
    control = "[B------:R-:W-:-:S01]"
    return parse_listing("\n".join([".target sm86", *(f"{control} {text}" for text in instructions)])).encode()


@pytest.fixture
def assembled() -> Callable[..., bytes]:
    return assemble


@pytest.fixture
def vendor_kernel() -> Callable[[str, str, str], tuple[Kernel, Callable[[Memory], dict[int, bytes]]]]:
    """`vendor_kernel(variant, source, name)`: a compiled kernel, and what makes its constant banks."""

    def find(variant: str, source: str, name: str) -> tuple[Kernel, Callable[[Memory], dict[int, bytes]]]:
        cubin = cubin_of(variant, source)
        kernel = next(k for k in cubin.kernels if k.name == name)
        return kernel, lambda memory: linked_banks(cubin, kernel, memory)

    return find
