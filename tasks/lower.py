"""Guarded native listing -> listing in another target's words, and where each of its instructions came from."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tasks.outputs import json_text, only_text
from tasks.step import steps_of


def lower(inputs: Sequence[Path], parameters: Mapping[str, Any]) -> tuple[str, str]:
    from coppelius.lowering import lower as lowering

    listing, origin = lowering.lower_listing(only_text(inputs), parameters["target"])
    return listing, json_text(origin)


def task_lower() -> Iterator[dict[str, Any]]:
    """listing in another target's words"""
    yield from steps_of("lower", lower)
