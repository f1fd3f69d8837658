"""The checkout's own tasks, opened for questions; nothing is built and nothing is locked.

The one place of this package that imports a checkout's `tasks` and `cache`.
"""

import sys
from pathlib import Path
from typing import Any

import click

from coppelius.cli.checkout import find_checkout
from coppelius.isa.refusal import Refusal


def open_project() -> Any:
    """The project of the checkout around the working folder."""
    root = find_checkout()
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    from cache import imports

    imports.install(root)
    from tasks.project import Project

    try:
        return Project(root, {})
    except Refusal as refusal:  # a plan or a catalogue that cannot be read
        raise click.UsageError(str(refusal)) from None


def relative_paths(root: Path, paths: tuple[str, ...]) -> list[str]:
    """Paths as the graph spells them; the user's are relative to the working folder."""
    found = []
    for path in paths:
        # only folders are resolved: a published file is a link
        whole = Path(path).absolute()
        resolved = whole.parent.resolve() / whole.name
        if not resolved.is_relative_to(root):
            raise click.UsageError(f"{path}: outside of the checkout {root}")
        found.append(resolved.relative_to(root).as_posix())
    return found
