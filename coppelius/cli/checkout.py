"""The checkout is the nearest folder upwards that holds both dodo.py and the catalogue.

Build commands work on it wherever below they are called, or refuse.  A command that runs from another
installation hands over to the checkout's own code, so that a listing never describes one tree with the
catalogue of another.
"""

import os
import sys
from pathlib import Path

import coppelius
from coppelius.isa.refusal import Refusal


class NoCheckout(Refusal):
    """A command that works on a checkout, called outside of one."""

    status = 2  # of the command: a matter of usage


_HANDED_OVER = "COPPELIUS_CHECKOUT"


def is_checkout(folder: Path) -> bool:
    """Whether the folder is a checkout's root."""
    return (folder / "dodo.py").is_file() and (folder / "coppelius" / "catalog.py").is_file()


def find_checkout(start: Path | None = None) -> Path:
    """The root of the checkout that holds `start` (the working folder); refuses outside of one."""
    start = (start or Path.cwd()).resolve()
    for folder in (start, *start.parents):
        if is_checkout(folder):
            return folder
    raise NoCheckout(f"{start}: no checkout here or above (a folder with dodo.py and coppelius/); go into one")


def hand_over() -> None:
    """Starts the checkout's own command line in this process's place, if we are not it already."""
    try:
        root = find_checkout()
    except Refusal:
        return
    ours = Path(coppelius.__file__).resolve().parents[1]
    if ours == root or os.environ.get(_HANDED_OVER) == str(root):
        return
    path = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH", "")]))
    environment = {**os.environ, "PYTHONPATH": path, _HANDED_OVER: str(root)}
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, "-m", "coppelius", *sys.argv[1:]], environment)
