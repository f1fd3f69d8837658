"""`coppelius audit FILE...`: how much of the machine code in these files the opcode table handles."""

import time
from pathlib import Path
from typing import Any

import click

from coppelius.cli.commands import REFUSED
from coppelius.cli.machine_code import kernels_of
from coppelius.cli.output import print_json, print_table
from coppelius.isa.audit import Audit, audit
from coppelius.isa.table import sm86
from coppelius.isa.word import from_bytes

COLUMNS = ("file", "kernels", "words", "handled", "refused", "wrong")


@click.command("audit")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--raw", is_flag=True, help="Each file is the bare words of one kernel.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def audit_command(files: tuple[Path, ...], raw: bool, as_json: bool) -> int:
    """Decode and encode every sm_86 word of FILES again, and compare.

    A word is handled, refused (no row takes it) or wrong (other bits come back). Exits with 1 where any word is
    refused or wrong.
    """
    table = sm86()
    rows: list[tuple[str, int, Audit]] = []
    seconds = 0.0
    for path in files:
        kernels = kernels_of(path, raw=raw, data_only=True)
        words = from_bytes(b"".join(kernel.code for kernel in kernels))
        start = time.perf_counter()
        rows.append((str(path), len(kernels), audit(table, words)))
        seconds += time.perf_counter() - start
    total = sum((row[2] for row in rows), Audit())
    rate = round(total.words / seconds) if seconds else 0
    if as_json:
        _print_json(rows, total, rate)
    else:
        _print(rows, total, rate)
    return REFUSED if total.wrong or total.refused else 0


def _counts(result: Audit) -> dict[str, int]:
    return {
        "words": result.words,
        "handled": result.handled,
        "refused": sum(result.refused.values()),
        "wrong": result.wrong,
    }


def _print_json(rows: list[tuple[str, int, Audit]], total: Audit, rate: int) -> None:
    files: list[dict[str, Any]] = [
        {"file": name, "kernels": kernels, **_counts(found)} for name, kernels, found in rows
    ]
    by_name = [{"name": n, "words": k, "first": total.first[n]} for n, k in total.refused.most_common()]
    print_json(**_counts(total), words_per_second=rate, refused_by=by_name, files=files)


def _print(rows: list[tuple[str, int, Audit]], total: Audit, rate: int) -> None:
    cells: list[tuple[object, ...]] = [(name, kernels, *_counts(found).values()) for name, kernels, found in rows]
    if len(rows) > 1:
        cells.append(("total", sum(kernels for _, kernels, _ in rows), *_counts(total).values()))
    print_table(COLUMNS, cells, right=COLUMNS[1:])
    click.echo(f"\nhandled {100 * total.share:.4f} %, {rate} words a second")
    if total.refused:
        click.echo()
        refused = [(name, count, total.first[name]) for name, count in total.refused.most_common()]
        print_table(("refused", "words", "for example"), refused, right=("words",))
