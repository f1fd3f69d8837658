"""`coppelius kernels FILE`: what kernels a file holds, and what each needs."""

from pathlib import Path
from typing import Any

import click

from coppelius.cli.machine_code import kernels_of
from coppelius.cli.output import print_json, print_table
from coppelius.container.cubin import Kernel

COLUMNS = ("kernel", "code bytes", "instructions", "registers", "shared", "local", "parameters", "constant bank")


def _parse_architecture(_context: click.Context, _option: click.Parameter, value: str) -> int:
    digits = value.removeprefix("sm_")
    if not digits.isdecimal():
        raise click.BadParameter(f"{value!r} is no architecture; write sm_86")
    return int(digits)


@click.command("kernels")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--arch", default="sm_86", show_default=True, callback=_parse_architecture, help="Architecture to read.")
@click.option("--raw", is_flag=True, help="The file is the bare words of one kernel.")
@click.option("--relocatable", is_flag=True, help="Cubins that still need a linker, too.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def kernels_command(file: Path, arch: int, raw: bool, relocatable: bool, as_json: bool) -> None:
    """The kernels of a cubin, fat binary, executable or library, and what each needs.

    Sizes are bytes. Shared is the static part for a block; local is for a thread, with all it calls (? for a
    recursion); the constant bank is bank 0, parameters included.
    """
    kernels = kernels_of(file, arch, raw=raw, relocatable=relocatable)
    if as_json:
        print_json(file=str(file), architecture=arch, kernels=[_as_data(kernel) for kernel in kernels])
        return
    print_table(COLUMNS, [_row(kernel) for kernel in kernels], right=COLUMNS[1:])


def _bank_bytes(kernel: Kernel) -> int:
    bank = kernel.constant(0)
    return len(bank.data) if bank else 0


def _local_bytes(kernel: Kernel) -> int | None:
    return None if kernel.stack is None else max(kernel.frame, kernel.stack)


def _row(kernel: Kernel) -> tuple[object, ...]:
    name = kernel.name if kernel.is_entry else f"{kernel.name} (device function)"
    local = _local_bytes(kernel)
    sizes = (len(kernel.code), kernel.instructions, kernel.registers, kernel.shared, "?" if local is None else local)
    return (name, *sizes, kernel.parameter_bytes, _bank_bytes(kernel))


def _as_data(kernel: Kernel) -> dict[str, Any]:
    return {
        "name": kernel.name,
        "entry": kernel.is_entry,
        "origin": kernel.origin,
        "code_bytes": len(kernel.code),
        "instructions": kernel.instructions,
        "registers": kernel.registers,
        "shared_bytes": kernel.shared,
        "local_bytes": _local_bytes(kernel),
        "barriers": kernel.barriers,
        "parameter_bytes": kernel.parameter_bytes,
        "parameter_base": kernel.parameter_base,
        "parameters": [{"offset": row.offset, "size": row.size} for row in kernel.parameters],
        "constant_banks": {str(bank.bank): len(bank.data) for bank in kernel.constants},
        "max_threads": kernel.max_threads,
        "required_threads": kernel.required_threads,
    }
