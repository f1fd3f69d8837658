"""The front door: a tree in which nothing changed since a whole build needs no build to say so.

A build that found or made every step up to date leaves one file: the signatures of all it rests on, namely
dodo.py, pyproject.toml, every file of coppelius/, tasks/ and cache/ by folder (so that a new one is seen),
every output, the interpreter, its packages' folders, and the environment that matters.  Sources and packages
are looked at before a build imports any; outputs are what the build's own decisions saw.  As long as
everything is the same, so is the answer.

A signature is (mtime_ns, size, inode, ctime_ns), and counts only if it had settled when the file was written
(`cache.files`): a file as young as the clock's step leaves no answer, and the next build writes it.  Nothing
is written after a failure.  Whoever makes a step forget removes the file.

Only builtin modules here, and none of ours: importing more costs what this saves.
"""

import binascii
import marshal
import os
import sys

ANSWER = "cache/state.front"
FORMAT = 1
FOLDERS = ("coppelius", "tasks", "cache")
FILES = ("dodo.py", "pyproject.toml")
VARIABLES = ("PYTHON", "COPPELIUS_", "DOIT_")
NOT_OURS = ("COPPELIUS_CHECKOUT", "COPPELIUS_TRACE", "COPPELIUS_REMOTE")  # of no effect on what comes out
OWN_DATA = ("state.", "objects")  # in cache/

Signatures = dict[str, tuple[int, int, int, int] | None]


def signature(path: str) -> tuple[int, int, int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size, found.st_ino, found.st_ctime_ns)


def sources(root: str) -> Signatures:
    """Every file that a build may run or read before its steps, by path; found anew, so that none is missed."""
    found: Signatures = {path: signature(f"{root}/{path}") for path in FILES}
    waiting = list(FOLDERS)
    while waiting:
        folder = waiting.pop()
        try:
            entries = os.scandir(f"{root}/{folder}")
        except OSError:
            found[folder] = None
            continue
        with entries:
            for entry in entries:
                name, path = entry.name, f"{folder}/{entry.name}"
                if name == "__pycache__" or (folder == "cache" and name.startswith(OWN_DATA)):
                    continue
                if entry.is_dir():
                    waiting.append(path)
                else:
                    seen = signature(f"{root}/{path}")
                    if seen is not None:  # a link to nowhere, as editors leave for a lock, is no source
                        found[path] = seen
    return found


def surroundings() -> list[object]:
    """Interpreter, installed packages, environment."""
    packages = [p for p in sys.path if p.endswith(("site-packages", "dist-packages"))]
    variables = sorted(
        item for item in os.environ.items() if item[0].startswith(VARIABLES) and not item[0].startswith(NOT_OURS)
    )
    return [sys.version, sys.prefix, [(path, signature(path)) for path in packages], variables]


def answer(root: str, overrides: dict[str, str]) -> str | None:
    """What a build would say, or nothing if only a build can tell."""
    found = unchanged(root, overrides)
    return None if found is None else found[0]


def unchanged(root: str, overrides: dict[str, str], now: Signatures | None = None) -> tuple[str, Signatures] | None:
    """What a build would say and the outputs of its steps, or nothing.  `now`: the sources, if looked at already."""
    try:
        with open(f"{root}/{ANSWER}", "rb") as file:  # noqa: PTH123
            text = file.read()
        if binascii.crc32(text[4:]).to_bytes(4, "big") != text[:4]:
            return None
        form, around, plan, known, outputs, said = marshal.loads(text[4:])
    except (OSError, ValueError, EOFError, TypeError):
        return None
    if form != FORMAT or plan != overrides or around != surroundings() or known != (now or sources(root)):
        return None
    for path, expected in outputs.items():
        if signature(f"{root}/{path}") != expected:
            return None
    return str(said), outputs


def save(root: str, overrides: dict[str, str], around: list[object], known: Signatures, outputs: Signatures,
         said: str) -> None:  # fmt: skip
    """Keeps an answer; `known` and `outputs` have settled, `around` is from before the build asked for versions."""
    parts = (FORMAT, around, dict(overrides), known, outputs, said)
    body = marshal.dumps(parts)
    partial = f"{root}/{ANSWER}.{os.getpid()}"
    try:
        with open(partial, "wb") as file:  # noqa: PTH123
            file.write(binascii.crc32(body).to_bytes(4, "big") + body)
        os.replace(partial, f"{root}/{ANSWER}")  # noqa: PTH105
    except OSError:
        return  # the next build is asked again


def forget(root: str) -> None:
    try:
        os.unlink(f"{root}/{ANSWER}")  # noqa: PTH108
    except OSError:
        return
