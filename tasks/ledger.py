"""Is a step up to date?  It is if what it rests on and what it wrote are what its record says.

A record is made when a step has succeeded: the digest of its code, the versions of its tools, its parameters,
the digest of each input and of each output.  The decision compares all, outputs included, so that it does not
matter how a file came to differ: an interrupted build, an undone edit, a hand.  A failed step keeps the record
of its last success, which stays true.

What a step rests on is looked at before it runs; what changed by the time it ended leaves no record, and
the step runs again.
"""

import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cache.database import Signature, State
from cache.files import MISSING, Files
from cache.source import Sources
from tasks.graph import Graph, Step

# whose imports count wherever they are met; of `tasks` a stage's own module and this
FOLLOWED = ("coppelius", "tasks.outputs")
STATE = "cache/state.sqlite3"
NAMED = 3  # changed files that a cause names


class Cause(NamedTuple):
    """One reason to run, `kind` for programs: new, forgotten, code, tool, parameter, input, missing, output."""

    kind: str
    what: str

    def __str__(self) -> str:
        return {
            "new": "never built here",
            "forgotten": "it was to be forgotten",
            "code": f"its code changed{self.what and f' ({self.what})'}",
            "tool": f"{self.what}",
            "parameter": f"{self.what} changed",
            "input": f"{self.what} changed",
            "missing": f"{self.what} is missing",
            "output": f"{self.what} is not what the step wrote",
        }[self.kind]


class Observation(NamedTuple):
    """What a step rests on, when it was looked at."""

    code: str
    inputs: list[list[str]]  # [path, digest or length]
    signatures: list[Signature | None]  # of the inputs
    tools: Mapping[str, str]  # versions


class History(NamedTuple):
    """How a step came to be, for people."""

    causes: Sequence[str]
    seconds: float  # that it took, or once took where it was restored
    restored: bool = False


class Ledger:
    """The records of one checkout, and the digests they are compared with."""

    def __init__(self, root: Path, graph: Graph, tools: Mapping[str, str]) -> None:
        self._root, self._graph, self._tools = root, graph, tools
        self._began = round(time.time(), 3)
        self._state = State(root / STATE)
        self._files = Files(root, self._state)
        # outputs of steps found up to date in this run: those who read them need not look again, as a
        # change after that is found when their own run is recorded
        self._lately: dict[str, tuple[Signature | None, str]] = {}
        self._sources: Sources | None = None
        self._records: dict[str, dict[str, Any]] | None = None
        self._forgotten: set[str] | None = None
        self._codes: dict[str, dict[str, str]] = {}  # new ones
        # steps found or made up to date in this run, and what their outputs were then
        self.settled: dict[str, dict[str, Signature | None]] = {}

    @property
    def sources(self) -> Sources:
        if self._sources is None:
            self._sources = Sources(self._root, self._files, self._state, FOLLOWED)
        return self._sources

    @property
    def records(self) -> dict[str, dict[str, Any]]:
        if self._records is None:
            self._records = self._state.records()
        return self._records

    @property
    def forgotten(self) -> set[str]:
        """Steps that their user wants to see run, whatever the store has."""
        if self._forgotten is None:
            self._forgotten = self._state.forgotten()
        return self._forgotten

    def code_files(self, step: Step) -> list[str]:
        return self.sources.digest(step.code, step.stage.raw)[1]

    def observe(self, step: Step) -> Observation:
        signatures: list[Signature | None] = []
        inputs = []
        for path, counts in step.inputs:
            signature, digest = self._lately.get(path) or self._files.look(path)
            if signature is not None and counts == "length":
                digest = f"{signature[1]} bytes"
            signatures.append(signature)
            inputs.append([path, digest])
        return Observation(self.sources.digest(step.code, step.stage.raw)[0], inputs, signatures, self._tools)

    def causes(self, step: Step, seen: Observation) -> list[Cause]:
        """Every reason for the step to run, the first of them first; none if it is up to date."""
        record = self.records.get(step.name)
        if record is None:
            return [Cause("forgotten" if step.name in self.forgotten else "new", step.name)]
        causes = [] if record["code"] == seen.code else [Cause("code", self._changed_code(record["code"], seen.code))]
        causes += _different_tools(record["tools"], seen.tools)
        causes += _different_parameters(record["parameters"], step.parameters)
        if record["inputs"] != seen.inputs:
            causes += _different_inputs(record["inputs"], seen.inputs)
        written = dict(record["outputs"])
        found = {path: self._files.look(path) for path in step.outputs}
        for path, (signature, digest) in found.items():
            if signature is None:
                causes.append(Cause("missing", path))
            elif digest != written.get(path):
                causes.append(Cause("output", path))
        if not causes:
            self._lately.update(found)
            self.settled[step.name] = {path: signature for path, (signature, _) in found.items()}
        return causes

    def _changed_code(self, old: str, new: str) -> str:
        """The files that make the difference, as far as it is known."""
        before, now = self._state.code(old), self.sources.counted.get(new, {})
        changed = sorted(path for path in {**before, **now} if before.get(path) != now.get(path)) if before else []
        return ", ".join([*changed[:NAMED], *([f"{len(changed) - NAMED} more"] if len(changed) > NAMED else [])])

    def record(self, step: Step, seen: Observation, written: Mapping[str, str] | None, history: History) -> bool:
        """Saves a success; not if something changed meanwhile.  `written` None: what lies there now."""
        found = {path: self._files.look(path) for path in step.outputs}
        outputs = [[path, digest] for path, (_, digest) in found.items()]
        for path in step.outputs:
            self._lately.pop(path, None)
        same = [self._files.signature(path) for path, _ in step.inputs] == seen.signatures
        same = same and self.sources.unchanged(self.code_files(step)) and self.sources.runs_as_read(step.code)
        same = same and MISSING not in (digest for _, digest in outputs)
        if not same or (written is not None and dict(outputs) != dict(written)):
            self.forget([step.name])
            return False
        record = {
            "code": seen.code,
            "tools": dict(seen.tools),
            "parameters": dict(step.parameters),
            "inputs": seen.inputs,
            "outputs": outputs,
            "last": {**history._asdict(), "at": round(time.time(), 3), "build": self._began},
        }
        self._state.save_record(step.name, record)
        if step.name in self.forgotten:
            self._state.remember(step.name)
            self.forgotten.discard(step.name)
        self._codes[seen.code] = self.sources.counted.get(seen.code, {})
        self.records[step.name] = record
        self.settled[step.name] = {path: signature for path, (signature, _) in found.items()}
        return True

    def forget_by_hand(self, names: Collection[str]) -> None:
        """These will run when they are asked for next, even if the store has what they give."""
        self._state.save_forgotten(names)
        self.forgotten.update(names)
        self.forget(names)

    def forget(self, names: Collection[str]) -> None:
        for name in names:
            self.records.pop(name, None)
            self.settled.pop(name, None)
        self._state.forget_records(names)

    def save(self) -> None:
        """Keeps the digests, for the next run to be fast; nothing depends on it."""
        if self._sources is not None:
            self._sources.save()
            self._files.save()
        if self._codes:
            self._state.save_code(self._codes, {record["code"] for record in self.records.values()})
            self._codes = {}

    def close(self) -> None:
        self._state.close()


def _different_parameters(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Cause]:
    if old == new:
        return []
    return [Cause("parameter", name) for name in sorted({*old, *new}) if old.get(name) != new.get(name)]


def _different_tools(old: Mapping[str, str], new: Mapping[str, str]) -> list[Cause]:
    changed = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return [Cause("tool", f"{name} {old.get(name)} became {new.get(name)}") for name in changed]


def _different_inputs(old: list[list[str]], new: list[list[str]]) -> list[Cause]:
    """Inputs that are new, gone or changed; the order counts as well."""
    before, now = dict(old), dict(new)
    changed = [path for path in {**now, **before} if before.get(path) != now.get(path)]
    return [Cause("input", path) for path in changed] or [Cause("input", "the order of its inputs")]
