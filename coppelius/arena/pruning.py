"""A pruned release: the images that some launch names, placed anew, beside the whole one and never instead of it.

The launch list says which regions of the program are reached; an image that none names cannot be launched, so leaving
it out changes no launch but its address.  The whole release stays as it is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from typing import Any

from coppelius.arena.placement import place
from coppelius.arena.release import Release
from coppelius.isa.refusal import Refusal


def prune(manifest: Mapping[str, Any], arena: bytes, identities: Collection[str]) -> Release:
    """The release of these images only, in the whole one's order; refuses an identity that it does not have."""
    known = [image["identity"] for image in manifest["images"]]
    if unknown := sorted(set(identities) - set(known)):
        raise Refusal(f"no image {unknown[0]!r} in the release for {manifest['target']}")
    out = bytearray()
    images: list[dict[str, Any]] = []
    for image in manifest["images"]:
        if image["identity"] not in identities:
            continue
        code = arena[image["offset"] : image["offset"] + image["bytes"]]
        offset = place(len(out), len(code), manifest["alignment"])
        out += bytes(offset - len(out)) + code
        images.append(image | {"index": len(images), "offset": offset, "address": manifest["base"] + offset})
    whole = {"bytes": len(out), "sha256": hashlib.sha256(out).hexdigest(), "images": images}
    return Release(bytes(out), {**manifest, **whole})


def same_but_placed(pruned: Mapping[str, Any], whole: Mapping[str, Any]) -> bool:
    """Whether the pruned release's images are the whole one's, but for where they lie."""
    rows = {image["identity"]: image for image in whole["images"]}
    moved = ("index", "offset", "address")

    def kept(image: Mapping[str, Any]) -> str:
        return json.dumps({k: v for k, v in image.items() if k not in moved}, sort_keys=True)

    return all(kept(image) == kept(rows[image["identity"]]) for image in pruned["images"])
