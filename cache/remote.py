"""The store's second level, by URL: a folder, an HTTP server that takes GET and PUT, or what fsspec opens.

A build never waits long for it and never fails by it.  Every operation has a time limit that no trickling
answer can stretch.  The first that is late or fails ends reading and writing for this run, with one warning;
a refused write ends writing alone.  Bytes that do not fit their digest end both: one lie is enough.

    COPPELIUS_REMOTE        file:///folder, http://host/path, https://..., s3://bucket/path (needs fsspec)
    COPPELIUS_REMOTE_MODE   read (default) or read-write

Limit: credentials are what the URL or fsspec's own configuration say; nothing is retried.
"""

import os
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

SECONDS = 5.0  # assumed: a blob is some 100 KB; whoever needs longer for one is slower than the step
LARGEST = 1 << 28
MODES = ("read", "read-write")


class ReadOnly(OSError):
    """The place answers, and takes nothing."""


class Place(Protocol):
    def get(self, name: str) -> bytes | None: ...

    def put(self, name: str, content: bytes) -> None: ...


class Remote:
    """A place with limits: what goes wrong there is said once and then costs nothing."""

    def __init__(self, url: str, mode: str = "read", seconds: float = SECONDS) -> None:
        if mode not in MODES:
            raise ValueError(f"COPPELIUS_REMOTE_MODE={mode}: not a mode; known: {', '.join(MODES)}")
        self._url, self._seconds = url, seconds
        self._place = open_place(url, seconds)
        self.readable, self.writable = True, mode == "read-write"

    def get(self, name: str) -> bytes | None:
        if not self.readable:
            return None
        try:
            found: bytes | None = self._within(lambda: self._place.get(name))
        except Exception as error:
            self.distrust(_said(error))
            return None
        return found

    def put(self, name: str, content: bytes) -> None:
        if not self.writable:
            return
        try:
            self._within(lambda: self._place.put(name, content))
        except ReadOnly as error:
            self.writable = False
            self._warn(f"{_said(error)}; nothing more is sent there")
        except Exception as error:
            self.distrust(_said(error))

    def distrust(self, why: str) -> None:
        """No more of it in this run."""
        if self.readable or self.writable:
            self.readable = self.writable = False
            self._warn(f"{why}; going on without it")

    def _warn(self, what: str) -> None:
        print(f"remote store {_without_password(self._url)}: {what}", file=sys.stderr, flush=True)

    def _within(self, call: Callable[[], Any]) -> Any:
        """The call's result, or an error once the time is up: a thread is left behind, and ends with us."""
        result: list[Any] = []
        failure: list[Exception] = []

        def work() -> None:
            try:
                result.append(call())
            except Exception as error:
                failure.append(error)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(self._seconds)
        if failure:
            raise failure[0]
        if not result:
            raise TimeoutError(f"no answer within {self._seconds:g} s")
        return result[0]


def open_place(url: str, seconds: float) -> Place:
    """Refuses what it cannot open; reaches for nothing yet."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        raise ValueError(f"COPPELIUS_REMOTE={url}: not a URL; write file:///folder, http://host or s3://bucket")
    if scheme == "file":
        return Folder(Path(urllib.parse.unquote(rest)))
    if scheme in ("http", "https"):
        return Http(url.rstrip("/"), seconds)
    try:
        import fsspec
    except ImportError:
        raise ValueError(f"COPPELIUS_REMOTE={url}: needs fsspec; pip install 'coppelius[remote]'") from None
    try:
        system, root = fsspec.core.url_to_fs(url)
    except (ImportError, ValueError) as error:  # the protocol's own package is missing, or nobody knows it
        raise ValueError(f"COPPELIUS_REMOTE={url}: {error}") from None
    return Fsspec(system, root)


class Folder:
    """A folder that others share, such as a mounted one."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def get(self, name: str) -> bytes | None:
        try:
            return (self._root / name).read_bytes()
        except FileNotFoundError:
            return None

    def put(self, name: str, content: bytes) -> None:
        path = self._root / name
        partial = self._root / f"partial-{os.urandom(8).hex()}"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            partial.write_bytes(content)
            partial.replace(path)
        except OSError as error:
            with suppress(OSError):
                partial.unlink(missing_ok=True)
            raise ReadOnly(error.strerror) from error


class Http:
    """Any server that stores what is PUT under a path and gives it back."""

    def __init__(self, url: str, seconds: float) -> None:
        self._url, self._seconds = url, seconds

    def get(self, name: str) -> bytes | None:
        try:
            with urllib.request.urlopen(f"{self._url}/{name}", timeout=self._seconds) as answer:
                content: bytes = answer.read(LARGEST)
        except urllib.error.HTTPError as error:
            if error.code in (404, 410):
                return None
            raise
        return content

    def put(self, name: str, content: bytes) -> None:
        request = urllib.request.Request(f"{self._url}/{name}", data=content, method="PUT")
        request.add_header("Content-Type", "application/octet-stream")
        try:
            urllib.request.urlopen(request, timeout=self._seconds).close()
        except urllib.error.HTTPError as error:
            # published (RFC 9110): the server understood, and does not take it; 507 is a full disk (RFC 4918)
            if error.code in (401, 403, 405, 413, 501, 507):
                raise ReadOnly(f"PUT: {error.code} {error.reason}") from error
            raise


class Fsspec:
    """What fsspec opens: s3 and its like, where a write is whole or not at all."""

    def __init__(self, system: Any, root: str) -> None:
        self._system, self._root = system, root

    def get(self, name: str) -> bytes | None:
        try:
            content: bytes = self._system.cat_file(f"{self._root}/{name}")
        except FileNotFoundError:
            return None
        return content

    def put(self, name: str, content: bytes) -> None:
        try:
            self._system.pipe_file(f"{self._root}/{name}", content)
        except (
            PermissionError,
            NotImplementedError,
        ) as error:  # fsspec's places raise the latter where they take nothing
            raise ReadOnly(str(error)) from error


def _said(error: Exception) -> str:
    text = str(getattr(error, "reason", None) or error) or type(error).__name__
    return text.splitlines()[0]


def _without_password(url: str) -> str:
    parts = urllib.parse.urlsplit(url)
    return url.replace(f"{parts.username}:{parts.password}@", "") if parts.password else url
