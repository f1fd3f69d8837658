"""`coppelius disasm FILE`: machine code as listings, control words included."""

from pathlib import Path

import click

from coppelius.cli.machine_code import chosen, kernels_of
from coppelius.cli.output import print_json
from coppelius.container.cubin import Kernel
from coppelius.isa.refusal import Refusal
from coppelius.program.listing import listing_lines, listing_text
from coppelius.program.program import Program


@click.command("disasm")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--kernel", "name", metavar="NAME", help="Only this kernel.")
@click.option("--raw", is_flag=True, help="The file is the bare words of one kernel.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def disasm_command(file: Path, name: str | None, raw: bool, as_json: bool) -> None:
    """The listing of each sm_86 kernel in FILE.

    One kernel's listing can be read back with `coppelius asm`; of several each begins with `# NAME`.
    """
    kernels = chosen(kernels_of(file, raw=raw), name)
    programs = [(kernel, _decode(kernel)) for kernel in kernels]
    if as_json:
        rows = [{"name": kernel.name, "instructions": listing_lines(program)} for kernel, program in programs]
        print_json(file=str(file), target=programs[0][1].table.target, kernels=rows)
        return
    for kernel, program in programs:
        if len(programs) > 1:
            click.echo(f"# {kernel.name}")
        click.echo(listing_text(program), nl=False)


def _decode(kernel: Kernel) -> Program:
    try:
        return Program.decode(kernel.code)
    except Refusal as refusal:
        raise Refusal(f"{kernel.name}: {refusal}") from None
