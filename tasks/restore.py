"""A step is not computed again where the store has what it would give.

The key of a step: its stage, the digest of its code (comments do not count; of `emit` the kernels' bytes
do), the tools it runs on, its parameters, and the digests of its inputs in the declared order.  Paths, times
and names of machines are in no key, so that another checkout, another branch and another image with the same
content meet in one entry.

Restoring ends as running does: the outputs are published and a record is made from what was looked at
before, so that an edit in between leaves no record and the step comes again.
"""

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from cache import atomic
from cache.store import Output, Store, digest_of
from coppelius.isa.refusal import Refusal
from tasks.graph import BUILD, Graph, Step
from tasks.ledger import Cause, History, Ledger, Observation

OBJECTS = "cache/objects"
SCRATCH = f"{BUILD}/{atomic.PARTIAL}"
PACKAGES = ("numpy", "networkx")  # what steps compute with

# inputs and parameters -> the contents of the outputs, in the graph's order
Action = Callable[[Sequence[Path], Mapping[str, Any]], Sequence[str | bytes]]


class Span(NamedTuple):
    """When something of a step was done, for the trace."""

    step: str
    what: str  # run, restored
    start: float
    end: float
    process: int


@cache
def tools() -> dict[str, str]:
    """The versions that a step's outputs may depend on."""
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": f"{sys.implementation.name} {'.'.join(map(str, sys.version_info[:3]))}"}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "absent"
    return found


def open_store(root: Path) -> Store:
    """The checkout's store, or the one that COPPELIUS_STORE names, with the level behind it if there is one."""
    folder = os.environ.get("COPPELIUS_STORE")
    url = os.environ.get("COPPELIUS_REMOTE")
    remote = None
    if url:
        from cache.remote import Remote

        try:
            remote = Remote(url, os.environ.get("COPPELIUS_REMOTE_MODE", "read"))
        except ValueError as error:
            raise Refusal(str(error)) from None
    return Store(Path(folder).absolute() if folder else root / OBJECTS, remote)


def key_of(step: Step, seen: Observation) -> str:
    """What the step's outputs follow from."""
    return digest_of(
        {
            "step": step.stage.name,
            "code": seen.code,
            "tools": seen.tools,
            "parameters": dict(step.parameters),
            "inputs": [digest for _, digest in seen.inputs],
            "outputs": list(step.files),
        }
    )


class Restorer:
    """Ledger and store together: how a step that is not up to date comes to be."""

    def __init__(self, root: Path, graph: Graph, ledger: Ledger, store: Store) -> None:
        self.root, self.graph, self.ledger, self.store = root, graph, ledger, store
        self.saved = 0.0  # seconds
        self.spans: list[Span] = []

    def restore(self, step: Step, seen: Observation, causes: Sequence[Cause]) -> bool:
        """Publishes what the store has of a step, and records it; false if the step has to run."""
        if step.name in self.ledger.forgotten:  # its user wants to see it run
            return False
        start = time.time()
        found = self.store.find(key_of(step, seen), step.files)
        if found is None:
            return False
        contents = dict(zip(step.outputs, found.contents.values(), strict=True))
        try:
            publish(self.root, step, contents)
        except OSError:
            return False  # running it fails the same way, and says so
        written = {path: atomic.digest(content) for path, content in contents.items()}
        history = History([str(cause) for cause in causes], found.seconds, restored=True)
        if not self.ledger.record(step, seen, written, history):
            return False
        self.saved += found.seconds
        self.spans.append(Span(step.name, "restored", start, time.time(), os.getpid()))
        return True

    def keep(self, step: Step, seen: Observation, sizes: Mapping[str, int], written: Mapping[str, str],
             seconds: float) -> None:  # fmt: skip
        """The trace of a step that has run and is recorded; its blobs are in the store."""
        named = zip(step.files, step.outputs, strict=True)
        outputs = [Output(name, written[path], sizes[path]) for name, path in named]
        self.store.keep_trace(key_of(step, seen), step.name, outputs, seconds)


def publish(root: Path, step: Step, contents: Mapping[str, bytes]) -> None:
    """Gives a step's outputs their contents; those of a release together, of one file an image those that change."""
    if step.stage.each:
        contents = {path: content for path, content in contents.items() if not _holds(root / path, content)}
    elif len(contents) > 1 and step.stage.once:
        atomic.publish(root / step.folder, {Path(path).name: text for path, text in contents.items()})
        return
    for path, content in contents.items():
        atomic.write(root / path, content, root / SCRATCH)


def _holds(path: Path, content: bytes) -> bool:
    try:
        return path.read_bytes() == content
    except OSError:
        return False


def perform(root: Path, step: Step, action: Action, store: Store) -> dict[str, Any]:
    """Runs an action and publishes what it gives; what of that is worth a record."""
    start = time.time()
    given = action([root / path for path, _ in step.inputs], step.parameters)
    contents = {
        path: text.encode() if isinstance(text, str) else text for path, text in zip(step.outputs, given, strict=True)
    }
    publish(root, step, contents)
    seconds = time.time() - start
    store.keep_blobs(list(contents.values()))
    return {
        "written": {path: atomic.digest(content) for path, content in contents.items()},
        "sizes": {path: len(content) for path, content in contents.items()},
        "seconds": seconds,
        "span": Span(step.name, "run", start, time.time(), os.getpid()),
    }
