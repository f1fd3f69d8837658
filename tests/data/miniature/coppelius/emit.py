"""A kernel here is a function that gives instructions as words of text."""

import importlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple


class Emitted(NamedTuple):
    listing: str
    lines: str


def emit(kernel: str, options: Mapping[str, int], **_launch: Any) -> Emitted:
    module, _, name = kernel.partition(":")
    function = getattr(importlib.import_module(module), name)
    instructions = function(**options)
    return Emitted("\n".join(instructions) + "\n", json.dumps({"line": function.__code__.co_firstlineno}) + "\n")
