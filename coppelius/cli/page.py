"""The graph as one self-contained page: the grid, the data behind it, and a script; no network.

What the page can do stands in `page.html`; here is what it knows.  Closures of source files are listed once
each, because the steps of a stage share theirs.
"""

import json
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from coppelius.cli.drawing import LOOKS, Cell, draw

TEMPLATE = "page.html"


def page(project: Any, found: Mapping[str, Any], cells: Mapping[str, Cell], title: str) -> str:
    """The page's text."""
    data = json.dumps(_data(project, found, cells), ensure_ascii=False).replace("</", "<\\/")
    template = (Path(__file__).with_name(TEMPLATE)).read_text(encoding="utf-8")
    whole = {"TITLE": escape(title), "GRID": draw(project.graph, cells, title), "DATA": data}
    for name, text in whole.items():
        template = template.replace(f"@@{name}@@", text, 1)
    return template


def _data(project: Any, found: Mapping[str, Any], cells: Mapping[str, Cell]) -> dict[str, Any]:
    from tasks.questions import readers

    steps: list[dict[str, Any]] = []
    closures: dict[tuple[str, ...], int] = {}
    for name, cell in cells.items():
        step, standing = project.graph.steps[name], found[name]
        files = readers(project, step)
        closure = closures.setdefault(tuple(files), len(closures))
        record = project.ledger.records.get(name, {})
        steps.append(
            {
                "name": name,
                "doc": step.stage.doc,
                "look": cell.look,
                "state": standing.state,
                "causes": standing.causes,
                "before": [before for before in project.graph.before(step) if before in cells],
                "code": standing.seen.code,
                "tools": dict(standing.seen.tools),
                "parameters": dict(step.parameters) if step.identity else {"target": step.target},
                "inputs": standing.seen.inputs,
                "outputs": record.get("outputs", [[path, "not made"] for path in step.outputs]),
                "last": standing.last,
                "closure": closure,
            }
        )
    looks = {look: {"fill": fill, "colour": colour} for look, (fill, colour, _) in LOOKS.items()}
    return {"steps": steps, "closures": [list(files) for files in closures], "looks": looks}
