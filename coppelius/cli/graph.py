"""The build graph as one picture: a row an image, a column a stage, coloured by how each step stands.

A layout of all nodes and edges would be unreadable; the edges are the same for every image, so the grid's
order says them: left to right, and `place` from row to row.  Every state has a word beside its colour.
"""

from collections import Counter
from collections.abc import Mapping
from html import escape
from typing import Any, NamedTuple

import click

from coppelius.cli.output import print_json
from coppelius.cli.project import open_project, relative_paths

# fmt: off
#              fill       text       word in the cell
LOOKS = {
    "up to date": ("#dcefe3", "#1d4d33", ""),
    "stale":      ("#f4b942", "#3d2b00", "stale"),
    "waiting":    ("#fae6b8", "#5c4813", "after stale"),
    "refused":    ("#b3261e", "#ffffff", "refused"),
    "runs":       ("#1f5fa8", "#ffffff", "runs"),
    "may run":    ("#c3daf3", "#123a66", "may run"),
    "untouched":  ("#f0f0f0", "#6a6a6a", ""),
}
# fmt: on
CELL_WIDTH, CELL_HEIGHT, GAP = 84, 17, 2
LABEL_WIDTH, HEADER, LEGEND = 232, 44, 34
FONT = "font-family='DejaVu Sans, Helvetica, Arial, sans-serif'"


class Cell(NamedTuple):
    state: str
    causes: list[str]


@click.command("graph")
@click.option("--format", "form", type=click.Choice(["svg", "json"]), default="svg", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("--affected", "paths", metavar="PATH", multiple=True, help="Colour by what an edit of PATH would run.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, writable=True), help="Write here, not to stdout.")
def graph_command(form: str, as_json: bool, paths: tuple[str, ...], output: str | None) -> None:
    """The build graph: a row an image, a column a stage, coloured by state."""
    project = open_project()
    edited = relative_paths(project.root, paths)
    cells = _affected_cells(project, edited) if edited else _state_cells(project)
    if as_json or form == "json":
        print_json(steps=[_as_json(project, name, cell) for name, cell in cells.items()], affected_by=edited)
        return
    title = f"an edit of {', '.join(edited)}" if edited else "state of the build"
    picture = draw(project.graph, cells, title)
    if output is None:
        click.echo(picture, nl=False)
    else:
        with click.open_file(output, "w", encoding="utf-8") as file:
            file.write(picture)


def _state_cells(project: Any) -> dict[str, Cell]:
    from tasks.questions import standings

    return {name: Cell(found.state, found.causes) for name, found in standings(project).items()}


def _affected_cells(project: Any, paths: list[str]) -> dict[str, Cell]:
    from tasks.questions import affected

    found = affected(project, paths)
    states = dict.fromkeys(project.graph.steps, "untouched")
    states |= dict.fromkeys(found.runs, "runs") | dict.fromkeys(found.may_run, "may run")
    return {name: Cell(state, []) for name, state in states.items()}


def _as_json(project: Any, name: str, cell: Cell) -> dict[str, Any]:
    step = project.graph.steps[name]
    return {
        "name": name,
        "stage": step.stage.name,
        "target": step.target,
        "identity": step.identity,
        "state": cell.state,
        "causes": cell.causes,
        "before": project.graph.before(step),
    }


def draw(graph: Any, cells: Mapping[str, Cell], title: str) -> str:
    """The picture as SVG text; the same for the same states."""
    identities = list(dict.fromkeys(step.identity for step in graph.steps.values() if step.identity))
    columns = list(dict.fromkeys(step.group for step in graph.steps.values()))
    rows = max(len(identities), 1)
    width = LABEL_WIDTH + len(columns) * (CELL_WIDTH + GAP) + 8
    height = HEADER + rows * (CELL_HEIGHT + GAP) + LEGEND
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' "
        f"viewBox='0 0 {width} {height}' {FONT} font-size='10'>",
        f"<rect width='{width}' height='{height}' fill='#ffffff'/>",
        _text(8, 18, title, "#222222", "font-size='13' font-weight='bold'"),
    ]
    for n, column in enumerate(columns):
        parts.append(_text(_x(n) + CELL_WIDTH / 2, HEADER - 6, column, "#222222", "text-anchor='middle'"))
    for n, identity in enumerate(identities):
        parts.append(_text(8, _y(n) + CELL_HEIGHT - 5, identity, "#222222"))
    for name, cell in cells.items():
        step = graph.steps[name]
        column = _x(columns.index(step.group))
        top = _y(identities.index(step.identity)) if step.identity else HEADER
        tall = CELL_HEIGHT if step.identity else rows * (CELL_HEIGHT + GAP) - GAP
        parts.append(_box(column, top, tall, name, cell))
    counts = Counter(cell.state for cell in cells.values())
    at = 8.0
    for state, (fill, _, _) in LOOKS.items():
        if counts[state]:
            label = f"{counts[state]} {state}"
            parts.append(f"<rect x='{at:g}' y='{height - 22}' width='12' height='12' fill='{fill}' stroke='#999999'/>")
            parts.append(_text(at + 17, height - 12, label, "#222222"))
            at += 34 + 6.5 * len(label)
    return "\n".join([*parts, "</svg>", ""])


def _x(column: int) -> int:
    return LABEL_WIDTH + column * (CELL_WIDTH + GAP)


def _y(row: int) -> int:
    return HEADER + row * (CELL_HEIGHT + GAP)


def _text(x: float, y: float, text: str, colour: str, more: str = "") -> str:
    return f"<text x='{x:g}' y='{y:g}' fill='{colour}' {more}>{escape(text)}</text>"


def _box(x: int, y: int, height: int, name: str, cell: Cell) -> str:
    fill, colour, word = LOOKS[cell.state]
    hover = escape("\n".join([f"{name}: {cell.state}", *cell.causes]))
    box = f"<rect x='{x}' y='{y}' width='{CELL_WIDTH}' height='{height}' rx='2' fill='{fill}'/>"
    label = _text(x + CELL_WIDTH / 2, y + height / 2 + 3.5, word, colour, "text-anchor='middle'") if word else ""
    return f"<g><title>{hover}</title>{box}{label}</g>"
