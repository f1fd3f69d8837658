"""The console script's entry: light, so that a command pays only for what it uses.

Exit status: 0; 1 for what was refused, hazards found or a failed step; 2 for usage and unreadable input.
"""

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit status."""
    from coppelius.cli.commands import run, works_on_checkout

    if arguments is None:
        arguments = sys.argv[1:]
        if works_on_checkout(arguments):
            from coppelius.cli.checkout import hand_over

            hand_over()
    return run(arguments)
