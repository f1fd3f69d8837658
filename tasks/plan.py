"""The plan settings: `[tool.coppelius]` in pyproject.toml, overridden for one run by `doit NAME=VALUE`.

A setting is refused by name where it is read, before anything is built.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from coppelius.arena.placement import check_plan
from coppelius.isa.refusal import Refusal
from coppelius.model import HALF_FORMATS


@dataclass(frozen=True)
class Plan:
    half: str = "bf16"
    base: int = 0x1_0000_0000
    alignment: int = 256
    targets: tuple[str, ...] = ("sm86",)


def read_plan(root: Path, overrides: Mapping[str, str], known_targets: tuple[str, ...]) -> Plan:
    """The plan of the checkout at `root`; `overrides` are texts as a command line gives them."""
    path = root / "pyproject.toml"
    try:
        tools = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {})
    except OSError:
        tools = {}
    except ValueError as error:
        raise Refusal(f"pyproject.toml: {error}") from error
    settings = tools.get("coppelius", {}) if isinstance(tools, dict) else tools
    if not isinstance(settings, dict):
        raise Refusal("pyproject.toml: tool.coppelius is no table; write [tool.coppelius] and a setting a line")
    names = [field.name for field in fields(Plan)]
    for name in [*settings, *overrides]:
        if name not in names:
            raise Refusal(f"{name}: unknown plan setting; known: {', '.join(names)}")
    values = settings | {name: _parsed(name, text) for name, text in overrides.items()}
    _refuse_bad(values, known_targets)
    if "targets" in values:
        values["targets"] = tuple(values["targets"])
    return Plan(**values)


def _parsed(name: str, text: str) -> Any:
    if name == "targets":
        return [part.strip() for part in text.split(",")]
    if name == "half":
        return text
    try:
        return int(text, 0)
    except ValueError:
        raise Refusal(f"{name}={text}: not an integer; write it like 256 or 0x100000000") from None


def _refuse_bad(values: Mapping[str, Any], known_targets: tuple[str, ...]) -> None:
    half = values.get("half", Plan.half)
    if half not in HALF_FORMATS:
        raise Refusal(f"half = {half!r}: unknown half format; known: {', '.join(HALF_FORMATS)}")
    for name in ("base", "alignment"):
        value = values.get(name, getattr(Plan, name))
        if type(value) is not int:
            raise Refusal(f"{name} = {value!r}: not an integer; write it like 256 or 0x100000000")
    check_plan(values.get("base", Plan.base), values.get("alignment", Plan.alignment))
    targets = values.get("targets", Plan.targets)
    if not isinstance(targets, list | tuple) or not targets:
        raise Refusal(f'targets = {targets!r}: give a list such as ["sm86"]')
    for target in targets:
        if target not in known_targets:
            raise Refusal(f"target {target!r}: not one we build; known: {', '.join(known_targets)}")
    if len(set(targets)) < len(targets):
        raise Refusal(f"targets = {list(targets)!r}: a target is named twice")
