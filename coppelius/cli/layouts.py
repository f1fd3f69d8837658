"""Parts of the graph as text for Graphviz and Mermaid, and laid out by Graphviz where it is installed.

Edges lead from what makes a file to what reads it; both ends have to be in the part.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from coppelius.cli.drawing import LOOKS, Cell
from coppelius.isa.refusal import Refusal


def edges(graph: Any, cells: Mapping[str, Cell]) -> Iterator[tuple[str, str]]:
    for name in cells:
        yield from ((before, name) for before in graph.before(graph.steps[name]) if before in cells)


def dot(graph: Any, cells: Mapping[str, Cell]) -> str:
    """Graphviz's language."""
    lines = ["digraph build {", "  rankdir=LR;", '  node [shape=box, style="rounded,filled", fontname="Helvetica"];']
    for name, cell in cells.items():
        fill, colour, word = LOOKS[cell.look]
        label = f"{name}\\n{word}" if word else name
        lines.append(f'  "{name}" [label="{label}", fillcolor="{fill}", fontcolor="{colour}"];')
    lines += [f'  "{before}" -> "{name}";' for before, name in edges(graph, cells)]
    return "\n".join([*lines, "}", ""])


def mermaid(graph: Any, cells: Mapping[str, Cell]) -> str:
    """Mermaid's flowchart, as many places render in Markdown."""
    number = {name: f"s{n}" for n, name in enumerate(cells)}
    lines = ["flowchart LR"]
    for name, cell in cells.items():
        word = LOOKS[cell.look][2]
        label = f"{name}<br/>{word}" if word else name
        lines.append(f'  {number[name]}["{label}"]:::{cell.look.replace(" ", "_")}')
    lines += [f"  {number[before]} --> {number[name]}" for before, name in edges(graph, cells)]
    for look in dict.fromkeys(cell.look for cell in cells.values()):
        fill, colour, _ = LOOKS[look]
        lines.append(f"  classDef {look.replace(' ', '_')} fill:{fill},color:{colour}")
    return "\n".join([*lines, ""])


def laid_out(graph: Any, cells: Mapping[str, Cell]) -> str:
    """A part as SVG, laid out by Graphviz's dot."""
    try:
        import pygraphviz
    except ImportError:
        raise Refusal(
            "a picture of one image needs pygraphviz: pip install 'coppelius[graph]', or use --format dot"
        ) from None
    drawn: bytes = pygraphviz.AGraph(string=dot(graph, cells)).draw(format="svg", prog="dot")
    return drawn.decode("utf-8")
