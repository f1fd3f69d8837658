"""`coppelius audit FILE...`: how much of this machine code the opcode table handles, and what its schedules lack.

Schedules take most of the time, and may be left out.  A kernel with a word that no row takes has no schedule that
could be judged; it counts as unchecked.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from coppelius.cli.commands import REFUSED
from coppelius.cli.machine_code import kernels_of
from coppelius.cli.output import print_json, print_table
from coppelius.container.cubin import Kernel
from coppelius.isa.audit import Audit, audit
from coppelius.isa.table import sm86
from coppelius.isa.word import from_bytes

COLUMNS = ("file", "kernels", "words", "handled", "refused", "wrong")
# hazards printed in full: a reader wants the first ones, `coppelius check` prints all
MOST_HAZARDS = 10


@dataclass
class Schedules:
    """What the schedule checks say of a file's kernels; `first`: three lines each of the first hazards."""

    checked: int = 0
    unchecked: int = 0
    hazards: int = 0
    first: list[str] = field(default_factory=list)

    def __add__(self, other: "Schedules") -> "Schedules":
        return Schedules(
            self.checked + other.checked,
            self.unchecked + other.unchecked,
            self.hazards + other.hazards,
            (self.first + other.first)[: 3 * MOST_HAZARDS],
        )


def _schedules(kernels: Sequence[Kernel]) -> Schedules:
    from coppelius.check.verdict import describe, judge

    total = Schedules()
    for kernel in kernels:
        if not kernel.code:
            continue
        verdict = judge(kernel.code, {}, targets={b.offset: b.targets for b in kernel.indirect_branches})
        if verdict["checks"]["words"] == "refused":
            total += Schedules(unchecked=1)
            continue
        verdict["hazards"] = [h for h in verdict["hazards"] if h["check"] in ("scoreboard", "fixed_latency")]
        total += Schedules(1, 0, len(verdict["hazards"]), describe(kernel.name, verdict)[: 3 * MOST_HAZARDS])
    return total


@click.command("audit")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--raw", is_flag=True, help="Each file is the bare words of one kernel.")
@click.option("--schedule/--no-schedule", "schedule", default=True, help="Check the schedules too (the slower part).")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def audit_command(files: tuple[Path, ...], raw: bool, schedule: bool, as_json: bool) -> int:
    """Decode and encode every sm_86 word of FILES again, compare, and check the schedules.

    A word is handled, refused (no row takes it) or wrong (other bits come back). Exits with 1 where any word is
    refused or wrong, or a schedule has a hazard.
    """
    table = sm86()
    rows: list[tuple[str, int, Audit]] = []
    schedules = Schedules()
    seconds = 0.0
    for path in files:
        kernels = kernels_of(path, raw=raw, data_only=True)
        words = from_bytes(b"".join(kernel.code for kernel in kernels))
        start = time.perf_counter()
        rows.append((str(path), len(kernels), audit(table, words)))
        seconds += time.perf_counter() - start
        schedules += _schedules(kernels) if schedule else Schedules()
    total = sum((row[2] for row in rows), Audit())
    rate = round(total.words / seconds) if seconds else 0
    judged = schedules if schedule else None
    if as_json:
        _print_json(rows, total, rate, judged)
    else:
        _print(rows, total, rate, judged)
    return REFUSED if total.wrong or total.refused or schedules.hazards else 0


def _counts(result: Audit) -> dict[str, int]:
    return {
        "words": result.words,
        "handled": result.handled,
        "refused": sum(result.refused.values()),
        "wrong": result.wrong,
    }


def _print_json(rows: list[tuple[str, int, Audit]], total: Audit, rate: int, schedules: Schedules | None) -> None:
    files: list[dict[str, Any]] = [
        {"file": name, "kernels": kernels, **_counts(found)} for name, kernels, found in rows
    ]
    by_name = [{"name": n, "words": k, "first": total.first[n]} for n, k in total.refused.most_common()]
    print_json(
        **_counts(total),
        words_per_second=rate,
        refused_by=by_name,
        files=files,
        schedules=None if schedules is None else {**vars(schedules)},
    )


def _print(rows: list[tuple[str, int, Audit]], total: Audit, rate: int, schedules: Schedules | None) -> None:
    cells: list[tuple[object, ...]] = [(name, kernels, *_counts(found).values()) for name, kernels, found in rows]
    if len(rows) > 1:
        cells.append(("total", sum(kernels for _, kernels, _ in rows), *_counts(total).values()))
    print_table(COLUMNS, cells, right=COLUMNS[1:])
    click.echo(f"\nhandled {100 * total.share:.4f} %, {rate} words a second")
    if schedules is not None:
        click.echo(
            f"schedules: {schedules.hazards} hazards in {schedules.checked} kernels, {schedules.unchecked} unchecked"
        )
        for line in schedules.first:
            click.echo(line)
    if total.refused:
        click.echo()
        refused = [(name, count, total.first[name]) for name, count in total.refused.most_common()]
        print_table(("refused", "words", "for example"), refused, right=("words",))
