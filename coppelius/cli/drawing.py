"""The whole graph as one picture: a row an image, a column a stage, coloured by how each step stands.

A layout of all nodes and edges would be unreadable; the edges are the same for every image, so the grid's
order says them: left to right, and `place` from row to row.  Every state has a word beside its colour.
"""

from collections import Counter
from collections.abc import Mapping
from html import escape
from typing import Any, NamedTuple

# fmt: off
#              fill       text       word in the cell
LOOKS = {
    "up to date": ("#dcefe3", "#1d4d33", ""),
    "run":        ("#8fcfa8", "#12351f", "run"),
    "restored":   ("#a8dada", "#123c3c", "restored"),
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
    """`state` for programs; `look` is the state, or how the latest build made the step."""

    state: str
    causes: list[str]
    look: str


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
    return "\n".join([*parts, *_legend(cells, height), "</svg>", ""])


def _legend(cells: Mapping[str, Cell], height: int) -> list[str]:
    counts, parts, at = Counter(cell.look for cell in cells.values()), [], 8.0
    for look, (fill, _, _) in LOOKS.items():
        if counts[look]:
            label = f"{counts[look]} {look}"
            parts.append(f"<rect x='{at:g}' y='{height - 22}' width='12' height='12' fill='{fill}' stroke='#999999'/>")
            parts.append(_text(at + 17, height - 12, label, "#222222"))
            at += 34 + 6.5 * len(label)
    return parts


def _x(column: int) -> int:
    return LABEL_WIDTH + column * (CELL_WIDTH + GAP)


def _y(row: int) -> int:
    return HEADER + row * (CELL_HEIGHT + GAP)


def _text(x: float, y: float, text: str, colour: str, more: str = "") -> str:
    return f"<text x='{x:g}' y='{y:g}' fill='{colour}' {more}>{escape(text)}</text>"


def _box(x: int, y: int, height: int, name: str, cell: Cell) -> str:
    fill, colour, word = LOOKS[cell.look]
    hover = escape("\n".join([f"{name}: {cell.look}", *cell.causes]))
    box = f"<rect x='{x}' y='{y}' width='{CELL_WIDTH}' height='{height}' rx='2' fill='{fill}'/>"
    middle = (x + CELL_WIDTH / 2, y + height / 2 + 3.5)
    label = _text(*middle, word, colour, "text-anchor='middle'") if word else ""
    return f"<g data-step='{escape(name)}'><title>{hover}</title>{box}{label}</g>"
