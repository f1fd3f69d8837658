"""A build runs the code that stands in the source, not what a time stamp says about it.

Python trusts a module's bytecode when the source's size and modification time, in whole seconds, are those
it was compiled from: an edit of equal size within the same second, or under a restored time, runs the old
code.  Inside a build, modules of this checkout are found in this checkout, and their bytecode is trusted
only by the digest of their source.  It is kept with the saved state, not beside the source.  A damaged
bytecode file counts as none.
"""

import hashlib
import importlib.util
import marshal
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

PACKAGES = ("coppelius", "tasks", "cache")
DIGEST_BYTES = 32

# module -> the SHA-256 of the source that runs in this process
loaded: dict[str, str] = {}


class ContentLoader(SourceFileLoader):
    """Compiles from source, or loads bytecode that this very source gave."""

    store: Path

    def get_code(self, fullname: str) -> CodeType:
        source = self.get_data(self.path)
        loaded[fullname] = hashlib.sha256(source).hexdigest()
        key = hashlib.sha256(importlib.util.MAGIC_NUMBER + os.fsencode(self.path) + b"\0" + source).digest()
        kept = self.store / f"{fullname}.code"
        try:
            saved = kept.read_bytes()
        except OSError:
            saved = b""
        body = saved[2 * DIGEST_BYTES :]
        if saved[: 2 * DIGEST_BYTES] == key + hashlib.sha256(body).digest():
            code: CodeType = marshal.loads(body)
            return code
        code = self.source_to_code(source, self.path)
        self._keep(kept, key, marshal.dumps(code))
        return code

    def _keep(self, kept: Path, key: bytes, body: bytes) -> None:
        partial = kept.with_name(f"{kept.name}.{os.getpid()}")
        try:
            kept.parent.mkdir(parents=True, exist_ok=True)
            partial.write_bytes(key + hashlib.sha256(body).digest() + body)
            partial.replace(kept)
        except OSError:
            return  # a checkout that cannot be written to only builds more slowly


class ContentFinder:
    """Finds this checkout's packages in this checkout, whatever else is installed."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.loader = type("CheckoutLoader", (ContentLoader,), {"store": root / "cache" / "state.code"})

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.partition(".")[0] not in PACKAGES:
            return None
        spec = PathFinder.find_spec(name, [str(self.root)] if path is None else path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader) and spec.origin:
            loader: Any = self.loader(name, spec.origin)
            spec.loader = loader
        return spec


def install(root: Path) -> None:
    """From here on, imports of this checkout's packages go by content."""
    if not any(isinstance(f, ContentFinder) and f.root == root for f in sys.meta_path):
        sys.meta_path.insert(0, ContentFinder(root))
