"""An image's address is the manifest's base plus its offset; 0 stands for no image.

No launch can name address 0 (a base of 0 is refused), so an unknown identity cannot be launched by
mistake.  People who ask by name get `nearest` instead of a silent 0.
"""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any


def address(manifest: Mapping[str, Any], identity: str) -> int:
    """The device address of the image, or 0 when the manifest has none of that name."""
    for image in manifest["images"]:
        if image["identity"] == identity:
            return int(manifest["base"]) + int(image["offset"])
    return 0


def nearest(identity: str, known: Iterable[str]) -> str:
    """The known identity most like the given one, or "" when none is like it."""
    return next(iter(difflib.get_close_matches(identity, list(known), n=1, cutoff=0.5)), "")
