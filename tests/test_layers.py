"""Who may import whom, as one literal table held against every import in the sources.

A layer is a package, or a module that has rules of its own.  Every layer may import itself and, unless
its row says otherwise, `coppelius.isa` and the standard library.  Imports count wherever they stand: in a
function, under TYPE_CHECKING, or by a literal name given to importlib.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
OURS = ("coppelius", "tasks", "cache")
ISA = "coppelius.isa"
EVERYTHING = ("coppelius", "tasks", "cache")


class Layer(NamedTuple):
    """What a layer may import besides itself: our modules by prefix, and packages of others."""

    ours: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    isa: tuple[str, ...] = (ISA,)


def _c(*names: str) -> tuple[str, ...]:
    return tuple(f"coppelius.{name}" for name in names)


# The longest name that matches a module is its layer.
# fmt: off
LAYERS = {
    "coppelius":                     Layer(isa=()),  # the package's docstring
    "coppelius.isa":                 Layer(others=("numpy",)),
    "coppelius.program":             Layer(others=("numpy",)),
    "coppelius.builder":             Layer(_c("program")),
    # tiles and shapes as data; what kernels and the catalogue share
    "coppelius.products":            Layer(isa=_c("isa.refusal")),
    "coppelius.kernels":             Layer(_c("builder"), isa=_c("isa.operands", "isa.refusal")),
    "coppelius.schedule":            Layer(_c("program"), ("numpy", "networkx")),
    # guard and compaction ask the checkers; nothing else of the scheduler knows them
    "coppelius.schedule.late_reads": Layer(_c("program", "schedule", "check"), ("numpy",)),
    "coppelius.schedule.compaction": Layer(_c("program", "schedule", "check"), ("numpy",)),
    "coppelius.check":               Layer(_c("program"), ("numpy",)),
    "coppelius.lowering":            Layer(_c("program", "schedule", "check"), ("numpy",)),
    "coppelius.emulator":            Layer(_c("program"), ("numpy",)),
    # what the driver does with a cubin; everything else of the emulator runs bare words
    "coppelius.emulator.module":     Layer(_c("program", "emulator", "container"), ("numpy",)),
    "coppelius.reference":           Layer((), ("numpy",), isa=()),
    "coppelius.container":           Layer(_c("program"), ("numpy", "elftools", "lz4", "zstandard")),
    "coppelius.device":              Layer((), ("numpy", "cuda")),
    "coppelius.arena":               Layer(),
    "coppelius.model":               Layer(isa=()),
    "coppelius.standard_output":     Layer(isa=()),
    # the tiled products alone know their geometry
    "coppelius.kernels.tiled":       Layer(_c("builder", "products.tile"), isa=_c("isa.operands", "isa.refusal")),
    "coppelius.catalog":             Layer(_c("arena.grid", "model", "products")),
    # runs one kernel's generator: the builder, then the scheduler; kernels are found by name
    "coppelius.emit":                Layer(_c("builder", "program", "schedule"), ("numpy",)),
    "coppelius.cli":                 Layer(EVERYTHING, ("click", "rich", "networkx", "numpy", "doit", "pygraphviz")),
    "coppelius.__main__":            Layer(_c("cli")),
    "cache":                         Layer((), ("fsspec",)),
    "tasks":                         Layer(EVERYTHING, ("doit", "networkx", "rich")),
}
# fmt: on
# Whatever a row above says: the command line is outermost.
MAY_IMPORT_CLI = ("coppelius.cli", "coppelius.__main__")


def modules() -> Iterator[tuple[str, Path]]:
    """Every module of ours by its dotted name."""
    for package in OURS:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imports(module: str, source: str, is_package: bool = False) -> Iterator[tuple[int, str]]:
    """Line and full name of everything a source imports."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                folders = module.split(".") if is_package else module.split(".")[:-1]
                folders = folders[: len(folders) - (node.level - 1)]
                base = ".".join([*folders, base] if base else folders)
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in ("import_module", "__import__") and isinstance(node.args[0].value, str):
                yield node.lineno, node.args[0].value


def is_under(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(prefix + ".")


def layer_of(module: str) -> str:
    """The longest row that holds the module."""
    return max((name for name in LAYERS if is_under(module, name)), key=len)


def objections(module: str, source: str, is_package: bool = False) -> list[str]:
    """What this source imports against the table."""
    name = layer_of(module)
    layer = LAYERS[name]
    found = []
    for line, imported in imports(module, source, is_package):
        top = imported.partition(".")[0]
        if top not in OURS:
            allowed = top in sys.stdlib_module_names or top in layer.others
        elif is_under(imported, "coppelius.cli") and module != "coppelius.cli":
            allowed = any(is_under(module, outer) for outer in MAY_IMPORT_CLI)
        else:
            prefixes = (name, *layer.isa, *layer.ours) if name != "coppelius" else layer.isa
            allowed = imported == "coppelius" or any(is_under(imported, prefix) for prefix in prefixes)
        if not allowed:
            found.append(f"{module}:{line} imports {imported}, which {name} may not")
    return found


def test_every_import_is_allowed() -> None:
    found = [
        objection
        for module, path in modules()
        for objection in objections(module, path.read_text(encoding="utf-8"), path.name == "__init__.py")
    ]
    assert not found, "\n" + "\n".join(found)


def test_the_sources_are_found() -> None:
    names = {module for module, _ in modules()}
    assert {"coppelius", "coppelius.isa.refusal", "coppelius.catalog", "tasks", "cache"} <= names


# One violation of each rule, as a source that must be caught.
# fmt: off
CAUGHT = [
    ("coppelius.isa.word",            "import coppelius.program"),
    ("coppelius.isa.word",            "from coppelius import program"),
    ("coppelius.isa.word",            "from ..program import listing"),
    ("coppelius.isa.word",            "import networkx"),
    ("coppelius.kernels.add",         "import numpy"),
    ("coppelius.kernels.add",         "from coppelius.isa import table"),
    ("coppelius.kernels.add",         "from coppelius.schedule.passes import schedule"),
    ("coppelius.emulator.machine",    "def f():\n    from coppelius.schedule import stalls"),
    ("coppelius.emulator.machine",    "from coppelius.check.scoreboard import check"),
    ("coppelius.emulator.machine",    "import coppelius.reference.half"),
    ("coppelius.emulator.launch",     "from coppelius.container.cubin import Cubin"),
    ("coppelius.check.verdict",       "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n"
                                      "    from coppelius.schedule import stalls"),
    ("coppelius.check.verdict",       "import importlib\nimportlib.import_module('coppelius.schedule.stalls')"),
    ("coppelius.schedule.stalls",     "from coppelius.check import scoreboard"),
    ("coppelius.reference.half",      "from coppelius.isa.refusal import Refusal"),
    ("coppelius.reference.half",      "import scipy"),
    ("coppelius.arena.release",       "from coppelius.cli.output import print_table"),
    ("tasks.emit",                    "from coppelius.cli import main"),
    ("coppelius.arena.release",       "import tasks.graph"),
    ("coppelius.arena.release",       "from cache import atomic"),
    ("coppelius.catalog",             "import coppelius.kernels.add"),
    ("cache.files",                   "import tasks"),
    ("coppelius",                     "from coppelius.isa import word"),
]
ALLOWED = [
    ("coppelius.isa.word",            "from . import bits\nimport numpy as np\nimport re"),
    ("coppelius.kernels.add",         "from coppelius.builder import kernel\nfrom coppelius.isa.operands import R"),
    ("coppelius.schedule.late_reads", "from coppelius.check import scoreboard"),
    ("coppelius.cli.show",            "import tasks.graph, click\nfrom coppelius.program import listing"),
    ("coppelius.__main__",            "from coppelius.cli.main import main"),
    ("coppelius.reference.half",      "import numpy"),
    ("tasks.emit",                    "from coppelius import emit\nfrom cache.files import digest"),
]
# fmt: on


@pytest.mark.parametrize(("module", "source"), CAUGHT)
def test_a_violation_is_caught(module: str, source: str) -> None:
    assert len(objections(module, source)) == 1


@pytest.mark.parametrize(("module", "source"), ALLOWED)
def test_what_the_table_allows_is_not_caught(module: str, source: str) -> None:
    assert objections(module, source) == []


def test_relative_imports_of_a_package_are_its_own() -> None:
    assert list(imports("coppelius.isa", "from . import word", is_package=True)) == [(1, "coppelius.isa.word")]
    assert list(imports("coppelius.isa.word", "from . import bits")) == [(1, "coppelius.isa.bits")]
    assert list(imports("coppelius.isa", "from ..program import x", is_package=True)) == [(1, "coppelius.program.x")]
