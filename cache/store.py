"""Outputs of steps, kept by what they were made from, so that nothing is computed twice.

A blob is a content under its own SHA-256.  A trace says that a step's key (its code, parameters and inputs,
see `tasks.restore`) gave certain outputs: their names, digests and sizes.  Equal names hold equal bytes, so
writers need no lock: two builders at once write the same thing.

Nothing found here is believed.  A blob is verified against its name on every read, a trace against the
digest in its first line and the key in its body; what does not fit is dropped, counted as bad, said once,
and made again.  Blobs are written first and the trace last, each beside its place and renamed: a killed
writer leaves no trace that lacks a blob.  A full disk or a folder that cannot be written costs the store,
said once, and not the build.  Nothing is flushed to the disk: what a power failure tears is found bad.

The time of an entry is that of its last use.  `collect` (one at a time) removes what was used longest ago
until the rest fits, sparing what is younger than an hour, which a running build may be about to name.

Limit: whoever can write to a store can forge a trace whose digests fit; share it with those you trust.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from cache.remote import Remote  # and urllib with it: only where there is one

FORMAT = 1  # of traces and of what a key holds; in every key, so that formats never meet
YOUNG = 3600  # seconds
BLOB, TRACE, PARTIAL = "blob", "trace", "partial"


class Output(NamedTuple):
    """One output of a step: its file name, and what it holds."""

    name: str
    digest: str
    size: int


class Found(NamedTuple):
    """What the store gives back: contents by name, and the seconds they once took to make."""

    contents: dict[str, bytes]
    seconds: float


class Collected(NamedTuple):
    kept: int  # traces
    removed: int
    bytes_kept: int
    bytes_freed: int


class Store:
    """One folder of blobs and traces, and perhaps a second level behind it."""

    def __init__(self, folder: Path, remote: Remote | None = None) -> None:
        self._folder, self._remote = folder, remote
        self._writable = True
        self.bad = 0

    def find(self, key: str, names: Sequence[str]) -> Found | None:
        """The outputs of this key, if all of them are here or behind, and whole."""
        trace = self._trace(key)
        if trace is None or [output.name for output in trace[0]] != list(names):
            return None
        contents = {}
        for output in trace[0]:
            content = self._blob(output.digest)
            if content is None:
                return None
            contents[output.name] = content
        return Found(contents, trace[1])

    def keep_blobs(self, contents: Sequence[bytes]) -> None:
        for content in contents:
            self._keep(_path(BLOB, hashlib.sha256(content).hexdigest()), content)

    def keep_trace(self, key: str, step: str, outputs: Sequence[Output], seconds: float) -> None:
        """The last thing to write of a step; `step` is for people who look into the store."""
        body = {"format": FORMAT, "key": key, "step": step, "outputs": outputs, "seconds": round(seconds, 6)}
        text = _sealed(json.dumps(body).encode())
        self._keep(_path(TRACE, key), text, replace=True)
        if self._remote is not None and self._remote.writable:
            for output in outputs:
                content = self._read(_path(BLOB, output.digest))
                if content is None or hashlib.sha256(content).hexdigest() != output.digest:
                    return
                self._remote.put(_path(BLOB, output.digest), content)
            self._remote.put(_path(TRACE, key), text)

    def _trace(self, key: str) -> tuple[list[Output], float] | None:
        path = _path(TRACE, key)
        text = self._read(path)
        if text is not None:
            found = _read_trace(text, key)
            if found is not None:
                return found
            self._drop(path)
        text = self._remote.get(path) if self._remote is not None else None
        if text is None or self._remote is None:
            return None
        found = _read_trace(text, key)
        if found is None:
            self._remote.distrust(f"{path} is damaged")
            return None
        self._keep(path, text)
        return found

    def _blob(self, digest: str) -> bytes | None:
        path = _path(BLOB, digest)
        content = self._read(path)
        if content is not None:
            if hashlib.sha256(content).hexdigest() == digest:
                return content
            self._drop(path)
        content = self._remote.get(path) if self._remote is not None else None
        if content is None or self._remote is None:
            return None
        if hashlib.sha256(content).hexdigest() != digest:
            self._remote.distrust(f"{path} holds other bytes")
            return None
        self._keep(path, content)
        return content

    def _read(self, path: str) -> bytes | None:
        whole = self._folder / path
        try:
            content = whole.read_bytes()
        except OSError:
            return None
        with suppress(OSError):  # a store of somebody else's
            os.utime(whole)  # used now
        return content

    def _drop(self, path: str) -> None:
        self.bad += 1
        if self.bad == 1:
            print(f"store: {path} is damaged; dropped, and made again", file=sys.stderr, flush=True)
        with suppress(OSError):
            (self._folder / path).unlink(missing_ok=True)

    def _keep(self, path: str, content: bytes, replace: bool = False) -> None:
        if not self._writable:
            return
        whole = self._folder / path
        partial = self._folder / PARTIAL / os.urandom(8).hex()
        try:
            if not replace and _holds(whole, content):
                os.utime(whole)  # so that a collection spares it until its trace is there
                return
            partial.parent.mkdir(parents=True, exist_ok=True)
            whole.parent.mkdir(parents=True, exist_ok=True)
            partial.write_bytes(content)
            partial.chmod(0o444)
            partial.replace(whole)
        except OSError as error:
            self._writable = False
            print(f"store: {error.strerror or error}; nothing more is kept", file=sys.stderr, flush=True)
            with suppress(OSError):
                partial.unlink(missing_ok=True)

    def collect(self, bound: int, now: float | None = None) -> Collected:
        """Removes what was used longest ago until the rest takes at most `bound` bytes."""
        now = time.time() if now is None else now
        with self._collecting():
            blobs = {path.name: path.stat() for path in _files(self._folder / BLOB)}
            traces = sorted(((p.stat(), p) for p in _files(self._folder / TRACE)), key=lambda t: -t[0].st_mtime)
            kept: set[str] = set()
            total, removed, freed, count = 0, 0, 0, 0
            for status, path in traces:
                outputs = _outputs_of(path)
                more = {o.digest for o in outputs or ()} - kept
                size = status.st_size + sum(blobs[digest].st_size for digest in more if digest in blobs)
                if (outputs is not None and total + size <= bound) or status.st_mtime > now - YOUNG:
                    kept |= more
                    total, count = total + size, count + 1
                else:
                    path.unlink(missing_ok=True)
                    removed, freed = removed + 1, freed + status.st_size
            for digest, status in blobs.items():
                if digest not in kept and status.st_mtime <= now - YOUNG:
                    (self._folder / _path(BLOB, digest)).unlink(missing_ok=True)
                    freed += status.st_size
                elif digest not in kept:
                    total += status.st_size
            for path in _files(self._folder / PARTIAL):  # left by killed writers
                if path.stat().st_mtime <= now - YOUNG:
                    path.unlink(missing_ok=True)
        return Collected(count, removed, total, freed)

    @contextmanager
    def _collecting(self) -> Iterator[None]:
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / "lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def digest_of(parts: Mapping[str, Any]) -> str:
    """The key of these parts: the SHA-256 of their one JSON spelling."""
    text = json.dumps({"format": FORMAT, **parts}, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _path(kind: str, digest: str) -> str:
    return f"{kind}/{digest[:2]}/{digest}"


def _sealed(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def _unsealed(text: bytes) -> dict[str, Any] | None:
    seal, _, body = text.partition(b"\n")
    if hashlib.sha256(body).hexdigest().encode() != seal:
        return None
    found: dict[str, Any] = json.loads(body)
    return found


def _read_trace(text: bytes, key: str) -> tuple[list[Output], float] | None:
    """Outputs and seconds, or nothing if this is not a whole trace of this key."""
    try:
        body = _unsealed(text)
        if body is None or body["key"] != key or body["format"] != FORMAT:
            return None
        return [Output(*output) for output in body["outputs"]], float(body["seconds"])
    except (ValueError, KeyError, TypeError):
        return None


def _outputs_of(path: Path) -> list[Output] | None:
    try:
        found = _read_trace(path.read_bytes(), path.name)
    except OSError:
        return None
    return found and found[0]


def _holds(path: Path, content: bytes) -> bool:
    """Compared, not believed: a damaged blob is replaced by whoever makes it again."""
    try:
        return path.stat().st_size == len(content) and path.read_bytes() == content
    except OSError:
        return False


def _files(folder: Path) -> Iterator[Path]:
    yield from (path for path in folder.rglob("*") if path.is_file())
