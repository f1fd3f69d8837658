"""A file is either as it was or as it should be, whatever kills the writer.

Content is written to a file beside and renamed over the name: a rename replaces a name in one step.  Two
files that only make sense together need one rename for both: their content lies in a new folder, their
names are links through `.release`, and the one rename is that of `.release`.  Names are links from the
first publication on, so that no later one touches them.

Nothing is flushed to the disk: a killed process loses nothing by that, and after a power failure the digests
in the saved state show what was lost.  A killed writer leaves a partial file; `sweep` removes those.
"""

import hashlib
import itertools
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

PARTIAL = ".partial"  # the folder of files being written, one for a build folder
LINK = ".release"
_numbers = itertools.count()  # threads of one process write at once


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def write(path: Path, content: bytes, scratch: Path) -> None:
    """Gives `path` this content; `scratch` is a folder on the same file system."""
    partial = scratch / f"{os.getpid()}-{next(_numbers)}"
    try:
        partial.write_bytes(content)
        partial.replace(path)
    except FileNotFoundError:  # seldom: a folder is missing
        scratch.mkdir(parents=True, exist_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(content)
        partial.replace(path)


def publish(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Gives all names in `folder` their contents at once."""
    folder.mkdir(parents=True, exist_ok=True)
    earlier = releases(folder)
    number = 1 + max((int(path.name.rpartition("-")[2]) for path in earlier), default=0)
    fresh = folder / f"{LINK}-{number}"
    fresh.mkdir()
    for name, content in contents.items():
        (fresh / name).write_bytes(content)
    if not (folder / LINK).is_symlink():
        # the first publication: until `.release` exists, the names lead nowhere, together
        for name in contents:
            _link(folder / name, f"{LINK}/{name}")
    _link(folder / LINK, fresh.name)
    for name in contents:
        if not (folder / name).is_symlink():  # somebody put a file in its place
            _link(folder / name, f"{LINK}/{name}")
    for path in earlier:
        shutil.rmtree(path, ignore_errors=True)


def withdraw(folder: Path) -> None:
    """Removes everything `publish` keeps beside the names."""
    (folder / LINK).unlink(missing_ok=True)
    for path in releases(folder):
        shutil.rmtree(path, ignore_errors=True)


def releases(folder: Path) -> list[Path]:
    return [p for p in folder.glob(f"{LINK}-*") if p.is_dir() and p.name.rpartition("-")[2].isdecimal()]


def sweep(scratch: Path) -> None:
    """Removes what killed writers left; only for the holder of the build's lock."""
    if scratch.is_dir():
        for path in scratch.iterdir():
            path.unlink()


def _link(path: Path, target: str) -> None:
    """Makes `path` a link to `target`, replacing what is there in one step."""
    partial = path.with_name(f"{path.name}{PARTIAL}")
    partial.unlink(missing_ok=True)
    partial.symlink_to(target)
    partial.replace(path)
