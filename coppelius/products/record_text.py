"""The record's text: read without running it, and written anew with other lines.

Only literals count: `RUNS` and `CHOICES` between the marks of the formatter.  Everything around them, the rule in the
docstring too, stays as it was.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from coppelius.isa.refusal import Refusal
from coppelius.products import record
from coppelius.products.record import MEASURED, MODELLED, Choice, Run, Runs

REVIEWED = Path(record.__file__)
_BEGIN, _END = "# fmt: off\n", "# fmt: on\n"
_NAMES = {"MEASURED": MEASURED, "MODELLED": MODELLED, "RTX_3090": record.RTX_3090}
_MAKERS: Mapping[str, Callable[..., Any]] = {"Choice": Choice, "Run": Run}
_RUNS_HEAD = "RUNS: Runs = {\n    # card, date: SMs, MHz, MHz of memory, driver\n"
_CHOICES_HEAD = (
    "CHOICES: dict[str, Choice] = {\n"
    "    # product                          candidate, microseconds, basis, card; date of a measurement\n"
)


def record_text(source: str, choices: Mapping[str, Choice], runs: Runs) -> str:
    """`source`, a record's text, with these lines."""
    head, begin, rest = source.partition(_BEGIN)
    _, end, tail = rest.partition(_END)
    if not begin or not end:
        raise Refusal("the record has no lines between '# fmt: off' and '# fmt: on'")
    rows = [_RUNS_HEAD]
    for (card, date), r in sorted(runs.items()):
        rows.append(f'    ("{card}", "{date}"): Run({r.sms}, {r.megahertz}, {r.memory_megahertz}, "{r.driver}"),\n')
    rows += ["}\n", _CHOICES_HEAD]
    for name, choice in choices.items():
        key = f'"{name}":'
        rows.append(f"    {key:<36}{_choice(choice)},\n")
    return "".join([head, begin, *rows, "}\n", end, tail])


def _choice(choice: Choice) -> str:
    names = {value: name for name, value in _NAMES.items()}
    card = names.get(choice.card, f'"{choice.card}"')
    date = f', "{choice.date}"' if choice.date else ""
    return f"Choice({choice.candidate}, {choice.microseconds:6.1f}, {names[choice.basis]}, {card}{date})"


def read_record(text: str, origin: str) -> tuple[dict[str, Choice], dict[tuple[str, str], Run]]:
    """The lines of a record's text; refuses by place what is no literal."""
    found: dict[str, Any] = {}
    try:
        for node in ast.parse(text).body:
            target = node.target if isinstance(node, ast.AnnAssign) else None
            if isinstance(target, ast.Name) and target.id in ("RUNS", "CHOICES") and isinstance(node, ast.AnnAssign):
                found[target.id] = _value(node.value, origin)
    except SyntaxError as error:
        raise Refusal(f"{origin}:{error.lineno}: no record: {error.msg}") from None
    if set(found) != {"RUNS", "CHOICES"}:
        raise Refusal(f"{origin}: no record: it gives no RUNS and CHOICES")
    return found["CHOICES"], found["RUNS"]


def _value(node: ast.expr | None, origin: str) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name) and node.id in _NAMES:
        return _NAMES[node.id]
    if isinstance(node, ast.Tuple):
        return tuple(_value(item, origin) for item in node.elts)
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return {_value(key, origin): _value(value, origin) for key, value in pairs}
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _MAKERS and not node.keywords:
        try:
            return _MAKERS[node.func.id](*(_value(item, origin) for item in node.args))
        except TypeError as error:
            raise Refusal(f"{origin}:{node.lineno}: {error}") from None
    line = getattr(node, "lineno", 0)
    raise Refusal(f"{origin}:{line}: a record holds literals, Choice(...) and Run(...) only")
