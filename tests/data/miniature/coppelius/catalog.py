"""A miniature catalogue: the fields that the build reads, five images of four kernels."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Image:
    identity: str
    kernel: str
    options: Mapping[str, int]
    registers: int | None = 24
    block_x: int = 128
    shared_bytes: int = 0


def declaration(image: Image) -> dict[str, Any]:
    return {
        "registers": image.registers,
        "block_x": image.block_x,
        "shared_bytes": image.shared_bytes,
        "grid": ["rows", 1, 1],
        "parameters": [],
    }


IMAGES = (
    Image("first", "coppelius.kernels.plain:plain", {"count": 4}),
    Image("second", "coppelius.kernels.plain:plain", {"count": 15}),
    Image("third", "coppelius.kernels.halves:halves", {"count": 3}),
    Image("fourth", "coppelius.kernels.shares:shares", {"count": 2}, registers=None),
    Image("fifth", "coppelius.kernels.shares:shares", {"count": 20}),
)
