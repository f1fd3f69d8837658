"""The build: `doit` makes every image of the catalogue and publishes build/<target>/arena.bin and manifest.json.

One file a stage in tasks/; the graph is declared in tasks/graph.py.  Nothing heavy is imported here.
"""

from pathlib import Path

from cache import front, imports

ROOT = Path(__file__).resolve().parent
SOURCES = front.sources(str(ROOT))  # before any of them runs
imports.install(ROOT)  # first: what follows runs from its source

from tasks.arena import task_arena  # noqa: E402
from tasks.check import task_check  # noqa: E402
from tasks.choices import task_choices  # noqa: E402
from tasks.emit import task_emit  # noqa: E402
from tasks.encode import task_encode  # noqa: E402
from tasks.gc import task_gc  # noqa: E402
from tasks.guard import task_guard  # noqa: E402
from tasks.halve import task_halve  # noqa: E402
from tasks.lower import task_lower  # noqa: E402
from tasks.place import task_place  # noqa: E402
from tasks.reporter import BuildReporter  # noqa: E402
from tasks.step import default_tasks, project  # noqa: E402

project().front_sources = SOURCES
DOIT_CONFIG = {
    "minversion": "0.37.0",
    "default_tasks": default_tasks(),
    "reporter": BuildReporter,
    "continue": True,
    # doit's own tasks only; steps are in the ledger
    "backend": "json",
    "dep_file": "cache/state.doit.json",
}

__all__ = [
    "DOIT_CONFIG",
    "task_arena",
    "task_check",
    "task_choices",
    "task_emit",
    "task_encode",
    "task_gc",
    "task_guard",
    "task_halve",
    "task_lower",
    "task_place",
]
