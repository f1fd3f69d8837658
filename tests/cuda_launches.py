"""The launches that tests/emulator makes of compiled kernels, taken down so that other judges can repeat them.

A test is called with a `run` that notes source, kernel, grid, block and a copy of every value, then launches as the
test expects.  Tests that ask for other fixtures than `run`, `random` and their own parameters are left out.
"""

from __future__ import annotations

import importlib.util
import inspect
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from coppelius.container.cubin import Cubin
from coppelius.container.reader import read_cubin
from coppelius.emulator.faults import Fault
from coppelius.emulator.module import Module

TESTS = Path(__file__).resolve().parent
CUBINS = TESTS / "data" / "cuda" / "cubins"
_FIXTURES = frozenset(("run", "random"))


@dataclass(frozen=True)
class Launch:
    """One launch: what a test passed, before the kernel wrote anything."""

    source: str
    kernel: str
    grid: Any
    block: Any
    values: tuple[Any, ...]
    options: Mapping[str, Any]

    def after(self, cubin: Cubin, code: bytes | None = None, mode: str = "strict") -> list[Any]:
        """The arrays afterwards; `code`: other words than the kernel's own.  A finding is a `Fault`."""
        if code is not None:
            kernels = [replace(k, code=code) if k.name == self.kernel else k for k in cubin.kernels]
            cubin = replace(cubin, kernels=type(cubin.kernels)(kernels))
        values = [v.copy() if isinstance(v, np.ndarray) else v for v in self.values]
        options = {name: value for name, value in self.options.items() if name != "mode"}
        Module(cubin).launch(self.kernel, self.grid, self.block, *values, mode=mode, **options)
        return [v for v in values if isinstance(v, np.ndarray)]


@cache
def cubin_of(variant: str, source: str) -> Cubin:
    """One cubin of tests/data/cuda."""
    return read_cubin((CUBINS / variant / f"{source}.cubin").read_bytes())


@cache
def launches(of: str = "*") -> Mapping[tuple[str, str], list[Launch]]:
    """(source, kernel) -> its launches in tests that pass; `of`: which of the files tests/emulator/test_cuda_*.py."""
    found: dict[tuple[str, str], list[Launch]] = {}
    for path in sorted((TESTS / "emulator").glob(f"test_cuda_{of}.py")):
        for test, given in _calls(path):
            noted: list[Launch] = []
            try:
                test(**given, **({"run": _noting(noted)} if "run" in inspect.signature(test).parameters else {}))
            except (Fault, AssertionError):
                continue
            for launch in noted:
                found.setdefault((launch.source, launch.kernel), []).append(launch)
    return found


def _noting(noted: list[Launch]) -> Any:
    def run(source: str, kernel: str, grid: Any, block: Any, *values: Any, **options: Any) -> Any:
        before = tuple(v.copy() if isinstance(v, np.ndarray) else v for v in values)
        module = Module(cubin_of("O3", source))
        report = module.launch(kernel, grid, block, *values, mode="fast", **options)
        noted.append(Launch(source, kernel, grid, block, before, options))
        return report

    return run


def _calls(path: Path) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Every test of a file with each of its sets of parameters."""
    spec = importlib.util.spec_from_file_location(f"noted_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, test in inspect.getmembers(module, inspect.isfunction):
        wanted = set(inspect.signature(test).parameters)
        if not name.startswith("test_") or "run" not in wanted:
            continue
        marks = [m for m in getattr(test, "pytestmark", []) if m.name == "parametrize"]
        sets = [_sets(mark) for mark in marks]
        if wanted - _FIXTURES - {n for options in sets for one in options for n in one}:
            continue
        for chosen in itertools.product(*sets):
            given = {n: value for one in chosen for n, value in one.items()}
            if "random" in wanted:
                given["random"] = np.random.default_rng(86)
            yield test, given


def _sets(mark: Any) -> list[dict[str, Any]]:
    names = mark.args[0].replace(" ", "").split(",") if isinstance(mark.args[0], str) else list(mark.args[0])
    rows = [getattr(row, "values", row) if hasattr(row, "marks") else row for row in mark.args[1]]
    return [dict(zip(names, row if len(names) > 1 else [row], strict=True)) for row in rows]
