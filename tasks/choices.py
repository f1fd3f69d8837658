"""The record of the tiled products' choices, admitted whole: before any product is built, and for the arena.

What is written says only that it holds, so that a choice that changes rebuilds its own product and no other.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tasks.outputs import json_text
from tasks.step import steps_of


def choices(_inputs: Sequence[Path], _parameters: Mapping[str, Any]) -> tuple[str]:
    from coppelius.products import admission

    admission.admit()
    return (json_text({"admitted": True}),)


def task_choices() -> Iterator[dict[str, Any]]:
    """the record of the products' choices, admitted"""
    yield from steps_of("choices", choices)
