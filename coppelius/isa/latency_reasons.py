"""Cells of the latency grid that shipped code shows often and never at the figure they hold, and why.

A cell with 20 or more witnesses holds the least distance seen, unless it stands here: (table, row, column) to a
reason.  A distance that something else forces proves nothing, and raising the cell to it would only slow programs.
`tests/bench/derive_grid.py` derives all cells anew and holds the grid to this.
"""

from __future__ import annotations

import re
from collections.abc import Mapping


def _reasons(text: Mapping[str, str]) -> dict[tuple[str, str, str], str]:
    """Reason -> lines of a table's name and, two spaces apart, rows with their columns."""
    found: dict[tuple[str, str, str], str] = {}
    for reason, lines in text.items():
        for line in lines.strip().splitlines():
            table, *rows = re.split(r"\s{2,}", line.strip())
            for row in rows:
                name, columns = row.split(":")
                found |= {(table, name, column): reason for column in columns.split()}
    return found


REASONS: Mapping[tuple[str, str, str], str] = _reasons(
    {
        "no pair lies close enough to bind; takes its neighbours' figure": """
            RAW  compare: queue   fma: compare mixed   half: wide   mixed: mixed wide   move.u: move.u
            RAW  move64: address fp64 half mma wide   wide: fp64 half mixed""",
        "written twice without a read between is rare, and never close; published": """
            WAW  alu: mixed wide   fma: mixed move64 wide   half: alu fma   move.u: move.u   wide: alu fma wide
            WAW  move64: mixed mma24 move64 wide""",
        "the first is read, or is skipped, so that nothing brings the two close; as without a guard": """
            WAW guarded  alu: queue   fma: fma queue   mixed: alu fma   move.u: move.u   wide: fma
            WAW guarded  datapath.u: move.u""",
        "the MMA's own result is read before its sources are overwritten, and that takes longer": """
            WAR  mma14: fixed   mma16: mma queue""",
    }
)
