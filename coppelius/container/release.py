"""A release as cubins: all its images as kernels of one file, then each image in a file of its own."""

from collections.abc import Mapping
from typing import Any

from coppelius.container.image import images_of
from coppelius.container.writer import write_release


def cubins_of(manifest: Mapping[str, Any], arena: bytes) -> list[bytes]:
    """The whole one, then one an image in the release's order."""
    return write_release(images_of(manifest, arena))
