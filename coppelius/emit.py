"""The emit step: one image's kernel, built, scheduled and printed.

The kernel is named by a string and imported here, so that a module that cannot be imported refuses its
own images only.  Beside the listing goes the line table: for each emitted instruction the kernel's file
and line, apart, so that a moved comment leaves the listing's bytes alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from coppelius.builder.assemble import assemble
from coppelius.builder.draft import Source
from coppelius.builder.kernel import Kernel
from coppelius.isa.refusal import Refusal
from coppelius.program.listing import listing_text
from coppelius.schedule.compaction import compact_stalls
from coppelius.schedule.schedule import schedule

RESERVED_REGISTERS = 2  # facts 3.9: the hardware keeps two of the declared registers


@dataclass(frozen=True)
class Emitted:
    """`lines`: JSON text {"files": [...], "lines": [[file, line, region], ...]}, an entry an instruction."""

    listing: str
    lines: str


def emit(
    kernel: str,
    options: Mapping[str, Any],
    *,
    parameters: Sequence[Mapping[str, Any]],
    registers: int | None,
    block_x: int,
) -> Emitted:
    """Build `module:function` with its options.

    parameters: rows with name, kind, type, offset.  registers: the declared budget (None: its demand).
    Refuses by name a kernel that cannot be found, imported, allocated within its budget or scheduled.
    """
    function = _load(kernel)
    k = Kernel({p["name"]: (p["kind"], p["type"], p["offset"]) for p in parameters}, block_x=block_x)
    function(k, **options)
    budget = 253 if registers is None else registers - RESERVED_REGISTERS
    built = assemble(k.draft, k.table, registers=budget)
    program, origin = schedule(built.program, built.pins)
    pinned = frozenset(i for i, old in enumerate(origin) if "stall" in built.pins[old])
    program = compact_stalls(program, pinned=pinned)
    return Emitted(listing_text(program), _line_table([built.sources[i] for i in origin]))


def _load(kernel: str) -> Any:
    module, _, function = kernel.partition(":")
    found = getattr(import_module(module), function, None)
    if found is None:
        raise Refusal(f"kernel {kernel}: module {module} has no {function}")
    return found


def _line_table(sources: Sequence[Source]) -> str:
    files = list(dict.fromkeys(s.file for s in sources))
    lines = [[files.index(s.file), s.line, s.region] for s in sources]
    return json.dumps({"files": files, "lines": lines}, separators=(",", ":")) + "\n"
