"""The build: `doit` makes every image of the catalogue and publishes build/<target>/arena.bin and manifest.json.

One file a stage in tasks/; the graph is declared in tasks/graph.py.  Nothing heavy is imported here.
"""

from pathlib import Path

from tasks.loading import told

ROOT = Path(__file__).resolve().parent

with told(ROOT):
    from cache import front, imports

    AROUND, SOURCES = front.surroundings(), front.sources(str(ROOT))  # before any of them runs
    imports.install(ROOT)  # first: what follows runs from its source

    from tasks.arena import task_arena
    from tasks.check import task_check
    from tasks.choices import task_choices
    from tasks.cubin import task_cubin
    from tasks.emit import task_emit
    from tasks.encode import task_encode
    from tasks.gc import task_gc
    from tasks.guard import task_guard
    from tasks.halve import task_halve
    from tasks.lower import task_lower
    from tasks.place import task_place
    from tasks.reporter import BuildReporter
    from tasks.step import default_tasks, project

    project().front_around, project().front_sources = AROUND, SOURCES
    DEFAULT_TASKS = default_tasks()

DOIT_CONFIG = {
    "minversion": "0.37.0",
    "default_tasks": DEFAULT_TASKS,
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
    "task_cubin",
    "task_emit",
    "task_encode",
    "task_gc",
    "task_guard",
    "task_halve",
    "task_lower",
    "task_place",
]
