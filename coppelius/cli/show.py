"""An image's listing at one stage of its build, each instruction with the source line that made it.

The listing is what the last build left.  `encode` is decoded from the machine words; its lines are those
of the listing it was encoded from.  Guarding moves no instruction; halving may, and its origin table says
which emitted instruction each one came from.
"""

from pathlib import Path
from typing import Any

import click

from coppelius.cli.built import read_json, unreadable
from coppelius.cli.checkout import find_checkout
from coppelius.cli.output import print_json, print_table, unknown
from coppelius.isa.refusal import Refusal

FILES = {"emit": "emit.sass", "halve": "halve.sass", "guard": "guard.sass", "encode": "material.bin"}
NATIVE = "sm86"
WORD_BYTES = 16


@click.command("show")
@click.argument("identity")
@click.option("--stage", type=click.Choice(list(FILES)), default="encode", show_default=True)
@click.option("--stats", is_flag=True, help="What it asks of the machine, instead of the listing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show_command(identity: str, stage: str, stats: bool, as_json: bool) -> None:
    """The listing of IDENTITY after a stage: offset, control word, instruction, source line."""
    from coppelius.catalog import IMAGES

    known = [image.identity for image in IMAGES]
    if identity not in known:
        unknown("image", identity, known)
    folder = find_checkout() / "build" / NATIVE / identity
    if stats:
        _show_stats(identity, folder, as_json)
        return
    lines = listing_of(folder, stage)
    sources = source_lines(folder, stage, len(lines))
    rows = [_split(n, line, source) for n, (line, source) in enumerate(zip(lines, sources, strict=True))]
    if as_json:
        print_json(identity=identity, target=NATIVE, stage=stage, instructions=rows)
        return
    width = max((len(row["control"]) + len(row["text"]) for row in rows), default=0) + 1
    for row in rows:
        code = f"{row['control']} {row['text']}"
        source = f"  {row['source']}" if row["source"] else ""
        click.echo(f"{row['offset']:04x}  {code:<{width}}{source}".rstrip())


def _show_stats(identity: str, folder: Path, as_json: bool) -> None:
    from dataclasses import asdict

    from coppelius.catalog import IMAGES, declaration
    from coppelius.cli.sampling import sampled_accesses
    from coppelius.cli.stats import as_rows, statistics_of
    from coppelius.program.program import Program

    path = _built(folder, "encode")
    row = next(image for image in IMAGES if image.identity == identity)
    material = path.read_bytes()
    made = statistics_of(Program.decode(material), declaration(row), sampled_accesses(row, material))
    if as_json:
        degrees = {"global_efficiency": made.global_efficiency, "conflict_degree": made.conflict_degree}
        print_json(identity=identity, target=NATIVE, **asdict(made), **degrees)
    else:
        print_table(("figure", identity), as_rows(made))


def _built(folder: Path, stage: str) -> Path:
    """What a stage left; refuses where it has not run."""
    path = folder / FILES[stage]
    if not path.is_file():
        raise Refusal(f"{folder.name}: not built as far as {stage}; run doit {stage}:{folder.name}")
    return path


def listing_of(folder: Path, stage: str) -> list[str]:
    """The instructions' lines after a stage, without the listing's header."""
    path = _built(folder, stage)
    if stage == "encode":
        from coppelius.program.listing import listing_lines
        from coppelius.program.program import Program

        return listing_lines(Program.decode(path.read_bytes()))
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.startswith("[")]


def source_lines(folder: Path, stage: str, count: int) -> list[str]:
    """`file:line` for each instruction, or nothing where it is not known."""
    path = folder / "lines.json"
    if not path.is_file():
        return [""] * count
    table = read_json(path)
    emitted = [f"{table['files'][file]}:{line}" for file, line, _region in table["lines"]]
    origin = list(range(len(emitted))) if stage == "emit" else read_json(folder / "origin.json")
    if len(origin) != count:
        raise unreadable(path, f"{len(origin)} lines for {count} instructions")
    return [emitted[ordinal] if ordinal is not None else "" for ordinal in origin]


def _split(ordinal: int, line: str, source: str) -> dict[str, Any]:
    control, _, text = line.partition("] ")
    return {"offset": ordinal * WORD_BYTES, "control": control + "]", "text": text.strip(), "source": source}
