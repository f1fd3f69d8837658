"""A file's content is known without reading it only while nothing can have touched it since it was read.

Its signature is (mtime_ns, size, inode, ctime_ns).  Contents can change under a kept mtime and size; the
change time cannot be set back, so an equal signature means equal content, with one gap: a write within the
same tick of the file system's clock as the reading.  A signature younger than the clock's step when the
file was read is therefore used once and not kept (the "racy" rule of version control indexes).

Limit: a file system whose clock is another machine's must not lag by more than the step.
"""

import hashlib
import os
import time
from pathlib import Path

from cache.database import Signature, State

MISSING = "missing"
FINE_STEP = 20_000_000  # ns; assumed: the kernel's clock ticks at least every 10 ms (CONFIG_HZ >= 100)
COARSE_STEP = 2_000_000_000  # ns; published: FAT keeps two seconds, older file systems one


def signature_of(status: os.stat_result) -> Signature:
    return (status.st_mtime_ns, status.st_size, status.st_ino, status.st_ctime_ns)


def settled(signature: Signature, now: int) -> bool:
    """Could no write after `now` leave this signature?"""
    mtime, _, _, ctime = signature
    whole_seconds = ctime % 1_000_000_000 == 0
    return max(ctime, 0) + (COARSE_STEP if whole_seconds else FINE_STEP) < now and mtime < now


class Files:
    """Digests of the checkout's files, by path relative to its root."""

    def __init__(self, root: Path, state: State) -> None:
        self._root = str(root)
        self._state = state
        self._known: dict[str, tuple[Signature, str]] | None = None
        self._fresh: dict[str, tuple[Signature, str]] = {}
        self._unsettled: set[str] = set()

    def signature(self, path: str) -> Signature | None:
        try:
            return signature_of(os.stat(f"{self._root}/{path}"))  # noqa: PTH116 (a thousand a build)
        except OSError:
            return None

    def look(self, path: str) -> tuple[Signature | None, str]:
        """Its signature, and the SHA-256 of its content or `MISSING`."""
        signature = self.signature(path)
        return signature, MISSING if signature is None else self.digest(path, signature)

    def digest(self, path: str, signature: Signature) -> str:
        """The SHA-256 of its content; `signature` was just taken."""
        if self._known is None:
            self._known = self._state.files()
        known = self._known.get(path)
        if known is not None and known[0] == signature:
            return known[1]
        return self._read(path)

    def _read(self, path: str) -> str:
        assert self._known is not None
        now = time.time_ns()
        try:
            with open(f"{self._root}/{path}", "rb") as file:  # noqa: PTH123 (a thousand a build)
                signature = signature_of(os.fstat(file.fileno()))
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            return MISSING
        if settled(signature, now):
            self._known[path] = self._fresh[path] = (signature, digest)
            self._unsettled.discard(path)
        else:
            self._unsettled.add(path)
        return digest

    def save(self) -> None:
        """Keeps what was read; reads again, once, what was too young to be kept and no longer is."""
        now = time.time_ns()
        for path in sorted(self._unsettled):
            signature = self.signature(path)
            if signature is not None and settled(signature, now):
                self._read(path)
        self._state.save_files(self._fresh)
        self._fresh = {}
