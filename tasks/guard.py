"""Listing -> listing whose late reads are guarded; one that needs nothing comes back as it was."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tasks.outputs import only_text
from tasks.step import steps_of


def guard(inputs: Sequence[Path], _parameters: Mapping[str, Any]) -> tuple[str]:
    import coppelius.schedule.late_reads as late_reads

    return (late_reads.guard(only_text(inputs)),)


def task_guard() -> Iterator[dict[str, Any]]:
    """listing with late reads guarded"""
    yield from steps_of("guard", guard)
