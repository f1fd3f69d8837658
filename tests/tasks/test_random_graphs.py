"""Random graphs under random edits, kills, damage and two builders, against a model of ten lines.

The real ledger, store and restorer over graphs that no stage table limits.  The result always equals a clean
build, which the model computes in memory.  Where nothing was killed and no store damaged, each step does
exactly what the model says: up to date, restored or run.  A failing seed is in the message.
"""

import hashlib
import os
import random
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import pytest
from miniature_checkout import KillAt

from cache.store import Store
from tasks.graph import Graph, Stage, Step
from tasks.ledger import History, Ledger
from tasks.restore import Restorer, perform

ORDINARY, MANY = 40, 2000
ACTS = 9
MODULES = 4
TOOLS = {"python": "any"}


class World:
    """One checkout of random modules and steps, its settings, and the model's memory."""

    def __init__(self, root: Path, store: Path, chance: random.Random) -> None:
        self.root, self.store, self.chance = root, store, chance
        self.values = [chance.randrange(3) for _ in range(MODULES)]
        self.comments = [0] * MODULES
        self.imports = {n: chance.sample(range(n), min(n, chance.randrange(3))) for n in range(MODULES)}
        self.settings = {"x": 0, "y": 0}
        (root / "coppelius").mkdir(parents=True)
        (root / "tasks").mkdir()
        (root / "coppelius/__init__.py").touch()
        self.steps = [self.random_step(n) for n in range(chance.randint(3, 9))]
        for n in range(MODULES):
            self.write(n)
        self.records: dict[str, tuple[object, dict[str, bytes]]] = {}
        self.known: set[object] = set()
        self.exact = True

    def random_step(self, n: int) -> tuple[str, tuple[tuple[str, str], ...], tuple[str, ...], str | None, int]:
        before = [f"build/s{k}/{o}" for k in range(n) for o in ("a", "b")]
        chosen = self.chance.sample(before, min(len(before), self.chance.randrange(4)))
        inputs = tuple((path, self.chance.choice(("content", "content", "length"))) for path in chosen)
        outputs = tuple(f"build/s{n}/{o}" for o in ("a", "b"))
        return f"s{n}", inputs, outputs, self.chance.choice(("x", "y", None)), self.chance.randrange(MODULES)

    def write(self, n: int) -> None:
        path = self.root / f"coppelius/m{n}.py"
        status = path.stat() if path.exists() else None
        lines = [f"from coppelius import m{k}" for k in self.imports[n]] + [f"VALUE = {self.values[n]}"]
        path.write_text("\n".join(["# again"] * self.comments[n] + lines) + "\n")
        if status is not None and self.chance.random() < 0.4:
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    def code(self, n: int) -> tuple[object, ...]:
        return (n, self.values[n], tuple(self.code(k) for k in self.imports[n]))

    def graph(self) -> Graph:
        return Graph(
            Step(name, Stage(name, "", (), ("a", "b"), ()), "t", name, inputs, outputs,
                 {setting: self.settings[setting]} if setting else {}, (f"coppelius.m{module}",))
            for name, inputs, outputs, setting, module in self.steps
        )  # fmt: skip

    def state(self, step: tuple, clean: dict[str, bytes]) -> object:  # type: ignore[type-arg]
        name, inputs, _, setting, module = step
        read = tuple(clean[path] if counts == "content" else len(clean[path]) for path, counts in inputs)
        return (name, self.code(module), self.settings[setting] if setting else None, read)

    def expected(self) -> tuple[dict[str, bytes], dict[str, str]]:
        """What a clean build gives, and what this one should do to each step."""
        clean: dict[str, bytes] = {}
        does = {}
        for step in self.steps:
            state = self.state(step, clean)
            made = made_from(state)
            clean |= dict(zip(step[2], made, strict=True))
            here = {path: read(self.root / path) for path in step[2]}
            if self.records.get(step[0]) == (state, here):
                does[step[0]] = "up to date"
            else:
                does[step[0]] = "restored" if state in self.known else "run"
            self.records[step[0]] = (state, {path: clean[path] for path in step[2]})
            self.known.add(state)
        return clean, does


def made_from(state: object) -> tuple[bytes, bytes]:
    """Few different contents, so that cutoffs are met often."""
    digest = hashlib.sha256(repr(state).encode()).digest()
    return b"a" * (1 + digest[0] % 3), bytes([digest[1] % 4]) * 2


def read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def build(world: World) -> dict[str, str]:
    """A serial build: what doit's loop does with our decisions."""
    graph, did = world.graph(), {}
    ledger = Ledger(world.root, graph, TOOLS)
    store = Store(world.store)
    restorer = Restorer(world.root, graph, ledger, store)
    by_name = {step[0]: step for step in world.steps}
    for step in graph.steps.values():
        seen = ledger.observe(step)
        causes = ledger.causes(step, seen)
        if not causes:
            did[step.name] = "up to date"
        elif restorer.restore(step, seen, causes):
            did[step.name] = "restored"
        else:
            did[step.name] = "run"
            on_disk = {path: (world.root / path).read_bytes() for path, _ in step.inputs}
            state = world.state(by_name[step.name], on_disk)
            made = perform(world.root, step, lambda *_, state=state: made_from(state), store)
            if ledger.record(step, seen, made["written"], History([], made["seconds"])):
                restorer.keep(step, seen, made["sizes"], made["written"], made["seconds"])
    ledger.save()
    ledger.close()
    return did


def in_a_fork(world: World, before: object = None) -> int:
    process = os.fork()
    if process == 0:
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            if callable(before):
                before()
            build(world)
            os._exit(0)
        except BaseException:
            os._exit(1)
    return process


def edit(world: World) -> None:
    n = world.chance.randrange(MODULES)
    how = world.chance.random()
    if how < 0.5:
        world.values[n] = world.chance.randrange(3)  # often back to what it was
    elif how < 0.65:
        world.comments[n] += 1
    elif how < 0.8:
        world.settings[world.chance.choice("xy")] = world.chance.randrange(2)
    else:
        world.steps.append(world.random_step(len(world.steps)))
    world.write(n)


def damage_outputs(world: World) -> None:
    paths = sorted(path for path in (world.root / "build").glob("s*/*") if path.is_file())
    if paths:
        path = world.chance.choice(paths)
        status, content = path.stat(), path.read_bytes()
        path.unlink() if world.chance.random() < 0.3 else path.write_bytes(
            world.chance.choice((content[1:], content + b"!", b"x" * len(content)))
        )
        if path.exists():
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def damage_store(world: World) -> None:
    paths = sorted(path for path in world.store.rglob("*") if path.is_file())
    for path in world.chance.sample(paths, min(len(paths), 3)):
        content = path.read_bytes()
        path.unlink()
        if world.chance.random() < 0.6:
            path.write_bytes(world.chance.choice((content[:-1], b"", b"x" * len(content))))
    world.exact = False


def killed_build(world: World) -> None:
    process = in_a_fork(world, KillAt(world.chance.randint(1, 40)))
    status = os.waitpid(process, 0)[1]
    assert os.WIFEXITED(status) or os.WTERMSIG(status) == signal.SIGKILL
    assert status in (0, signal.SIGKILL)
    world.exact = False


def other_builder(world: World) -> int:
    """Another checkout of the same sources builds into the same store, while we build."""
    twin = object.__new__(World)
    twin.__dict__ |= world.__dict__
    twin.root = world.root.with_name("twin")
    shutil.rmtree(twin.root, ignore_errors=True)
    for package in ("coppelius", "tasks"):
        shutil.copytree(world.root / package, twin.root / package)
    world.exact = False
    return in_a_fork(twin)


def lost_build(world: World) -> None:
    shutil.rmtree(world.root / "build", ignore_errors=True)


def sequence(seed: int, folder: Path) -> int:
    """Gives how many steps were looked at exactly."""
    chance, exactly = random.Random(seed), 0
    world = World(folder / "here", folder / "store", chance)
    for _ in range(ACTS):
        acts = chance.choices((edit, damage_outputs, lost_build, damage_store, killed_build), (12, 2, 1, 1, 3), k=2)
        for act in acts:
            act(world)
        other = other_builder(world) if chance.random() < 0.1 else None
        clean, does = world.expected()
        did = build(world)
        assert {path: read(world.root / path) for path in clean} == clean, f"seed {seed}"
        if world.exact:
            assert did == does, f"seed {seed}"
            exactly += len(did)
        if other is not None:
            assert os.waitpid(other, 0)[1] == 0, f"seed {seed}"
            assert {path: read(world.root.with_name("twin") / path) for path in clean} == clean, f"seed {seed}"
        assert set(build(world).values()) == {"up to date"}, f"seed {seed}"
    return exactly


@pytest.mark.parametrize("count", [ORDINARY, pytest.param(MANY, marks=pytest.mark.slow)])
def test_a_build_is_a_clean_build_whatever_came_before(count, tmp_path, capfd):
    first = 0 if count == ORDINARY else ORDINARY
    exactly = 0
    memory = Path("/dev/shm")  # kill -9 needs no disk, and flushing to one takes most of the time
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as folder:
        for seed in range(first, first + count):
            exactly += sequence(seed, Path(folder) / str(seed))
            shutil.rmtree(Path(folder) / str(seed))
    with capfd.disabled():
        print(f"\n{count} sequences of {ACTS} builds, {exactly} steps exactly as the model says", file=sys.stderr)
    assert exactly > 5 * count
