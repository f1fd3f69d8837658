"""An image's listing at one stage of its build, each instruction with the source line that made it.

The listing is what the last build left (`coppelius.cli.stages`).  Of the machine words, whatever the target, the
lines are those of the listing they were encoded from.
"""

from pathlib import Path
from typing import Any

import click

from coppelius.cli.checkout import find_checkout
from coppelius.cli.identities import complete_identity
from coppelius.cli.output import print_json, print_table, unknown
from coppelius.cli.stages import NATIVE, STAGES, listing_of, source_lines, stage_file

WORD_BYTES = 16


@click.command("show")
@click.argument("identity", shell_complete=complete_identity)
@click.option("--stage", type=click.Choice(list(STAGES)), default="encode", show_default=True)
@click.option("--stats", is_flag=True, help="What it asks of the machine, instead of the listing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show_command(identity: str, stage: str, stats: bool, as_json: bool) -> None:
    """The listing of IDENTITY after a stage: offset, control word, instruction, source line."""
    from coppelius.catalog import IMAGES

    known = [image.identity for image in IMAGES]
    if identity not in known:
        unknown("image", identity, known)
    root = find_checkout()
    if stats:
        if STAGES[stage].target != NATIVE:
            raise click.UsageError(f"--stats: counted for {NATIVE} alone, not for {stage}")
        _show_stats(identity, root, as_json)
        return
    lines = listing_of(root, identity, stage)
    sources = source_lines(root, identity, stage, len(lines))
    rows = [_split(n, line, source) for n, (line, source) in enumerate(zip(lines, sources, strict=True))]
    if as_json:
        print_json(identity=identity, target=STAGES[stage].target, stage=stage, instructions=rows)
        return
    width = max((len(row["control"]) + len(row["text"]) for row in rows), default=0) + 1
    for row in rows:
        code = f"{row['control']} {row['text']}"
        source = f"  {row['source']}" if row["source"] else ""
        click.echo(f"{row['offset']:04x}  {code:<{width}}{source}".rstrip())


def _show_stats(identity: str, root: Path, as_json: bool) -> None:
    from dataclasses import asdict

    from coppelius.catalog import IMAGES, declaration
    from coppelius.cli.sampling import sampled_accesses
    from coppelius.cli.stats import as_rows, statistics_of
    from coppelius.program.program import Program

    path = stage_file(root, identity, "encode")
    row = next(image for image in IMAGES if image.identity == identity)
    material = path.read_bytes()
    made = statistics_of(Program.decode(material), declaration(row), sampled_accesses(row, material))
    if as_json:
        degrees = {"global_efficiency": made.global_efficiency, "conflict_degree": made.conflict_degree}
        print_json(identity=identity, target=NATIVE, **asdict(made), **degrees)
    else:
        print_table(("figure", identity), as_rows(made))


def _split(ordinal: int, line: str, source: str) -> dict[str, Any]:
    control, _, text = line.partition("] ")
    return {"offset": ordinal * WORD_BYTES, "control": control + "]", "text": text.strip(), "source": source}
