"""Kernels of tests/data/cuda by name, and a fixture that launches one with numpy arrays and scalars."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coppelius.container.cubin import Cubin, read_cubin
from coppelius.emulator.launch import Report
from coppelius.emulator.module import Module
from coppelius.program.listing import parse_listing

sys.path.insert(0, str(Path(__file__).resolve().parent))  # so that tests may `import absences`

CUBINS = Path(__file__).resolve().parents[1] / "data" / "cuda" / "cubins"
# how a cubin was compiled, and how it runs here: every way there is, all sanitizers on
WAYS = {f"{v}-{mode}": (v, mode) for v in ("O3", "O0", "spill", "newer") for mode in ("fast", "strict")}


@cache
def cubin_of(variant: str, source: str) -> Cubin:
    """One cubin of tests/data/cuda."""
    return read_cubin((CUBINS / variant / f"{source}.cubin").read_bytes())


def run_kernel(
    source: str, name: str, grid: Any, block: Any, *values: Any, variant: str = "O3", **options: Any
) -> Report:
    """Launches a kernel of a module loaded afresh; arrays are buffers in place, numpy scalars keep their size."""
    return Module(cubin_of(variant, source)).launch(name, grid, block, *values, **options)


@pytest.fixture(params=WAYS)
def run(request: pytest.FixtureRequest) -> Callable[..., Report]:
    """`run(source, kernel, grid, block, *values)`, of each way the kernel was compiled."""

    def one(source: str, name: str, grid: Any, block: Any, *values: Any, **options: Any) -> Report:
        variant, mode = WAYS[request.param]
        return run_kernel(source, name, grid, block, *values, variant=variant, mode=mode, **options)

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
def vendor_module() -> Callable[[str, str], Module]:
    """`vendor_module(variant, source)`: a compiled source, loaded."""
    return lambda variant, source: Module(cubin_of(variant, source))
