"""One checkout opened: its plan, its graph, its ledger, its store."""

import importlib
import traceback
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from cache import front
from cache.lock import BuildLock
from coppelius.isa.refusal import Refusal
from tasks.graph import TARGETS, Graph, build_graph
from tasks.ledger import Ledger
from tasks.plan import Plan, read_plan
from tasks.restore import Restorer, open_store, tools

CATALOGUE = "coppelius.catalog"
LOCK = "cache/state.lock"


class Project:
    def __init__(self, root: Path, overrides: Mapping[str, str]) -> None:
        self.root, self.overrides = root, dict(overrides)
        self.front_around: list[object] = []
        self.front_sources: front.Signatures | None = None  # as they were before any ran, where a build asks
        self.plan: Plan = read_plan(root, overrides, tuple(TARGETS))
        self.graph: Graph = build_graph(_rows(), self.plan)
        self.ledger = Ledger(root, self.graph, tools())
        self.store = open_store(root)
        self.restorer = Restorer(root, self.graph, self.ledger, self.store)
        self.lock = BuildLock(root / LOCK)


def _rows() -> list[dict[str, Any]]:
    """The catalogue as JSON-ready rows, each with its launch declaration as the manifest spells it."""
    try:
        catalogue = importlib.import_module(CATALOGUE)
        return [_row(image, catalogue.declaration(image)) for image in catalogue.IMAGES]
    except Refusal:
        raise
    except Exception as error:
        lines = "".join(traceback.format_exception_only(error)).rstrip()
        raise Refusal(f"{CATALOGUE} cannot be read, so that nothing can be built\n{lines}") from error


def _row(image: Any, declaration: dict[str, Any]) -> dict[str, Any]:
    """`arguments`: the kernel's parameters with their offsets, the part of the declaration a kernel sees."""
    row: dict[str, Any] = plain(image)
    return row | {"declaration": declaration, "arguments": declaration["parameters"]}


def plain(value: Any) -> Any:
    """Dataclasses, mappings and sequences as JSON-ready data."""
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [plain(part) for part in value]
    return value
