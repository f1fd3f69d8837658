"""The console script's entry: light, so that a command pays only for what it uses.

Exit status: 0; 1 for what was refused, hazards found or a failed step; 2 for usage and unreadable input.
"""

import sys

from coppelius.standard_output import StandardOutput


def main(arguments: list[str] | tuple[str, ...] | None = None) -> int:
    """Runs one command and returns its exit status."""
    stdout = sys.stdout
    guarded = StandardOutput(stdout)
    sys.stdout = guarded
    try:
        status = _run(arguments)
        guarded.flush()
    finally:
        sys.stdout = stdout
    return status


def _run(arguments: list[str] | tuple[str, ...] | None) -> int:
    called = sys.argv[1:] if arguments is None else arguments
    if called and called[0] == "build":
        from coppelius.cli.build import build

        answered = build(called[1:])
        if answered is not None:
            return answered
    from coppelius.cli.commands import run, works_on_checkout

    if arguments is None:
        arguments = called
        if works_on_checkout(arguments):
            from coppelius.cli.checkout import hand_over

            hand_over()
    return run(arguments)
