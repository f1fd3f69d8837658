"""How stages spell what they write; part of the code of each stage that uses it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def json_text(data: Any) -> str:
    """One spelling for equal data, so that equal results are equal files."""
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def only_text(inputs: Sequence[Path]) -> str:
    """The text of a stage's one input."""
    (path,) = inputs
    return path.read_text(encoding="utf-8")
