"""What `coppelius build` does when something changed: doit, in this process, on this checkout.

The checkout's modules that the command line has loaded are dropped first, so that the build runs from the
sources as they are now (`cache.imports`).
"""

import os
import re
import sys
import tomllib
from typing import Any

import click

from coppelius.arena.addresses import nearest
from coppelius.cli.checkout import find_checkout
from coppelius.cli.identities import complete_step

NOT_STARTED = 3  # published: doit's exit status when it could not start
UNUSABLE = 2


@click.command("build", context_settings={"ignore_unknown_options": True, "help_option_names": ["-h", "--help"]})
@click.option("--trace", type=click.Path(dir_okay=False), help="Write when each step ran (opens in Perfetto).")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, shell_complete=complete_step)
def build_command(trace: str | None, arguments: tuple[str, ...]) -> int:
    """Build what is not up to date; ARGUMENTS are doit's (steps, half=f16, -n 2)."""
    root = find_checkout()
    path = root / "pyproject.toml"
    try:
        tomllib.loads(path.read_text(encoding="utf-8"))  # doit reads it first, and would say so by a traceback
    except FileNotFoundError:
        pass
    except ValueError as error:
        raise click.UsageError(f"{path}: {error}") from None
    if trace is not None:
        os.environ["COPPELIUS_TRACE"] = os.path.abspath(trace)  # noqa: PTH100
    os.chdir(root)
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    for name in [name for name in sys.modules if name.partition(".")[0] in ("coppelius", "tasks", "cache")]:
        del sys.modules[name]
    return _run(arguments)


def _run(arguments: tuple[str, ...]) -> int:
    """doit's `run`, whose objections to its arguments become a line that names what is near."""
    from doit.cmd_run import Run
    from doit.cmdparse import CmdParseError
    from doit.doit_cmd import DoitMain
    from doit.exceptions import InvalidCommand

    objections: list[str] = []

    class Build(Run):  # type: ignore[misc]
        name = "run"

        def parse_execute(self, in_args: list[str]) -> Any:
            try:
                return super().parse_execute(in_args)
            except CmdParseError as error:
                objections.append(_option_objection(error, self.cmdparser.options))
            except InvalidCommand as error:
                if error.not_found is None:
                    raise
                objections.append(_step_objection(error.not_found, [task.name for task in self.task_list]))
            return NOT_STARTED

    class Main(DoitMain):  # type: ignore[misc]
        DOIT_CMDS = (Build,)

    status = Main().run(["run", *arguments])
    if objections:
        raise click.UsageError(objections[0])
    return UNUSABLE if status == NOT_STARTED else int(status or 0)


def _option_objection(error: Exception, options: list[Any]) -> str:
    """What doit said in a line, without its list of all options; and the option that is meant."""
    known = [f"--{name}" for option in options for name in (option.long, option.inverse) if name]
    said = " ".join(re.sub(r"^Error parsing \w+: | \(parsing options.*", "", str(error), flags=re.DOTALL).split())
    named = re.search(r"option (-\S+) not recognized", said)
    near = nearest(named[1], ["--trace", *known]) if named else ""
    return f"{said.rstrip('.')}; {f'nearest: {near}' if near else '`doit help run` lists the options'}"


def _step_objection(name: str, steps: list[str]) -> str:
    near = nearest(name, steps)
    return f"no step {name!r}; {f'nearest: {near}' if near else '`doit list --all` names them'}"
