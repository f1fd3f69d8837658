"""The console script's entry: light, so that a command pays only for what it uses.

Exit status: 0; 1 for what was refused, hazards found or a failed step; 2 for usage and unreadable input.
"""

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit status."""
    if arguments is None:
        from coppelius.cli.checkout import hand_over

        hand_over()
        arguments = sys.argv[1:]
    from coppelius.cli.commands import run

    return run(arguments)
