"""What a build prints: failures in full, the release it published as a table, one line of counts.

Steps that succeed print nothing (with `-v 2` each step that runs is named).  A step that could not run
because one before it failed is counted, not explained: the failure before it is.  A run whose steps failed
ends with status 1, where doit would tell apart failed (1) from not reached (2).
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from doit.exceptions import UnmetDependency
from doit.reporter import ConsoleReporter

FAILED = 1


class BuildReporter(ConsoleReporter):  # type: ignore[misc]
    """doit's reporter for this checkout; set in dodo.py."""

    desc = "failures, the published release, one line of counts"

    def __init__(self, outstream: Any, options: Any) -> None:
        super().__init__(outstream, options)
        self.ran, self.current, self.failed, self.unreached = 0, 0, 0, 0
        self.published: list[Path] = []
        self.said: dict[str, str] = {}  # message -> the step that failed with it first

    def execute_task(self, task: Any) -> None:
        if task.actions and task.verbosity > 1:
            super().execute_task(task)

    def add_success(self, task: Any) -> None:
        if not task.actions:
            return
        self.ran += 1
        self.published += [Path(path) for path in task.targets if path.endswith("/manifest.json")]

    def skip_uptodate(self, task: Any) -> None:
        self.current += bool(task.actions)

    def add_failure(self, task: Any, fail: Any) -> None:
        if isinstance(fail, UnmetDependency):
            self.unreached += bool(task.actions)
            return
        self.failed += 1
        message = fail.get_msg().strip()
        first = self.said.setdefault(message, task.name)
        if first != task.name:
            self.write(f"{task.name} failed as {first} did\n")
        else:
            self.write(f"{task.name} failed\n{_indented(message)}\n")

    def complete_run(self) -> None:
        if self.runtime_errors:
            super().complete_run()
            return
        for manifest in self.published:
            print_release(json.loads(manifest.read_text(encoding="utf-8")), self.outstream)
        self.write(f"{self.counts()}\n")
        self.outstream.flush()
        if self.failed and sys.exc_info()[0] is None:
            raise SystemExit(FAILED)

    def counts(self) -> str:
        parts = [
            (self.ran, "run"),
            (self.current, "up to date"),
            (self.failed, "failed"),
            (self.unreached, "not reached"),
        ]
        said = [f"{count} {what}" for count, what in parts if count]
        return f"steps: {', '.join(said) or 'none'}"


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" if line else line for line in text.splitlines())


def print_release(manifest: dict[str, Any], stream: Any) -> None:
    """The published images; colours only on a terminal, and not where NO_COLOR or CI says so."""
    from rich.console import Console
    from rich.table import Table

    terminal = stream.isatty()
    plain = bool(os.environ.get("NO_COLOR") or os.environ.get("CI"))
    console = Console(file=stream, no_color=plain, force_terminal=terminal, width=None if terminal else 110)
    title = f"{manifest['target']}, {manifest['half_format']}: {manifest['bytes']} bytes"
    table = Table(title=title, title_justify="left", box=None, header_style="bold")
    table.add_column("identity", no_wrap=True)
    for heading in ("offset", "address", "bytes", "instructions", "registers"):
        table.add_column(heading, justify="right", no_wrap=True)
    for image in manifest["images"]:
        numbers = (image["bytes"], image["instructions"], image["registers"])
        table.add_row(image["identity"], f"{image['offset']:#x}", f"{image['address']:#x}", *(f"{n}" for n in numbers))
    console.print(table)
