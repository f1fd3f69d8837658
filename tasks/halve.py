"""Listing in f16 -> listing in the plan's half format, and where each of its instructions came from."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tasks.outputs import json_text, only_text
from tasks.step import steps_of


def halve(inputs: Sequence[Path], parameters: Mapping[str, Any]) -> tuple[str, str]:
    from coppelius.lowering import half_format

    listing, origin = half_format.halve(only_text(inputs), parameters["half"])
    return listing, json_text(origin)


def task_halve() -> Iterator[dict[str, Any]]:
    """listing in the plan's half format"""
    yield from steps_of("halve", halve)
