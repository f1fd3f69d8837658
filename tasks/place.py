"""The length of a material and the end of the image before -> its offset.

What is written is the offset and the aligned end, not the length, so that growth inside the padding stops
here and moves nothing after.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tasks.outputs import json_text, read_json
from tasks.step import steps_of


def place(inputs: Sequence[Path], parameters: Mapping[str, Any]) -> tuple[str]:
    from coppelius.arena import placement

    material, *before = inputs
    size, alignment = material.stat().st_size, parameters["alignment"]
    previous_end = read_json(before[0])["end"] if before else 0
    offset = placement.place(previous_end, size, alignment)
    end = placement.place(offset + size, size, alignment)  # where an image after this one would start
    return (json_text({"offset": offset, "end": end}),)


def task_place() -> Iterator[dict[str, Any]]:
    """offset in the arena"""
    yield from steps_of("place", place)
