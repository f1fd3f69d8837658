"""A release -> cubins: all images as kernels of one, and one an image."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tasks.outputs import read_json
from tasks.step import steps_of


def cubin(inputs: Sequence[Path], _parameters: Mapping[str, Any]) -> Sequence[bytes]:
    from coppelius.container.release import cubins_of

    manifest, arena = inputs
    return cubins_of(read_json(manifest), arena.read_bytes())


def task_cubin() -> Iterator[dict[str, Any]]:
    """the release as files that the CUDA driver loads"""
    yield from steps_of("cubin", cubin)
