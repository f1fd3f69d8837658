"""The checkers on any machine code: cubins, fat binaries, raw words, listings.

Three lines a hazard; exit status 1 where there is one.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from coppelius.cli.output import print_json, unknown
from coppelius.isa.refusal import Refusal

_HALVES = ("bf16", "f16")


@click.command("check")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--kernel", "name", help="Only this kernel.")
@click.option("--raw", is_flag=True, help="The files are words and nothing else.")
@click.option("--registers", type=int, help="Registers a launch declares, where the file does not say.")
@click.option("--shared", type=int, help="Shared bytes a launch declares.")
@click.option("--half", type=click.Choice(_HALVES), help="Refuse instructions of the other half format.")
@click.option("--notes", is_flag=True, help="Print notes too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check_command(
    files: Sequence[Path],
    name: str | None,
    raw: bool,
    registers: int | None,
    shared: int | None,
    half: str | None,
    notes: bool,
    as_json: bool,
) -> int:
    """Do the control bits of this machine code cover its own dependences?

    FILE is a cubin, a fat binary or library, a listing, or raw words.
    """
    declared = {"registers": registers, "shared_bytes": shared, "half": half}
    given = {key: value for key, value in declared.items() if value is not None}
    verdicts = []
    for path in files:
        verdicts += [(kernel, _verdict(kernel, given)) for kernel in _kernels(path, raw) if name in (None, kernel[1])]
    if not verdicts and name is not None:
        unknown("kernel", name, [kernel[1] for path in files for kernel in _kernels(path, raw)])
    if as_json:
        print_json(kernels=[{"file": kernel[0], "kernel": kernel[1], **verdict} for kernel, verdict in verdicts])
    else:
        _report(verdicts, notes)
    return 0 if all(verdict["accepted"] for _, verdict in verdicts) else 1


# file, kernel, words, what the container declares, jump targets
_Kernel = tuple[str, str, bytes, dict[str, Any], Mapping[int, Sequence[int]]]


def _kernels(path: Path, raw: bool) -> list[_Kernel]:
    head = path.read_bytes()[:7] if not raw else b""
    if head == b".target":
        from coppelius.program.encoding import encode_listing

        return [(path.name, path.stem, encode_listing(path.read_text(encoding="utf-8")), {}, {})]
    from coppelius.cli.machine_code import kernels_of

    found: list[_Kernel] = []
    for kernel in kernels_of(path, raw=raw):
        targets = {branch.offset: branch.targets for branch in kernel.indirect_branches}
        declared = {"registers": kernel.registers} if kernel.registers else {}
        found.append((path.name, kernel.name, kernel.code, declared, targets))
    return found


def _verdict(kernel: _Kernel, given: dict[str, Any]) -> dict[str, Any]:
    from coppelius.check.verdict import judge

    _, name, code, declared, targets = kernel
    try:
        return judge(code, {**declared, **given}, targets=targets)
    except Refusal as refusal:
        raise Refusal(f"{name}: {refusal}") from refusal


def _report(verdicts: Sequence[tuple[_Kernel, dict[str, Any]]], notes: bool) -> None:
    from coppelius.check.verdict import describe

    for (_, name, *_), verdict in verdicts:
        for line in describe(name, verdict):
            click.echo(line)
        for note in verdict["notes"] if notes else ():
            click.echo(f"{name}: {note['offset']:#06x} note, {note['rule']}: {note['fact']}")
    instructions = sum(verdict["instructions"] for _, verdict in verdicts)
    hazards = sum(len(verdict["hazards"]) for _, verdict in verdicts)
    refused = sum(not verdict["accepted"] for _, verdict in verdicts)
    click.echo(f"{len(verdicts)} kernels, {instructions} instructions, {hazards} hazards, {refused} kernels refused")
