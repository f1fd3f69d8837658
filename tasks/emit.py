"""Kernel -> listing: the kernel's generator, run for one image's options.

The kernel is named by a string and imported here, in the step, so that a module that cannot be imported
refuses its own images only.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tasks.step import steps_of


def emit(_inputs: Sequence[Path], parameters: Mapping[str, Any]) -> tuple[str, str]:
    from coppelius import emit as emitter

    emitted = emitter.emit(
        parameters["kernel"],
        parameters["options"],
        parameters=parameters["arguments"],
        registers=parameters["registers"],
        block_x=parameters["block_x"],
    )
    return emitted.listing, emitted.lines


def task_emit() -> Iterator[dict[str, Any]]:
    """kernel -> scheduled listing in f16, and its line table"""
    yield from steps_of("emit", emit)
