"""What an edit would rebuild, before doing it.

A step that reads the file will run; a step after it runs if what it reads comes out different, which nobody
knows before.
"""

import click

from coppelius.cli.output import print_json, print_table
from coppelius.cli.project import open_project, relative_paths


@click.command("affected")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def affected_command(paths: tuple[str, ...], as_json: bool) -> None:
    """The steps that an edit of these files would run, and those after them."""
    project = open_project()
    from tasks.questions import affected

    edited = relative_paths(project.root, paths)
    found = affected(project, edited)
    if as_json:
        print_json(paths=edited, runs=found.runs, may_run=found.may_run)
        return
    missing = [path for path in edited if not (project.root / path).exists()]
    if missing and not found.runs:
        raise click.UsageError(f"{missing[0]}: no such file, and no step reads one of that name")
    if not found.runs:
        click.echo(f"no step reads {', '.join(edited)}")
        return
    rows = [(name, "runs") for name in found.runs] + [(name, "if its inputs change") for name in found.may_run]
    print_table(("step", "when"), rows)
    total = len(project.graph.steps)
    click.echo(f"{len(found.runs)} of {total} steps run, {len(found.may_run)} more if their inputs change")
