"""What the graph can tell without building: what an edit would rebuild, and how each step stands.

The answers come from the code that decides in a build: the same closures, the same records.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tasks.graph import Step
from tasks.ledger import Observation
from tasks.outputs import read_json
from tasks.project import CATALOGUE, Project

# an edit here may change any step's declaration
DECLARATIONS = ("tasks/graph.py", "tasks/plan.py", "tasks/project.py")
PLAN_FILE = "pyproject.toml"
CATALOGUE_FILE = f"{CATALOGUE.replace('.', '/')}.py"


class Affected(NamedTuple):
    """Steps, in the graph's order."""

    runs: list[str]  # read the edited file themselves
    may_run: list[str]  # run if what they read comes out different


def affected(project: Project, paths: Collection[str]) -> Affected:
    """What an edit of these files, relative to the root, would rebuild."""
    steps = project.graph.steps.values()
    runs = [step.name for step in steps if any(_reads(project, step, path) for path in paths)]
    return Affected(runs, project.graph.after(runs))


def readers(project: Project, step: Step) -> list[str]:
    """The files whose edit runs this step, apart from what steps write."""
    declared = [*DECLARATIONS, *([PLAN_FILE] if step.stage.plan else []), *([CATALOGUE_FILE] if step.stage.row else [])]
    return sorted({*project.ledger.code_files(step), *declared})


def _reads(project: Project, step: Step, path: str) -> bool:
    return path in step.outputs or path in readers(project, step)


class Standing(NamedTuple):
    """`state`: up to date, refused, stale, or waiting for a stale step before it."""

    state: str
    causes: list[str]
    behind: list[str]  # the steps it waits for
    seen: Observation
    last: Mapping[str, Any] | None  # how it came to be: causes, seconds, restored, at, build


UP_TO_DATE, REFUSED, STALE, WAITING = STATES = ("up to date", "refused", "stale", "waiting")


def standings(project: Project) -> dict[str, Standing]:
    """How every step stands, by name, in the graph's order."""
    found: dict[str, Standing] = {}
    for step in project.graph.steps.values():
        seen = project.ledger.observe(step)
        causes = project.ledger.causes(step, seen)
        last = project.ledger.records.get(step.name, {}).get("last")
        behind = [name for name in project.graph.before(step) if found[name].state in (STALE, WAITING)]
        if causes:
            found[step.name] = Standing(STALE, [str(cause) for cause in causes], behind, seen, last)
        elif behind:
            found[step.name] = Standing(WAITING, [f"after {name}" for name in behind], behind, seen, last)
        else:
            refused = _is_refused(project.root, step)
            found[step.name] = Standing(REFUSED if refused else UP_TO_DATE, [], [], seen, last)
    return found


def first_cause(found: Mapping[str, Standing], name: str) -> list[str]:
    """The chain from a step up to the first that is stale itself; only the step where it is not waiting."""
    chain = [name]
    while found[chain[-1]].state == WAITING:
        chain.append(found[chain[-1]].behind[0])
    return chain


def latest_build(found: Mapping[str, Standing]) -> float:
    """When the last build began that made anything; 0 if none did."""
    return max((standing.last["build"] for standing in found.values() if standing.last), default=0.0)


def _is_refused(root: Path, step: Step) -> bool:
    """Is its output a verdict, and not acceptance?"""
    return step.stage.name == "check" and not read_json(root / step.outputs[0])["accepted"]
