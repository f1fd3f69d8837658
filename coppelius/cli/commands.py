"""The commands by name; each one's module is imported when it is called, so that help stays light.

Every expected error is a plain line on stderr, never a traceback: a refusal exits with 1, usage and
unreadable input with 2.  Anything else is a defect of this program and keeps its traceback.
"""

import errno
import importlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import click

from coppelius.isa.refusal import Refusal

REFUSED, UNUSABLE = 1, 2
OF_WRITING = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # a file's; standard output speaks for itself
_INTERRUPTED = 130  # published: what a shell reports for SIGINT


class Row(NamedTuple):
    """Where a command lives, its line of the help, and whether it works on a checkout."""

    module: str
    attribute: str
    summary: str
    on_checkout: bool = True


# fmt: off
COMMANDS = {
    "images":   Row("images",   "images_command",   "The device images: what each one's launch needs."),
    "build":    Row("run_doit", "build_command",    "Build what is not up to date; an unchanged tree at once."),
    "address":  Row("address",  "address_command",  "Where an image lies in device memory."),
    "show":     Row("show",     "show_command",     "An image's listing, with control words and source lines."),
    "check":    Row("check",    "check_command",    "Do control bits cover the dependences of machine code?", False),
    "audit":    Row("audit",    "audit_command",    "How much of some machine code the opcode table handles.", False),
    "disasm":   Row("disasm",   "disasm_command",   "Machine code as listings, control words included.", False),
    "asm":      Row("asm",      "asm_command",      "A listing back to machine words.", False),
    "run":      Row("run",      "run_command",      "A kernel of a cubin in the emulator, sanitizers on.", False),
    "emulate":  Row("emulate",  "emulate_command",  "An image in the emulator, beside its reference."),
    "cubin":    Row("cubin",    "cubin_command",    "A release as cubins, whole or of what launches name."),
    "kernels":  Row("kernels",  "kernels_command",  "What kernels a file holds, and what each needs.", False),
    "choices":  Row("choices",  "choices_command",  "The tiled products' candidates and recorded choices."),
    "measure":  Row("measure",  "measure_command",  "Times the products' candidates on a card."),
    "affected": Row("affected", "affected_command", "What an edit of these files would rebuild."),
    "explain":  Row("explain",  "explain_command",  "Why an image's steps will run, or last ran."),
    "diff":     Row("diff",     "diff_command",     "An image at two stages, revisions or releases."),
    "graph":    Row("graph",    "graph_command",    "The build graph as a picture, a page or data."),
}
# fmt: on


def works_on_checkout(arguments: Sequence[str]) -> bool:
    """Whether the command that is called works on a checkout, and so must run that checkout's code."""
    name = next((argument for argument in arguments if not argument.startswith("-")), "")
    return name in COMMANDS and COMMANDS[name].on_checkout


class LazyGroup(click.Group):
    """A group whose commands are imported by name, and whose help imports none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        row = COMMANDS.get(cmd_name)
        if row is None:
            return None
        module = importlib.import_module(f"coppelius.cli.{row.module}")
        command: click.Command = getattr(module, row.attribute)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return [CompletionItem(n, help=row.summary) for n, row in COMMANDS.items() if n.startswith(incomplete)]

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            from coppelius.cli.output import suggestion

            ctx.fail(f"no command {args[0]!r}{suggestion(args[0], COMMANDS)}")
        asked_for_help = not {"-h", "--help"}.isdisjoint(args)
        if args[0] in COMMANDS and COMMANDS[args[0]].on_checkout and not asked_for_help and not ctx.resilient_parsing:
            from coppelius.cli.checkout import find_checkout

            find_checkout()  # or an installed catalogue would answer for a tree that is not there
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, row.summary) for name, row in COMMANDS.items()])


def _print_version(ctx: click.Context, _option: click.Parameter, asked: bool) -> None:
    if not asked:
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        found = version("coppelius")
    except PackageNotFoundError:
        found = "(run from a checkout that is not installed)"
    click.echo(f"coppelius {found}")
    ctx.exit()


@click.command(cls=LazyGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version,
              help="Print the version and exit.")  # fmt: skip
@click.pass_context
def group(ctx: click.Context) -> None:
    """Write, build, check and run NVIDIA GPU machine code.

    `doit` builds; these commands look at what is built, and at any machine code.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def run(arguments: Sequence[str]) -> int:
    """Runs a command; every expected error becomes a line and an exit status."""
    try:
        result = group.main(list(arguments), prog_name="coppelius", standalone_mode=False)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        return _fail(error.format_message(), error.exit_code, context.command_path if context else "coppelius")
    except Refusal as refusal:
        return _fail(str(refusal), getattr(refusal, "status", REFUSED))
    except OSError as error:
        what = "output" if error.errno in OF_WRITING else "input"
        return _fail(f"{error.filename or what}: {error.strerror or error}", UNUSABLE)
    except UnicodeDecodeError as error:
        return _fail(f"input is not text: {error}", UNUSABLE)
    except (click.Abort, KeyboardInterrupt):
        return _INTERRUPTED
    return result if isinstance(result, int) else 0


def _fail(message: str, status: int, program: str = "coppelius") -> int:
    click.echo(f"{program}: {message}", err=True)
    return status
