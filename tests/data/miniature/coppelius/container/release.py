"""A cubin is what a launch needs of an image, wherever it lies: a line, then its words."""

from collections.abc import Mapping
from typing import Any


def cubins_of(manifest: Mapping[str, Any], arena: bytes) -> list[bytes]:
    each = []
    for image in manifest["images"]:
        head = f"{image['identity']} {manifest['target']} {image['registers']} {image['block_x']}\n"
        each.append(head.encode() + arena[image["offset"] : image["offset"] + image["bytes"]])
    return [b"".join(each), *each]
