"""What the graph can tell without building: what an edit would rebuild, and how each step stands.

The answers come from the code that decides in a build: the same closures, the same records.
"""

from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from tasks.graph import Step
from tasks.outputs import read_json
from tasks.project import CATALOGUE, Project

# an edit here may change any step's declaration
DECLARATIONS = ("tasks/graph.py", "tasks/plan.py", "tasks/project.py")
PLAN_FILE = "pyproject.toml"


class Affected(NamedTuple):
    """Steps, in the graph's order."""

    runs: list[str]  # read the edited file themselves
    may_run: list[str]  # run if what they read comes out different


def affected(project: Project, paths: Collection[str]) -> Affected:
    """What an edit of these files, relative to the root, would rebuild."""
    steps = project.graph.steps.values()
    runs = [step.name for step in steps if any(_reads(project, step, path) for path in paths)]
    return Affected(runs, project.graph.after(runs))


def _reads(project: Project, step: Step, path: str) -> bool:
    if path in DECLARATIONS or path in step.outputs:
        return True
    if path == PLAN_FILE:
        return bool(step.stage.plan)
    if path == f"{CATALOGUE.replace('.', '/')}.py":
        return bool(step.stage.row)
    return path in project.ledger.code_files(step)


class Standing(NamedTuple):
    """`state`: up to date, refused, stale, or waiting for a stale step before it."""

    state: str
    causes: list[str]


UP_TO_DATE, REFUSED, STALE, WAITING = STATES = ("up to date", "refused", "stale", "waiting")


def standings(project: Project) -> dict[str, Standing]:
    """How every step stands, by name, in the graph's order."""
    found: dict[str, Standing] = {}
    for step in project.graph.steps.values():
        causes = project.ledger.causes(step, project.ledger.observe(step))
        behind = [name for name in project.graph.before(step) if found[name].state in (STALE, WAITING)]
        if causes:
            found[step.name] = Standing(STALE, [str(cause) for cause in causes])
        elif behind:
            found[step.name] = Standing(WAITING, [f"after {name}" for name in behind])
        else:
            refused = _is_refused(project.root, step)
            found[step.name] = Standing(REFUSED if refused else UP_TO_DATE, [])
    return found


def _is_refused(root: Path, step: Step) -> bool:
    """Is its output a verdict, and not acceptance?"""
    return step.stage.name == "check" and not read_json(root / step.outputs[0])["accepted"]
