"""`coppelius build`: an unchanged tree is answered from its signatures; anything else is doit's to build.

The answer and the exit status are those of doit (see `cache.front`).  Arguments are doit's: steps to build,
`half=f16`, `-n 2`.  Whatever asks for more than a build of all goes to doit.

The first function is the whole cost of a build of nothing new; it imports nothing but the front door.
"""

import os
import sys


def build(arguments: list[str] | tuple[str, ...]) -> int | None:
    """Answers `coppelius build ARGUMENTS`; None where nobody has the answer yet."""
    root = checkout_above()
    if root is None or not all(_is_override(argument) for argument in arguments):
        return None
    sys.path.insert(0, root)
    try:
        from cache import front
    except ImportError:
        return None
    finally:
        sys.path.remove(root)
    overrides = dict(argument.split("=", 1) for argument in arguments)
    said = front.answer(root, overrides)
    if said is None:
        return None
    sys.stdout.write(f"{said}\n")
    sys.stdout.flush()
    return 0


def checkout_above() -> str | None:
    """The checkout around the working folder, if its code is the code that runs here."""
    ours = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120
    here = os.getcwd()  # noqa: PTH109
    ours = os.path.realpath(ours)
    inside = here == ours or here.startswith(f"{ours}{os.sep}")
    if not inside or not os.path.isfile(f"{ours}/dodo.py"):  # noqa: PTH113
        return None
    while here != ours:  # another checkout between here and there
        if os.path.isfile(f"{here}/dodo.py"):  # noqa: PTH113
            return None
        here = os.path.dirname(here)  # noqa: PTH120
    return ours


def _is_override(argument: str) -> bool:
    return "=" in argument and not argument.startswith("-")
