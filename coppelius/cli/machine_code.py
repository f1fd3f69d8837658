"""What the commands on machine code share: kernels from a file, chosen by name; errors of one line."""

from pathlib import Path

import click

from coppelius.cli.commands import UNUSABLE
from coppelius.cli.output import unknown
from coppelius.container.cubin import Kernel
from coppelius.container.reader import read_kernels
from coppelius.isa.refusal import Refusal

ARCHITECTURE = 86


class Unreadable(click.ClickException):
    """A file that is no machine code: one line, and the status of unusable input."""

    exit_code = UNUSABLE


def kernels_of(
    path: Path,
    architecture: int = ARCHITECTURE,
    *,
    raw: bool = False,
    relocatable: bool = False,
    data_only: bool = False,
) -> list[Kernel]:
    """The kernels of a file; one line and status 2 where there are none, unless `data_only` allows it."""
    try:
        return read_kernels(path, architecture, raw=raw, relocatable=relocatable, data_only=data_only)
    except Refusal as refusal:
        raise Unreadable(str(refusal)) from None


def chosen(kernels: list[Kernel], name: str | None) -> list[Kernel]:
    """The kernel of that name, or all of them."""
    if name is None:
        return kernels
    found = [kernel for kernel in kernels if kernel.name == name]
    if not found:
        unknown("kernel", name, [kernel.name for kernel in kernels])
    return found[:1]
