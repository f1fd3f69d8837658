"""How every command prints: a table for people, one JSON document for programs.

JSON is `{"version": N, ...}` with one version for all commands, raised when a key changes its meaning or
goes; a new key does not raise it.  A table is Rich's on a terminal and plain columns elsewhere, where it
neither wraps nor truncates.  Colour only on a terminal, and neither under NO_COLOR nor under CI.
"""

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NoReturn

import click

JSON_VERSION = 1


def print_json(**data: Any) -> None:
    click.echo(json_document(**data), nl=False)


def json_document(**data: Any) -> str:
    """One document, with the version first."""
    return f"{json.dumps({'version': JSON_VERSION, **data}, indent=2, ensure_ascii=False)}\n"


def is_plain() -> bool:
    """Whether output goes elsewhere than to a person's terminal."""
    return not sys.stdout.isatty() or bool(os.environ.get("CI"))


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    right: Iterable[str] = (),
    fold: Iterable[str] = (),
) -> None:
    """A table with these column titles.

    Those in `right` are aligned to the right; those in `fold` give way on a narrow terminal.
    """
    cells = [[str(cell) for cell in row] for row in rows]
    to_right = frozenset(right)
    if is_plain():
        _print_columns(columns, cells, to_right)
    else:
        _print_rich(columns, cells, to_right, frozenset(fold))


def _print_columns(columns: Sequence[str], rows: Sequence[Sequence[str]], right: frozenset[str]) -> None:
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    for row in [columns, *rows]:
        cells = (
            cell.rjust(width) if title in right else cell.ljust(width)
            for cell, width, title in zip(row, widths, columns, strict=True)
        )
        click.echo("  ".join(cells).rstrip())


def _print_rich(
    columns: Sequence[str], rows: Sequence[Sequence[str]], right: frozenset[str], fold: frozenset[str]
) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    for title in columns:
        side: Literal["left", "right"] = "right" if title in right else "left"
        table.add_column(title, justify=side, overflow="fold", no_wrap=title not in fold)
    for row in rows:
        table.add_row(*map(Text, row))  # as Text: brackets in a cell are not Rich's markup
    Console(no_color="NO_COLOR" in os.environ).print(table)


def suggestion(name: str, known: Iterable[str] | Mapping[str, Any]) -> str:
    """`; nearest: X`, or `; known: ...` when nothing is near."""
    from coppelius.arena.addresses import nearest

    names = list(known)
    near = nearest(name, names)
    return f"; nearest: {near}" if near else f"; known: {', '.join(names)}"


def unknown(what: str, name: str, known: Iterable[str]) -> NoReturn:
    """Ends the command: the user named something that is not there."""
    raise click.UsageError(f"no {what} {name!r}{suggestion(name, known)}")
