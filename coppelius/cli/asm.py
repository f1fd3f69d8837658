"""`coppelius asm LISTING`: a listing back to the bytes it was read from."""

from pathlib import Path

import click

from coppelius.cli.commands import UNUSABLE
from coppelius.program.listing import parse_listing


class UnusableOutput(click.ClickException):
    """An output that would overwrite the input."""

    exit_code = UNUSABLE


@click.command("asm")
@click.argument("listing", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Where the words go; else LISTING with .bin.")
def asm_command(listing: Path, output: Path | None) -> None:
    """Encode LISTING, as `coppelius disasm` prints it, to machine words."""
    target = output or listing.with_suffix(".bin")
    if target.resolve() == listing.resolve():
        raise UnusableOutput(f"{listing}: the words would overwrite the listing; name another file with -o")
    code = parse_listing(listing.read_text(encoding="utf-8")).encode()
    target.write_bytes(code)
    click.echo(f"{target}: {len(code) // 16} instructions")
