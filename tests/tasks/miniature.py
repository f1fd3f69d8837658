"""A miniature checkout: the real dodo.py, tasks/ and cache/ over a tiny coppelius, built in a forked process.

Forking this process, in which doit is imported already, costs a fraction of starting doit anew; the child
drops every module of ours first, so that it loads the miniature's.
"""

import hashlib
import json
import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import doit.cmd_run
import doit.doit_cmd

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGES = ("coppelius", "tasks", "cache", "dodo")
BORROWED = (
    "__init__.py",
    "model.py",
    "standard_output.py",
    "isa/__init__.py",
    "isa/refusal.py",
    "arena/__init__.py",
    "arena/addresses.py",
    "arena/placement.py",
    "arena/release.py",
    "isa/targets/__init__.py",
    "isa/targets/layout.py",
)
PLAN = {"half": '"bf16"', "base": "0x100000000", "alignment": "256"}
STAGES = "emit halve guard encode check place"
OF_EACH_TARGET = ("encode", "check", "place", "arena", "cubin")
IMAGES = ("first", "second", "third", "fourth", "fifth")


class Outcome(NamedTuple):
    status: int
    ran: list[str]  # the steps that were started, sorted
    output: str
    restored: Sequence[str] = ()  # the steps that the store gave, sorted

    @property
    def made(self) -> list[str]:
        return sorted({*self.ran, *self.restored})


class Miniature:
    def __init__(self, root: Path, targets: tuple[str, ...] = ("sm86",)) -> None:
        self.root = root
        self.targets = targets
        self.log = root.with_name(f"{root.name}.log")
        self.environment: dict[str, str] = {}
        for package in ("tasks", "cache"):
            shutil.copytree(REPOSITORY / package, root / package, ignore=_generated)
        shutil.copy(REPOSITORY / "dodo.py", root)
        for file in BORROWED:
            (root / "coppelius" / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / "coppelius" / file, root / "coppelius" / file)
        shutil.copytree(REPOSITORY / "coppelius/cli", root / "coppelius/cli", ignore=_generated)
        shutil.copytree(REPOSITORY / "tests/data/miniature/coppelius", root / "coppelius", dirs_exist_ok=True)
        self.plan()

    def plan(self, **settings: str) -> None:
        given = PLAN | {"targets": json.dumps(self.targets)} | settings
        lines = [f"{name} = {value}" for name, value in given.items()]
        (self.root / "pyproject.toml").write_text("\n".join(["[tool.coppelius]", *lines, ""]))

    def edit(self, path: str, old: str, new: str) -> None:
        file = self.root / path
        text = file.read_text()
        assert old in text, f"{path} has no {old!r}"
        file.write_text(text.replace(old, new))

    def fork(self, *arguments: str, before: Callable[[], None] | None = None) -> int:
        """Starts `doit arguments` in a forked process, after calling `before` there; gives its id."""
        return self._fork(lambda: doit.doit_cmd.DoitMain().run(list(arguments)), before)

    def command(self, *arguments: str, folder: str = ".") -> Outcome:
        """Runs `coppelius arguments` in a folder of the checkout."""

        def call() -> int:
            sys.path.insert(0, str(self.root))
            os.chdir(self.root / folder)
            from coppelius.cli.main import main

            return main(arguments)

        return self.finish(self._fork(call, None))

    def _fork(self, call: Callable[[], int | None], before: Callable[[], None] | None) -> int:
        sys.stdout.flush()
        process = os.fork()
        if process == 0:
            self._be(call, before)
        return process

    def _be(self, call: Callable[[], int | None], before: Callable[[], None] | None) -> None:
        status = 99
        try:
            os.setpgrp()
            signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a script puts behind itself
            log = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(log, 1)
            os.dup2(log, 2)
            sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
            sys.stderr = os.fdopen(2, "w", closefd=False)
            sys.dont_write_bytecode = False  # as it is for a user: stale bytecode must be there to be refused
            doit.cmd_run.opt_outfile["default"] = sys.stdout  # bound when doit was imported
            for name in [name for name in sys.modules if name.partition(".")[0] in PACKAGES]:
                del sys.modules[name]
            sys.meta_path[:] = [f for f in sys.meta_path if type(f).__name__ != "ContentFinder"]
            os.chdir(self.root)
            for name in [name for name in os.environ if name.startswith("COPPELIUS_")]:
                del os.environ[name]  # the developer's own
            os.environ |= self.environment
            if before is not None:
                before()
            status = call() or 0
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 1
            if isinstance(end.code, str):
                print(end.code, file=sys.stderr)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)

    def finish(self, process: int, seconds: float = 60) -> Outcome:
        deadline = time.monotonic() + seconds
        while True:
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended:
                break
            if time.monotonic() > deadline:
                os.killpg(process, signal.SIGKILL)
                os.waitpid(process, 0)
                raise AssertionError(f"doit did not end; it wrote\n{self.log.read_text()}")
            time.sleep(0.002)
        output = self.log.read_text()
        ran, restored = (sorted(line[3:] for line in output.splitlines() if line.startswith(s)) for s in (".  ", "<  "))
        return Outcome(os.waitstatus_to_exitcode(status), ran, output, restored)

    def doit(self, *arguments: str, before: Callable[[], None] | None = None) -> Outcome:
        """Runs doit to its end."""
        return self.finish(self.fork(*arguments, before=before))

    def build(self, *arguments: str) -> Outcome:
        """A build that names the steps it runs."""
        return self.doit("run", "-v", "2", *arguments)

    def steps(self, stages: str = STAGES, *images: str, also: Sequence[str] = ()) -> list[str]:
        """Names of steps, sorted as `Outcome.ran` is; without images, those of all images.

        Other targets' steps beside the native ones are named as well: what a listing that is encoded anew makes
        there, its lowering included.
        """
        named = {*also, *(f"{stage}:{image}" for stage in stages.split() for image in images or IMAGES)}
        return sorted(named.union(*(_on_target(named, target) for target in self.targets if target != "sm86")))

    def built(self) -> "Miniature":
        """This checkout after its first build."""
        outcome = self.build()
        assert outcome.status == 0, outcome.output
        return self

    def release_is_whole(self) -> bool:
        """Is there either no release, or an arena that its manifest describes?"""
        for target in self.targets:
            folder = self.root / "build" / target
            arena, manifest = folder / "arena.bin", folder / "manifest.json"
            if arena.exists() != manifest.exists():
                return False
            if arena.exists():
                expected = json.loads(manifest.read_text())["sha256"]
                if hashlib.sha256(arena.read_bytes()).hexdigest() != expected:
                    return False
        return True

    def outputs(self) -> dict[str, bytes]:
        """Everything under build/ that a user sees."""
        found = {}
        for target in self.targets:
            for path in sorted((self.root / "build" / target).rglob("*")):
                relative = path.relative_to(self.root / "build")
                if path.is_file() and not any(part.startswith(".") for part in relative.parts):
                    found[str(relative)] = path.read_bytes()
        return found

    def clean_outputs(self, root: Path) -> dict[str, bytes]:
        """What a clean build of this checkout's sources gives, made in a copy at `root`."""
        twin = self.copy(root)
        outcome = twin.doit()
        assert twin.release_is_whole(), outcome.output
        found = twin.outputs()
        shutil.rmtree(root)
        return found

    def copy(self, root: Path) -> "Miniature":
        """Another checkout of the same sources: nothing built, and no store."""
        shutil.copytree(self.root, root, ignore=_generated)
        twin = object.__new__(Miniature)
        twin.root, twin.targets, twin.log = root, self.targets, root.with_name(f"{root.name}.log")
        twin.environment = {}
        return twin

    def source_files(self) -> Iterator[Path]:
        yield from sorted((self.root / "coppelius").rglob("*.py"))


def _on_target(named: set[str], target: str) -> Iterator[str]:
    for name in named:
        stage, colon, image = name.partition(":")
        if stage in OF_EACH_TARGET:
            yield f"{stage}_{target}{colon}{image}"
        if stage == "guard" and f"encode:{image}" in named:
            yield f"lower_{target}:{image}"


def _generated(_folder: str, names: list[str]) -> set[str]:
    return {
        name
        for name in names
        if name == "__pycache__" or name == "build" or name.startswith("state.") or name == "objects"
    }


class KillAt:
    """Sends this process a signal just before its n-th write (a file opened for writing, renamed, linked)."""

    def __init__(self, point: int, number: int = signal.SIGKILL) -> None:
        self.left, self.number = point, number

    def __call__(self) -> None:
        sys.addaudithook(self.hook)

    def hook(self, event: str, arguments: tuple) -> None:
        if is_write(event, arguments):
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), self.number)


class Watch:
    """Notes what this process opens or writes, a line each, in a file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __call__(self) -> None:
        self.log = os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        sys.addaudithook(self.hook)

    def hook(self, event: str, arguments: tuple) -> None:
        if event == "open" or is_write(event, arguments):
            kind = "write" if is_write(event, arguments) else "read"
            os.write(self.log, f"{kind} {arguments[0]}\n".encode())

    def noted(self, kind: str) -> list[str]:
        lines = (line.partition(" ") for line in self.file.read_text().splitlines())
        return [path for what, _, path in lines if what == kind]


def is_write(event: str, arguments: tuple) -> bool:
    if event == "open":
        path, mode, flags = arguments
        writes = "w" in mode if mode else bool(flags & (os.O_WRONLY | os.O_RDWR))
        return writes and isinstance(path, str | os.PathLike)
    return event in ("os.rename", "os.symlink", "os.mkdir", "shutil.rmtree")
