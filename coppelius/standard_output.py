"""Output that cannot be written ends a program as other tools end, and says that it was the output.

A closed pipe (`coppelius images | head`) ends it quietly with the status that a shell reports for SIGPIPE;
any other failure, such as a full disk, is one line and status 2.  Every print goes through here, so that an
`OSError` met elsewhere is one of reading.

Nothing is imported but what the interpreter has loaded already: the front door passes here.
"""

import os
import sys

TYPE_CHECKING = False  # typing itself would be the dearest import
if TYPE_CHECKING:
    from typing import Any, NoReturn

CLOSED = 141  # published: 128 + SIGPIPE, as a shell has it
UNUSABLE = 2


class StandardOutput:
    """A text stream whose failures end the process; everything else is the stream's own.

    A process started without one (`>&-`) has None: what it prints goes nowhere.
    """

    def __init__(self, stream: "Any") -> None:
        self._stream = open(os.devnull, "w", encoding="utf-8") if stream is None else stream  # noqa: PTH123, SIM115

    def __getattr__(self, name: str) -> "Any":
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        try:
            return int(self._stream.write(text))
        except OSError as error:
            self._end(error)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            self._end(error)

    def _end(self, error: OSError) -> "NoReturn":
        """What is still to be written goes nowhere, or the interpreter would try it again and complain."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)
        if isinstance(error, BrokenPipeError):
            raise SystemExit(CLOSED) from None
        sys.stderr.write(f"coppelius: standard output: {error.strerror}\n")
        raise SystemExit(UNUSABLE) from None
