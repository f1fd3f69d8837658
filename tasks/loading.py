"""An error while dodo.py loads is a few lines that say what to mend, never a traceback.

`doit` itself shows a traceback of its own for whatever is raised there.  Only the standard library here: what
failed may be any module of ours.
"""

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

USAGE = 2  # exit status of a run that could not start
OURS = ("coppelius", "tasks", "cache")


@contextmanager
def told(root: Path) -> Iterator[None]:
    """Ends the run with what a user needs to mend it."""
    try:
        yield
    except Exception as error:
        print(f"refused: {why(error, root)}", file=sys.stderr)
        raise SystemExit(USAGE) from None


def why(error: Exception, root: Path) -> str:
    """The error in a line, and what to do about it."""
    absent = missing_package(error)
    if absent is not None:
        return absent
    if isinstance(error, SyntaxError):
        where, said = f"{error.filename}, line {error.lineno}", error.msg
    else:
        frames = traceback.extract_tb(error.__traceback__)
        inside = [frame for frame in frames if Path(frame.filename).is_relative_to(root)]
        frame = (inside or frames)[-1]
        where = f"{frame.filename}, line {frame.lineno}"
        said = "".join(traceback.format_exception_only(error)).strip()
    return f"{where.replace(f'{root}/', '')}: {said}; mend it, and build again"


def missing_package(error: BaseException) -> str | None:
    """What to do where the error is that a package of somebody else's is not installed."""
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return None
    package = error.name.partition(".")[0]
    if package in OURS or package in sys.stdlib_module_names:
        return None
    return f"{package} is not installed for {sys.executable}; run `pip install -e .` in the checkout"
