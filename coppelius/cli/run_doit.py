"""What `coppelius build` does when something changed: doit, in this process, on this checkout.

The checkout's modules that the command line has loaded are dropped first, so that the build runs from the
sources as they are now (`cache.imports`).
"""

import os
import sys
import tomllib

import click

from coppelius.cli.checkout import find_checkout

NOT_STARTED = 3  # published: doit's exit status when it could not start
UNUSABLE = 2


@click.command("build", context_settings={"ignore_unknown_options": True, "help_option_names": ["-h", "--help"]})
@click.option("--trace", type=click.Path(dir_okay=False), help="Write when each step ran (opens in Perfetto).")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
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
    from doit.doit_cmd import DoitMain

    status = DoitMain().run(["run", *arguments])
    return UNUSABLE if status == NOT_STARTED else int(status or 0)
