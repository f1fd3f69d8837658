"""Listing -> material, sixteen bytes an instruction."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tasks.outputs import only_text
from tasks.step import steps_of


def encode(inputs: Sequence[Path], _parameters: Mapping[str, Any]) -> tuple[bytes]:
    from coppelius.program import encoding

    return (encoding.encode_listing(only_text(inputs)),)


def task_encode() -> Iterator[dict[str, Any]]:
    """machine words"""
    yield from steps_of("encode", encode)
