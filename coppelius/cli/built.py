"""Reading what a build left: manifests, listings, line tables.

What is not there is refused with the command that makes it; what is there and cannot be read is unusable
input.  Nothing here builds.
"""

import json
from pathlib import Path
from typing import Any

import click

from coppelius.isa.refusal import Refusal


def read_manifest(root: Path, target: str) -> dict[str, Any]:
    """The manifest of the target's last good release."""
    path = root / "build" / target / "manifest.json"
    if not path.is_file():
        built = sorted(p.parent.name for p in root.glob("build/*/manifest.json"))
        have = f"; built: {', '.join(built)}" if built else ""
        raise Refusal(f"no release for {target} yet, run doit targets={target}{have}")
    manifest = read_json(path)
    if not isinstance(manifest, dict) or "images" not in manifest or "base" not in manifest:
        raise unreadable(path, "not a manifest")
    return manifest


def read_json(path: Path) -> Any:
    """The file's data; a file that is not JSON is unusable input."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise unreadable(path, str(error)) from None


def unreadable(path: Path, why: str) -> click.UsageError:
    """The error for input that cannot be read."""
    return click.UsageError(f"{path}: {why}; build it again")
