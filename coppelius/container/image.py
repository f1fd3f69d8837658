"""One released image as everything that leaves the building needs it: cubins and launch descriptors.

Read from a manifest and its arena, so that code, registers, block and shared bytes come from one record and cannot
disagree.  Shared bytes count from address 0, reserved ones included, as the manifest has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coppelius.isa.refusal import Refusal
from coppelius.isa.targets.layout import layout_of

_SIZES = {"f32": 4, "u32": 4, "u64": 8}


@dataclass(frozen=True)
class ImageParameter:
    """`offset` in bytes from the first parameter."""

    name: str
    offset: int
    size: int
    pointer: bool
    type: str


@dataclass(frozen=True)
class ReleasedImage:
    """An image of one target's release."""

    identity: str
    target: str
    code: bytes
    address: int
    registers: int
    block_x: int
    shared_bytes: int
    dynamic_shared: bool
    grid: tuple[int | str, ...]
    parameters: tuple[ImageParameter, ...]

    @property
    def parameter_bytes(self) -> int:
        """From the first parameter to the end of the last."""
        return max((p.offset + p.size for p in self.parameters), default=0)


def images_of(manifest: Mapping[str, Any], arena: bytes) -> list[ReleasedImage]:
    """Every image of a release, in order."""
    return [_image(manifest["target"], row, arena) for row in manifest["images"]]


def find_image(images: list[ReleasedImage], identity: str) -> ReleasedImage:
    """The image of that identity; refuses an unknown one."""
    for image in images:
        if image.identity == identity:
            return image
    raise Refusal(f"no image {identity!r} in the release; it has {', '.join(i.identity for i in images) or 'none'}")


def _image(target: str, row: Mapping[str, Any], arena: bytes) -> ReleasedImage:
    base = layout_of(target).parameters
    parameters = tuple(
        ImageParameter(
            p["name"],
            p["offset"] - base,
            8 if p["kind"] == "pointer" else _SIZES[p["type"]],
            p["kind"] == "pointer",
            p["type"],
        )
        for p in row["parameters"]
    )
    code = arena[row["offset"] : row["offset"] + row["bytes"]]
    if len(code) != row["bytes"]:
        raise Refusal(f"{row['identity']}: the arena ends at {len(arena):#x}, inside the image")
    return ReleasedImage(
        row["identity"],
        target,
        code,
        row["address"],
        row["registers"],
        row["block_x"],
        row["shared_bytes"],
        row["dynamic_shared"],
        tuple(row["grid"]),
        parameters,
    )
