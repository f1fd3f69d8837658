"""`coppelius graph`: the build graph in the format that is asked for.

`--of` narrows it to one image, what that reads and what reads it; as a picture such a part is laid out by
Graphviz (`pip install 'coppelius[graph]'`), the whole is a grid (`coppelius.cli.drawing`).
"""

from typing import Any

import click

from coppelius.cli.drawing import Cell, draw
from coppelius.cli.identities import complete_identity, steps_of_image
from coppelius.cli.output import json_document
from coppelius.cli.project import open_project, relative_paths

FORMATS = ("svg", "html", "dot", "mermaid", "json")


@click.command("graph")
@click.option("--format", "form", type=click.Choice(FORMATS), default="svg", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("--affected", "paths", metavar="PATH", multiple=True, help="Colour by what an edit of PATH would run.")
@click.option("--of", "identity", metavar="IDENTITY", shell_complete=complete_identity, help="One image's part of it.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, writable=True), help="Write here, not to stdout.")
def graph_command(form: str, as_json: bool, paths: tuple[str, ...], identity: str | None, output: str | None) -> None:
    """The build graph: a row an image, a column a stage, coloured by state."""
    project = open_project()
    from tasks.questions import standings

    edited = relative_paths(project.root, paths)
    wanted = _part(project, identity) if identity is not None else list(project.graph.steps)
    found = standings(project)
    cells = _affected_cells(project, edited) if edited else _state_cells(found)
    cells = {name: cells[name] for name in wanted}
    if as_json or form == "json":
        text = json_document(steps=[_as_json(project, found, n, c) for n, c in cells.items()], affected_by=edited)
    else:
        title = f"an edit of {', '.join(edited)}" if edited else "state of the build"
        text = _text_of(form, project, found, cells, title, identity)
    if output is None:
        click.echo(text, nl=False)
    else:
        with click.open_file(output, "w", encoding="utf-8") as file:
            file.write(text)


def _text_of(form: str, project: Any, found: Any, cells: dict[str, Cell], title: str, of: str | None) -> str:
    if form == "html":
        from coppelius.cli.page import page

        return page(project, found, cells, title)
    from coppelius.cli import layouts

    if form == "svg":
        return draw(project.graph, cells, title) if of is None else layouts.laid_out(project.graph, cells)
    return (layouts.dot if form == "dot" else layouts.mermaid)(project.graph, cells)


def _part(project: Any, identity: str) -> list[str]:
    """An image's steps, what they read, and what reads them directly."""
    own = steps_of_image(project, identity)
    graph = project.graph
    near = {name for step in own for name in graph.before(graph.steps[step])}
    near |= {step.name for step in graph.steps.values() if set(graph.before(step)) & set(own)}
    return [name for name in graph.steps if name in near or name in own]


def _state_cells(found: Any) -> dict[str, Cell]:
    from tasks.questions import UP_TO_DATE, latest_build

    latest = latest_build(found)
    cells = {}
    for name, standing in found.items():
        look = standing.state
        if look == UP_TO_DATE and standing.last and standing.last["build"] == latest:
            look = "restored" if standing.last["restored"] else "run"
        cells[name] = Cell(standing.state, standing.causes, look)
    return cells


def _affected_cells(project: Any, paths: list[str]) -> dict[str, Cell]:
    from tasks.questions import affected

    found = affected(project, paths)
    states = dict.fromkeys(project.graph.steps, "untouched")
    states |= dict.fromkeys(found.runs, "runs") | dict.fromkeys(found.may_run, "may run")
    return {name: Cell(state, [], state) for name, state in states.items()}


def _as_json(project: Any, found: Any, name: str, cell: Cell) -> dict[str, Any]:
    step = project.graph.steps[name]
    return {
        "name": name,
        "stage": step.stage.name,
        "target": step.target,
        "identity": step.identity,
        "state": cell.state,
        "causes": cell.causes,
        "before": project.graph.before(step),
        "last": found[name].last,
    }
