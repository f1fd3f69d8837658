"""One stage as doit tasks: the only way a stage file makes them.

An action gets paths and parameters and gives contents; the rest is done here and in `tasks.restore`, the
same for all.  A refusal or an error fails its own step; steps that do not read its output go on.
"""

import atexit
import errno
import gc
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from multiprocessing import get_start_method, set_start_method
from pathlib import Path
from typing import Any

import doit
from doit.exceptions import TaskFailed
from doit.task import clean_targets, dict_to_task

from coppelius.isa.refusal import Refusal
from tasks.graph import Step
from tasks.loading import USAGE, missing_package
from tasks.manager import adopt, drop_release
from tasks.project import Project
from tasks.restore import Action, perform

ROOT = Path(__file__).resolve().parent.parent
OF_THE_PLACE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM)

# stage -> what an output of that step objects to, as lines; a step asked for by name fails on an objection
OBJECTIONS: dict[str, Callable[[Path, Step], list[str]]] = {}


class Names(list[str]):
    """Names of tasks in which doit finds one at once: it looks for the maker of every file of the arena."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__(names)
        self.known = frozenset(self)

    def __contains__(self, name: object) -> bool:
        return name in self.known or super().__contains__(name)


@cache
def project() -> Project:
    """This checkout, with the plan settings of doit's command line."""
    # tasks and records all stay: going through them again and again takes a third of a check; steps leave few cycles,
    # and a build of all images as much memory with the collector as without (measured: 140 MiB, a sixth of the time)
    gc.disable()
    atexit.register(gc.freeze)  # nor does the interpreter look through them as it ends
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `doit list | head` ends quietly; a build reports for itself
    overrides: dict[str, str] = doit.doit_cmd._CMDLINE_VARS or {}
    try:
        return Project(ROOT, overrides)
    except Refusal as refusal:
        print(f"refused: {refusal}", file=sys.stderr)
        raise SystemExit(USAGE) from None


def default_tasks() -> list[str]:
    """What `doit` builds: the arena of each target, and its cubins."""
    return [step.name for step in project().graph.steps.values() if step.stage.name in ("arena", "cubin")]


def steps_of(stage: str, action: Action) -> Iterator[Any]:
    """The doit tasks of one stage."""
    if doit.Globals.dep_manager is not None:
        adopt(doit.Globals.dep_manager, project(), OBJECTIONS)
    if sys.platform == "linux" and get_start_method() != "fork":
        set_start_method("fork", force=True)  # doit's workers inherit the tasks
    for step in project().graph.steps.values():
        if step.stage.name == stage:
            task = {
                "basename": step.group,
                **({"name": step.identity} if step.identity else {}),
                "doc": step.stage.doc if step.identity is None else f"{step.identity}: {step.stage.doc}",
                "actions": [(execute, [step, action])],
                "file_dep": [path for path, _ in step.inputs],
                "task_dep": project().graph.before(step),  # in order; doit alone would take them from a set
                "targets": list(step.outputs),
                "clean": [(clean_step, [step])],
            }
            yield task if step.identity else _over_all(task)


def _over_all(task: dict[str, Any]) -> Any:
    """The task of a stage over all images, whose dependences are many."""
    made = dict_to_task({"name": task.pop("basename"), **task})
    made.task_dep = Names(made.task_dep)
    return made


def execute(step: Step, action: Action, task: Any) -> Any:
    """Runs an action and publishes what it gives."""
    try:
        made = perform(ROOT, step, action, project().store)
    except (Exception, SystemExit) as error:
        return TaskFailed(failure_text(error))
    if task.asked and step.stage.name in OBJECTIONS:
        objection = OBJECTIONS[step.stage.name](ROOT, step)
        if objection:
            task.values.update(made)  # its output is whole, and up to date for those who read it
            return TaskFailed("\n".join(objection))
    return made


def clean_step(step: Step, task: Any, dryrun: bool) -> None:
    """`doit clean`: not while a build runs."""
    if not dryrun:
        project().lock.hold()
    clean_targets(task, dryrun)
    if step.stage.name == "arena" and not dryrun:
        drop_release(step)


def failure_text(error: Exception | SystemExit) -> str:
    """What a user needs to mend it: a refusal's own words, a syntax error's place, else where it was raised."""
    if isinstance(error, Refusal):
        return str(error)
    if isinstance(error, OSError) and error.errno in OF_THE_PLACE:
        return f"{error.filename or 'build'}: {error.strerror}".replace(f"{ROOT}{os.sep}", "")
    absent = missing_package(error)
    if absent is not None:
        return absent
    if isinstance(error, SyntaxError):
        return "".join(traceback.format_exception_only(error)).rstrip().replace(f"{ROOT}{os.sep}", "")
    # without this file's own frame
    lines = traceback.format_exception(type(error), error, error.__traceback__ and error.__traceback__.tb_next)
    return "".join(lines).rstrip().replace(f"{ROOT}{os.sep}", "")
