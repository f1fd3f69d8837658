"""doit decides by our ledger: its dependency manager, replaced where its own rules do not hold.

What doit 0.37 does otherwise, each measured: targets only need to exist; a kept mtime hides new content;
the code of an action is no dependency; state is written once, at the end; a failure forgets the task and
every dependant; two builds at once lose state.  doit has no setting for the manager's class, but publishes
the instance (`Globals.dep_manager`) before it creates the tasks: `adopt` makes that one ours.

A task that is no step of the graph is left to doit.
"""

import os
import shutil
import signal
import sqlite3
import sys
import time
from contextlib import suppress
from functools import partial
from importlib import import_module
from multiprocessing import process
from pathlib import Path
from types import FrameType
from typing import Any

from doit.dependency import Dependency, DependencyStatus

from cache import atomic, files, front
from cache.files import MISSING
from cache.lock import die_with_parent
from tasks.graph import BUILD, TAKEN, Step
from tasks.ledger import STATE, Cause, History, Observation
from tasks.loading import USAGE
from tasks.project import Project
from tasks.reporter import closing_line
from tasks.restore import SCRATCH


class StepDependency(Dependency):  # type: ignore[misc]
    """doit's manager for tasks of its own; the ledger for steps."""

    project: Project
    objections: dict[str, Any]
    observed: dict[str, tuple[Observation, list[Cause]]]
    begun: bool
    failed: bool
    # the outputs of all steps, where the front door's answer holds: nothing is then to be decided
    unchanged: front.Signatures | None

    def attach(self, project: Project, objections: dict[str, Any]) -> None:
        self.project, self.objections = project, objections
        self.observed, self.begun, self.failed, self.unchanged = {}, False, False, None
        # doit's constructor binds these on the instance
        self.remove, self.remove_all = self._remove, self._remove_all

    def get_status(self, task: Any, tasks_dict: Any, get_log: bool = False) -> Any:
        step = self.project.graph.steps.get(task.name)
        if step is None:
            return super().get_status(task, tasks_dict, get_log)
        runs = task.verbosity is not None  # only a runner sets it, just before it asks
        try:
            if runs:
                self._begin()
            if not runs or self.unchanged is None:
                self.project.ledger.records  # noqa: B018 (opens the saved state)
        except sqlite3.OperationalError as error:
            print(f"refused: {self.project.root / STATE}: {error}; make it a file that can be written", file=sys.stderr)
            raise SystemExit(USAGE) from None
        objection = self.objections.get(step.stage.name)
        task.asked, task.restored, task.dep_changed = _asked(task, tasks_dict), False, []
        if runs and self.unchanged is not None and not (task.asked and objection):
            return _as_status([], get_log)
        seen = self.project.ledger.observe(step)
        causes = self.project.ledger.causes(step, seen)
        self.observed[task.name] = seen, causes
        missing = [path for path, digest in seen.inputs if digest == MISSING]
        if runs and causes and not missing and self.project.restorer.restore(step, seen, causes):
            task.restored, causes = True, []
        status = _as_status(causes, get_log)
        task.dep_changed = [cause.what for cause in causes if cause.kind == "input"]
        if runs and missing:
            status.status, status.error_reason = "error", f"{missing[0]} is missing; build what makes it first"
        if task.asked and not causes and objection is not None and objection(self.project.root, step):
            status.status = "run"  # up to date and yet a failure: it runs again to say so
        return status

    def save_success(self, task: Any, result_hash: Any = None) -> None:
        step = self.project.graph.steps.get(task.name)
        if step is None:
            super().save_success(task, result_hash)
            return
        made = task.values
        if task.name in self.observed:
            seen, causes = self.observed.pop(task.name)
        else:
            seen, causes = self._observed_late(step), []
        before = self.project.ledger.records.get(step.name, {}).get("outputs")
        history = History([str(cause) for cause in causes] or ["asked to run"], made.get("seconds", 0.0))
        if self._recorded(step, seen, made, history):
            if made:  # `doit reset-dep` takes what lies there, and ran nothing
                self.project.restorer.keep(step, seen, made["sizes"], made["written"], made["seconds"])
                self.project.restorer.spans.append(made["span"])
            if self.unchanged is not None:  # those who read its outputs need not run, if these are what they were
                same = self.project.ledger.records[step.name]["outputs"] == before
                self.unchanged = {**self.unchanged, **self.project.ledger.settled[step.name]} if same else None
        else:
            print(f"{task.name}: what it reads changed while it ran; it will run again", file=sys.stderr)

    def _observed_late(self, step: Step) -> Observation:
        """Of a step that was up to date and ran all the same (`doit -a`): as it was before, or it is not recorded."""
        seen = self.project.ledger.observe(step)
        known = {**(self.project.front_sources or {}), **(self.unchanged or {})}
        same = front.sources(str(self.project.root)) == self.project.front_sources
        before = [known.get(path) if same else None for path, _ in step.inputs]
        return seen._replace(signatures=before)

    def _recorded(self, step: Step, seen: Observation, made: dict[str, Any], history: History) -> bool:
        try:
            return self.project.ledger.record(step, seen, made.get("written"), history)
        except sqlite3.OperationalError as error:  # a full disk: what was recorded before stays
            print(f"{step.name}: {error}; not recorded", file=sys.stderr)
            return False

    def remove_success(self, task: Any) -> None:
        self.failed = True
        if task.name not in self.project.graph.steps:
            super().remove_success(task)
        elif "written" in task.values:  # it failed by an objection to what it wrote
            self.save_success(task)

    def get_values(self, task_name: str) -> Any:
        return {} if task_name in self.project.graph.steps else super().get_values(task_name)

    def close(self) -> None:
        if not self._closed:
            try:
                self.project.ledger.save()
            except sqlite3.OperationalError as error:
                print(f"{self.project.root}: {error}; the next build is slower", file=sys.stderr)
            self.project.ledger.close()
            if not self.failed:
                self._leave_answer()
            try:
                super().close()
            except (OSError, UnboundLocalError) as error:  # doit's file of its own tasks, where the disk is full
                print(f"doit's own state is not saved: {error}", file=sys.stderr)
            self.project.lock.release()

    def _leave_answer(self) -> None:
        """For the front door, if this run has looked at every step, and what it rests on has settled."""
        settled, steps, known = self.project.ledger.settled, self.project.graph.steps, self.project.front_sources
        if known is None or settled.keys() < steps.keys():
            return
        outputs = {path: signature for step in settled.values() for path, signature in step.items()}
        now = time.time_ns()
        if all(s is not None and files.settled(s, now) for s in (*known.values(), *outputs.values())):
            said = closing_line({"up to date": len(steps)})
            front.save(str(self.project.root), self.project.overrides, self.project.front_around, known, outputs, said)

    def ignore(self, task: Any) -> None:
        front.forget(str(self.project.root))
        super().ignore(task)

    def _remove(self, name: str) -> None:
        self.project.lock.hold()
        front.forget(str(self.project.root))
        if name in self.project.graph.steps:
            self.project.ledger.forget_by_hand([name])
        self.backend.remove(name)

    def _remove_all(self) -> None:
        self.project.lock.hold()
        front.forget(str(self.project.root))
        self.project.ledger.forget_by_hand(list(self.project.graph.steps))
        self.backend.remove_all()

    def _begin(self) -> None:
        """Once a build, before its first decision."""
        if self.begun:
            return
        self.begun = True
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # a server that goes away ends no build
        self.project.lock.hold()
        # from their start: an idle worker holds the lock as well
        os.register_at_fork(
            before=partial(_import_stages, self.project), after_in_child=partial(die_with_parent, os.getpid())
        )
        atomic.sweep(self.project.root / SCRATCH)
        found = front.unchanged(str(self.project.root), self.project.overrides, self.project.front_sources)
        if found is None:
            remove_dropped(self.project)
        else:
            self.unchanged = found[1]
        signal.signal(signal.SIGCHLD, _end_with_a_killed_worker)


def adopt(manager: Any, project: Project, objections: dict[str, Any]) -> None:
    if not isinstance(manager, StepDependency):
        manager.__class__ = StepDependency
        manager.attach(project, objections)


def _asked(task: Any, tasks_dict: Any) -> bool:
    """Was it, or its group, named on the command line?  doit parses options of exactly those."""
    group = tasks_dict.get(task.subtask_of)
    return task.options is not None or (group is not None and group.options is not None)


def _as_status(causes: list[Cause], get_log: bool) -> Any:
    status = DependencyStatus(get_log)
    for cause in causes:
        if cause.kind == "missing":
            status.add_reason("missing_target", cause.what)
        elif cause.kind == "input":
            status.add_reason("changed_file_dep", cause.what)
        else:
            status.add_reason("uptodate_false", (str(cause), [], {}))
    return status


def remove_dropped(project: Project) -> None:
    """Removes files and records of images that the catalogue no longer has.

    Targets that the plan no longer names keep theirs: they are whole releases, and an override is for once.
    """
    steps = project.graph.steps
    for target in project.plan.targets:
        images = {step.identity for step in steps.values() if step.target == target}
        files = {path.rpartition("/")[2] for step in steps.values() if step.target == target for path in step.outputs}
        folder = project.root / BUILD / target
        if folder.is_dir():
            for path in folder.iterdir():
                if path.is_dir() and not path.name.startswith(".") and path.name not in images | TAKEN:
                    _remove_folder(path, files)
        for step in (step for step in steps.values() if step.stage.each and step.target == target):
            written = project.ledger.records.get(step.name, {}).get("outputs", [])
            for dropped in {path for path, _ in written} - set(step.outputs):
                (project.root / dropped).unlink(missing_ok=True)
        prefix = f"{BUILD}/{target}/"
        records = project.ledger.records.items()
        project.ledger.forget(
            [n for n, record in records if n not in steps and record["outputs"][0][0].startswith(prefix)]
        )


def _remove_folder(folder: Path, files: set[str]) -> None:
    """Removes an image's folder, sparing what no step writes."""
    if {path.name for path in folder.iterdir()} <= files:
        shutil.rmtree(folder)
    else:
        for name in files:
            (folder / name).unlink(missing_ok=True)


def _end_with_a_killed_worker(_number: int, _frame: FrameType | None) -> None:
    """`doit -n` waits for ever for a worker that was killed, or that code of a step ended; end the build instead."""
    if isinstance(sys.exc_info()[1], SystemExit | KeyboardInterrupt):  # it is ending, and doit ends its workers
        return
    # each is asked: one that has ended well says nothing of the others
    workers = list(process._children)  # type: ignore[attr-defined]
    status = next((worker.exitcode for worker in workers if worker.exitcode), None)
    if status is None:
        return
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for worker in workers:
        worker.terminate()  # doit ends those that it has noted, and waits for the others
    how = f"ended, status {status}" if status > 0 else f"killed (signal {-status})"
    raise SystemExit(f"a worker process {how}; its step will run again")


def _import_stages(project: Project) -> None:
    """What each of doit's workers would import for itself; a module that cannot be imported fails its own steps."""
    for module in sorted({name for step in project.graph.steps.values() for name in step.stage.code}):
        with suppress(Exception, SystemExit):
            import_module(module)
    for target in project.plan.targets:
        with suppress(Exception, SystemExit):
            import_module("coppelius.isa.table").table_of(target)


def drop_release(step: Step) -> None:
    """What `doit clean` leaves of a publication."""
    atomic.withdraw(Path(os.path.curdir) / step.folder)
