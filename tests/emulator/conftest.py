"""Kernels of tests/data/cuda by name, and a fixture that launches one with numpy arrays and scalars."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coppelius.container.cubin import Kernel
from coppelius.container.reader import read_kernels
from coppelius.emulator.launch import Report, launch
from coppelius.emulator.memory import Memory
from coppelius.emulator.parameters import pack_naturally
from coppelius.program.listing import parse_listing

CUBINS = Path(__file__).resolve().parents[1] / "data" / "cuda" / "cubins"
VARIANTS = ("O3", "O0", "spill", "newer")


@cache
def kernels_of(variant: str, source: str) -> dict[str, Kernel]:
    """The kernels of one cubin, by name."""
    return {k.name: k for k in read_kernels(CUBINS / variant / f"{source}.cubin")}


def run_kernel(
    source: str, name: str, grid: Any, block: Any, *values: Any, variant: str = "O3", shared: int = 0, **options: Any
) -> Report:
    """Launches a kernel; arrays are buffers in place, numpy scalars keep their size."""
    kernel = kernels_of(variant, source)[name]
    memory = options.pop("memory", None) or Memory()
    return launch(
        kernel.code,
        grid=_three(grid),
        block=_three(block),
        parameters=pack_naturally(values, memory),
        memory=memory,
        shared_bytes=kernel.shared + shared,
        constants={c.bank: c.data for c in kernel.constants if c.bank != 0},
        kernel=name,
        **options,
    )


def _three(size: Any) -> tuple[int, int, int]:
    given = (size,) if isinstance(size, int) else tuple(size)
    return (*given, *(1,) * (3 - len(given)))  # type: ignore[return-value]


@pytest.fixture(params=VARIANTS)
def run(request: pytest.FixtureRequest) -> Callable[..., Report]:
    """`run(source, kernel, grid, block, *values)`, of each way the kernel was compiled."""

    def one(source: str, name: str, grid: Any, block: Any, *values: Any, **options: Any) -> Report:
        return run_kernel(source, name, grid, block, *values, variant=request.param, **options)

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
