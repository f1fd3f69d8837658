"""`doit gc`: keeps the store within a size, whatever was used last staying longest."""

import re
from typing import Any

from coppelius.isa.refusal import Refusal
from tasks.step import project

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def parse_size(text: str) -> int:
    """`500M` as bytes."""
    match = re.fullmatch(r"(\d+)\s*([KMG]?)i?B?", text.strip(), re.IGNORECASE)
    if match is None:
        raise Refusal(f"size {text!r}: write it like 500M or 2G")
    return int(match[1]) * UNITS[match[2].upper()]


def collect(size: str) -> Any:
    from doit.exceptions import TaskFailed

    try:
        bound = parse_size(size)
    except Refusal as refusal:
        return TaskFailed(str(refusal))
    done = project().store.collect(bound)
    print(
        f"store: {done.kept} traces kept, {done.removed} removed; "
        f"{done.bytes_kept / (1 << 20):.1f} MiB kept, {done.bytes_freed / (1 << 20):.1f} MiB freed"
    )
    return None


def task_gc() -> dict[str, Any]:
    """bound the store: what was used longest ago goes first (--size 2G)"""
    return {
        "actions": [(collect,)],
        "params": [{"name": "size", "long": "size", "default": "2G", "help": "what the store may take, as 500M or 2G"}],
        "verbosity": 2,
    }
