"""The launch list: which images a program launches, with which grid and parameters; JSON, with a schema.

    {"version": 1, "launches": [{"identity": "add", "grid": [4, 1, 1], "parameters": {"count": 4096}}]}

A pruned release keeps the images that some launch names, in their order; addresses follow, since each image is placed
anew.  An identity that the release does not have is refused.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coppelius.isa.refusal import Refusal

VERSION = 1
GRID_LIMITS = ((1 << 31) - 1, 65535, 65535)  # published: blocks along x, y and z
SCHEMA: Mapping[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "coppelius launch list",
    "type": "object",
    "required": ["version", "launches"],
    "additionalProperties": False,
    "properties": {
        "version": {"const": VERSION},
        "launches": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["identity", "grid", "parameters"],
                "additionalProperties": False,
                "properties": {
                    "identity": {"type": "string", "minLength": 1},
                    "grid": {
                        "type": "array",
                        "minItems": 3,
                        "maxItems": 3,
                        "prefixItems": [{"type": "integer", "minimum": 1, "maximum": n} for n in GRID_LIMITS],
                    },
                    "parameters": {"type": "object", "additionalProperties": {"type": "number"}},
                },
            },
        },
    },
}


@dataclass(frozen=True)
class Launch:
    """One launch; pointers' values are addresses."""

    identity: str
    grid: tuple[int, int, int]
    parameters: Mapping[str, int | float]


def parse_launches(text: str) -> list[Launch]:
    """The list from JSON; refuses by place what the schema does not admit."""
    try:
        data = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise Refusal(f"launch list: {error}") from None
    if not isinstance(data, dict) or set(data) != {"version", "launches"} or data["version"] != VERSION:
        raise Refusal(f'launch list: an object with "version": {VERSION} and "launches" is wanted')
    if not isinstance(data["launches"], list):
        raise Refusal('launch list: "launches" is no list')
    return [_launch(number, row) for number, row in enumerate(data["launches"])]


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number in JSON")


def refuse_bad_grid(grid: Sequence[int], what: str) -> None:
    """Refuses a grid that no card launches."""
    for axis, blocks, limit in zip("xyz", grid, GRID_LIMITS, strict=True):
        if not 1 <= blocks <= limit:
            raise Refusal(f"{what}: {blocks} blocks along {axis}; a grid has 1 to {limit} there")


def _launch(number: int, row: Any) -> Launch:
    if not isinstance(row, dict) or set(row) != {"identity", "grid", "parameters"}:
        raise Refusal(f"launch {number}: identity, grid and parameters are wanted, and nothing else")
    identity, grid, parameters = row["identity"], row["grid"], row["parameters"]
    if not isinstance(identity, str) or not identity:
        raise Refusal(f"launch {number}: identity {identity!r} is no name")
    if not isinstance(grid, list) or len(grid) != 3 or not all(type(n) is int and n >= 1 for n in grid):
        raise Refusal(f"launch {number} ({identity}): grid {grid!r} is not three positive integers")
    refuse_bad_grid(grid, f"launch {number} ({identity})")
    if not isinstance(parameters, dict) or not all(type(v) in (int, float) for v in parameters.values()):
        raise Refusal(f"launch {number} ({identity}): parameters are numbers by name")
    return Launch(identity, (grid[0], grid[1], grid[2]), parameters)


def launched(launches: Sequence[Launch], parameters: Mapping[str, Collection[str]]) -> list[str]:
    """The identities that some launch names, in the release's order.

    `parameters`: those of each image in the release.  Refuses an image or a parameter that the release does not have.
    """
    for number, launch in enumerate(launches):
        if launch.identity not in parameters:
            raise Refusal(f"launch {number}: no image {launch.identity!r} in the release")
        known = parameters[launch.identity]
        for name in launch.parameters:
            if name not in known:
                has = ", ".join(known) or "none"
                raise Refusal(f"launch {number} ({launch.identity}): no parameter {name!r}; it has {has}")
    named = {launch.identity for launch in launches}
    return [identity for identity in parameters if identity in named]
