"""All images -> the arena and its manifest, published together or not at all.

One refused verdict refuses the release: the earlier one stays whole, and every verdict is reported.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from coppelius.isa.refusal import Refusal
from tasks.check import hazard_lines
from tasks.graph import NATIVE
from tasks.outputs import read_json
from tasks.step import steps_of


def arena(inputs: Sequence[Path], parameters: Mapping[str, Any]) -> tuple[bytes, bytes]:
    from coppelius.arena import release

    rows = parameters["images"]
    materials, places, verdicts = (inputs[n * len(rows) : (n + 1) * len(rows)] for n in range(3))
    judged = [read_json(path) for path in verdicts]
    records = [
        release.Record(
            identity=row["identity"],
            material=material.read_bytes(),
            offset=read_json(place)["offset"],
            registers=verdict["launch_registers"],
            declaration=row["declaration"],
            checks=verdict["checks"],
        )
        for row, material, place, verdict in zip(rows, materials, places, judged, strict=True)
    ]
    plan = release.Plan(parameters["target"], parameters["half"], parameters["base"], parameters["alignment"])
    try:
        made = release.make_release(plan, records)
    except Refusal as refusal:
        raise Refusal("\n".join([str(refusal), *_report(verdicts, judged)])) from refusal
    return made.arena, made.manifest_bytes


def _report(verdicts: Sequence[Path], judged: Sequence[Mapping[str, Any]]) -> list[str]:
    """Every verdict: the hazards of the refused images, the names of the accepted ones."""
    lines = []
    for path, verdict in zip(verdicts, judged, strict=True):
        if not verdict["accepted"]:
            folder = path.parent
            lines += hazard_lines(folder, verdict, folder.parent.with_name(NATIVE) / folder.name)
    accepted = [path.parent.name for path, verdict in zip(verdicts, judged, strict=True) if verdict["accepted"]]
    return [*lines, f"accepted: {', '.join(accepted) or 'none'}"]


def task_arena() -> Iterator[dict[str, Any]]:
    """all images placed in one file, and the manifest"""
    yield from steps_of("arena", arena)
