"""What a build prints: failures in full, the release it published as a table, one line of counts.

Steps that succeed print nothing (with `-v 2` each step that runs is named after a dot, each that the store
gave after a `<`).  On a terminal one line says how far the build is; elsewhere a plain line does where a
build takes long.  A step that could not run because one before it failed is counted, not explained: the
failure before it is.  A run whose steps failed ends with status 1, where doit would tell apart failed (1)
from not reached (2).
"""

import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from doit.exceptions import UnmetDependency
from doit.reporter import ConsoleReporter

from coppelius.standard_output import StandardOutput
from tasks.loading import missing_package

FAILED = 1
REFRESH = 0.1  # seconds between two looks of the progress line
PLAIN_EVERY = 10.0  # seconds between two plain lines of progress
ERASE = "\r\x1b[K"
TRACE = "COPPELIUS_TRACE"  # the file that a build's trace goes to


class BuildReporter(ConsoleReporter):  # type: ignore[misc]
    """doit's reporter for this checkout; set in dodo.py."""

    desc = "failures, the published release, one line of counts"

    def __init__(self, outstream: Any, options: Any) -> None:
        outstream = StandardOutput(outstream)
        super().__init__(outstream, options)
        self.counts = dict.fromkeys(COUNTED, 0)
        self.published: list[Path] = []
        self.said: dict[str, str] = {}  # message -> the step that failed with it first
        self.progress = Progress(outstream)

    def write(self, text: str) -> None:
        self.progress.erase()
        super().write(text)

    def execute_task(self, task: Any) -> None:
        if task.actions and task.verbosity > 1:
            self.write(f".  {task.name}\n")
        self.progress.show(self.counts, task.name)

    def add_success(self, task: Any) -> None:
        if is_step(task):
            self.counts["run"] += 1
            self._note_release(task)

    def skip_uptodate(self, task: Any) -> None:
        if not is_step(task):
            return
        if getattr(task, "restored", False):
            self.counts["restored"] += 1
            self._note_release(task)
            if task.verbosity > 1:
                self.write(f"<  {task.name}\n")
            self.progress.show(self.counts, task.name)
        else:
            self.counts["up to date"] += 1

    def _note_release(self, task: Any) -> None:
        self.published += [Path(path) for path in task.targets if path.endswith("/manifest.json")]

    def add_failure(self, task: Any, fail: Any) -> None:
        if isinstance(fail, UnmetDependency):
            self.counts["not reached"] += bool(task.actions)
            return
        self.counts["failed"] += 1
        message = fail.get_msg().strip()
        first = self.said.setdefault(message, task.name)
        if first != task.name:
            self.write(f"{task.name} failed as {first} did\n")
        else:
            self.write(f"{task.name} failed\n{_indented(message)}\n")

    def complete_run(self) -> None:
        self.progress.erase()
        if self.runtime_errors:
            super().complete_run()
            return
        for manifest in self.published:
            self._print_release(manifest)
        project = _project()
        if any(self.counts.values()):
            self.write(f"{closing_line(self.counts, project.store.bad, project.restorer.saved)}\n")
        self.outstream.flush()
        if os.environ.get(TRACE):
            self._write_trace(Path(os.environ[TRACE]), project.restorer.spans)
        if self.counts["failed"] and sys.exc_info()[0] is None:
            raise SystemExit(FAILED)

    def _write_trace(self, path: Path, spans: Any) -> None:
        from tasks.spans import write_trace

        try:
            write_trace(path, spans)
        except OSError as error:
            self.write(f"{path}: {error.strerror}; no trace\n")

    def _print_release(self, path: Path) -> None:
        try:
            print_release(json.loads(path.read_text(encoding="utf-8")), self.outstream)
        except ModuleNotFoundError as error:  # the release is whole; only its picture is not
            self.write(f"{path}: {missing_package(error) or error}\n")


COUNTED = ("run", "restored", "up to date", "failed", "not reached")


def is_step(task: Any) -> bool:
    """Not a group of steps, nor a task of another kind such as `gc`."""
    return bool(task.actions and task.targets)


def closing_line(counts: Mapping[str, int], bad: int = 0, saved: float = 0.0) -> str:
    """What became of the steps; what is zero is not said."""
    said = [f"{counts[what]} {what}" for what in COUNTED if counts.get(what)]
    if bad:
        said.append(f"{bad} bad in the store")
    if counts.get("restored"):
        said.append(f"{saved:.2f} s saved")
    return f"steps: {', '.join(said)}"


def _project() -> Any:
    from tasks.step import project  # which knows doit's tasks, and so this reporter

    return project()


class Progress:
    """One line that is written over on a terminal; plain lines, seldom, where nobody watches."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.live = stream.isatty() and not os.environ.get("CI")
        self.shown, self.last = False, time.monotonic()

    def show(self, counts: Mapping[str, int], name: str) -> None:
        now = time.monotonic()
        if now - self.last < (REFRESH if self.live else PLAIN_EVERY):
            return
        self.last = now
        done = f"{sum(counts.values())} of {len(_project().graph.steps)}"
        if not self.live:
            self.stream.write(f"steps: {done}\n")
            self.stream.flush()
            return
        room = os.get_terminal_size(self.stream.fileno()).columns - 1
        self.stream.write(f"{ERASE}{f'[{done}] {name}'[:room]}")
        self.stream.flush()
        self.shown = True

    def erase(self) -> None:
        if self.shown:
            self.stream.write(ERASE)
            self.shown = False


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" if line else line for line in text.splitlines())


def print_release(manifest: dict[str, Any], stream: Any) -> None:
    """The published images; escape codes only on a terminal and not under CI, colours not under NO_COLOR."""
    from rich.console import Console
    from rich.table import Table

    terminal = stream.isatty() and not os.environ.get("CI")
    console = Console(
        file=stream, no_color=bool(os.environ.get("NO_COLOR")), force_terminal=terminal, width=None if terminal else 110
    )
    title = f"{manifest['target']}, {manifest['half_format']}: {manifest['bytes']} bytes"
    table = Table(title=title, title_justify="left", box=None, header_style="bold")
    table.add_column("identity", no_wrap=True)
    for heading in ("offset", "address", "bytes", "instructions", "registers"):
        table.add_column(heading, justify="right", no_wrap=True)
    for image in manifest["images"]:
        numbers = (f"{image[key]}" for key in ("bytes", "instructions", "registers"))
        table.add_row(image["identity"], f"{image['offset']:#x}", f"{image['address']:#x}", *numbers)
    console.print(table)
