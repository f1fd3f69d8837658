"""`coppelius build`: doit's answers, at once where nothing changed, and never a stale one."""

import json
import os
import random
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

UNCHANGED = "steps: 32 up to date\n"
HEAVY = {"doit", "click", "numpy", "networkx", "rich", "json", "re", "pathlib", "hashlib", "inspect"}


def settled(checkout):
    """The checkout, built, with everything old enough to be trusted and the answer left behind."""
    time.sleep(0.05)
    assert checkout.doit().output == UNCHANGED
    assert (checkout.root / "cache/state.front").exists()
    return checkout


def asked_doit(checkout, *arguments):
    """The outcome, and whether doit was asked: it opens its own state."""
    before = (checkout.root / "cache/state.doit.json").stat().st_mtime_ns
    time.sleep(0.002)
    outcome = checkout.command("build", *arguments)
    return outcome, (checkout.root / "cache/state.doit.json").stat().st_mtime_ns != before


@pytest.fixture
def quiet(built):
    return settled(built)


def test_an_unchanged_tree_is_answered_as_doit_answers(quiet):
    outcome, asked = asked_doit(quiet)
    assert (outcome.status, outcome.output, asked) == (0, UNCHANGED, False)
    for folder in ("coppelius/kernels", "build/sm86"):
        assert quiet.command("build", folder=folder).output == UNCHANGED


def test_it_imports_nothing_heavy(quiet):
    code = (
        "import sys; from coppelius.cli.main import main; status = main(['build']); "
        "print(*sys.modules, file=sys.stderr); sys.exit(status)"
    )
    made = subprocess.run(
        [sys.executable, "-c", code],
        cwd=quiet.root,
        capture_output=True,
        text=True,
        check=True,
        env=plain_environment(),
    )
    assert made.stdout == UNCHANGED
    bare = subprocess.run(
        [sys.executable, "-c", "import sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    assert not (set(made.stderr.split()) - set(bare.stdout.split())) & HEAVY


def plain_environment():
    return {name: value for name, value in os.environ.items() if not name.startswith("COPPELIUS_")}


def _touch_kept_time(path: Path) -> None:
    status, content = path.stat(), path.read_bytes()
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


# fmt: off
CHANGES = {
    "a kernel":             lambda root: (root / "coppelius/kernels/plain.py").write_text("def (\n"),
    "a kernel's old time":  lambda root: _touch_kept_time(root / "coppelius/kernels/plain.py"),
    "a new module":         lambda root: (root / "coppelius/kernels/new.py").touch(),
    "a removed module":     lambda root: (root / "coppelius/kernels/common.py").unlink(),
    "the plan":             lambda root: (root / "pyproject.toml").write_text("[tool.coppelius]\nhalf = 'f16'\n"),
    "dodo.py":              lambda root: (root / "dodo.py").touch(),
    "a stage":              lambda root: (root / "tasks/emit.py").touch(),
    "the store's code":     lambda root: (root / "cache/store.py").touch(),
    "an output":            lambda root: (root / "build/sm86/first/guard.sass").write_text("x"),
    "an output's old time": lambda root: _touch_kept_time(root / "build/sm86/first/guard.sass"),
    "a missing output":     lambda root: (root / "build/sm86/first/lines.json").unlink(),
    "the release":          lambda root: (root / "build/sm86/.release").unlink(),
    "the answer":           lambda root: (root / "cache/state.front").write_bytes(b"garbage"),
    "a torn answer":        lambda root: (root / "cache/state.front").write_bytes(
                                (root / "cache/state.front").read_bytes()[:-7]),
}
# fmt: on


@pytest.mark.parametrize("change", CHANGES)
def test_any_change_asks_doit(quiet, change):
    CHANGES[change](quiet.root)
    outcome, asked = asked_doit(quiet)
    assert asked, change
    assert outcome.status == (1 if change in ("a kernel", "a removed module") else 0), outcome.output


def test_another_environment_asks_doit(quiet):
    quiet.environment = {"COPPELIUS_STORE": "/elsewhere"}
    assert asked_doit(quiet)[1]


def test_an_editors_lock_is_no_source(built):
    """A link to nowhere beside the file, for as long as an edit is not saved."""
    (built.root / "coppelius/kernels/.#plain.py").symlink_to("someone@somewhere.4711")
    settled(built)
    outcome, asked = asked_doit(built)
    assert (outcome.status, outcome.output, asked) == (0, UNCHANGED, False)
    built.edit("coppelius/kernels/plain.py", '"plain"', '"Plain"')
    assert built.build().made


def test_packages_that_change_while_a_build_runs_leave_no_answer(quiet, tmp_path):
    """Its steps were judged by the versions that it found at its start."""
    packages, asked = tmp_path / "site-packages", tmp_path / "asked"
    packages.mkdir()

    def touched_when_asked(file):
        sys.path.append(str(packages))
        sys.addaudithook(lambda event, _: event == "sqlite3.connect" and file.touch())

    for file in (packages / "newer", asked):
        assert quiet.doit(before=partial(touched_when_asked, file)).output == UNCHANGED
        assert file.exists()  # the saved state was asked about each step


def test_a_young_file_leaves_no_answer(built):
    built.edit("cache/files.py", "FINE_STEP = 20_000_000", "FINE_STEP = 10**13")
    (built.root / "cache/state.front").unlink(missing_ok=True)
    built.edit("coppelius/kernels/plain.py", '"plain"', '"Plain"')
    built.doit()
    assert not (built.root / "cache/state.front").exists()


def test_a_failure_leaves_no_answer_and_keeps_failing(quiet):
    quiet.edit("coppelius/kernels/halves.py", "move half", "hazard")
    for _ in range(2):
        outcome = quiet.command("build")
        assert outcome.status == 1
        assert "arena failed" in outcome.output
        time.sleep(0.05)


def test_part_of_a_build_leaves_no_answer(built):
    (built.root / "cache/state.front").unlink(missing_ok=True)
    time.sleep(0.05)
    built.doit("run", "check")
    assert not (built.root / "cache/state.front").exists()


def test_forgetting_and_ignoring_ask_doit(quiet):
    quiet.doit("forget", "encode:first")
    outcome, asked = asked_doit(quiet)
    assert asked
    assert "1 run" in outcome.output
    settled(quiet).doit("ignore", "encode:first")
    assert asked_doit(quiet)[1]


def test_an_override_has_its_own_answer(quiet):
    outcome, asked = asked_doit(quiet, "half=f16")
    assert (outcome.status, asked) == (0, True)
    time.sleep(0.05)
    quiet.command("build", "half=f16")
    assert asked_doit(quiet, "half=f16") == ((0, [], UNCHANGED, []), False)
    outcome, asked = asked_doit(quiet)
    assert asked
    assert "restored" in outcome.output


def test_arguments_are_doits(quiet):
    quiet.edit("coppelius/kernels/plain.py", '"plain"', '"Plain"')
    assert quiet.command("build", "-v", "2", "-n", "2", "emit").ran == ["emit:first", "emit:second"]
    assert quiet.command("build", "no-such-step").status == 2


def test_a_trace_for_perfetto(mini, tmp_path):
    file = tmp_path / "trace.json"
    assert mini.command("build", "--trace", str(file)).status == 0
    events = [event for event in json.loads(file.read_text())["traceEvents"] if event["ph"] == "X"]
    assert sorted(event["name"] for event in events) == mini.steps(also=["arena", "cubin"])
    assert min(event["ts"] for event in events) == 0
    assert all(event["dur"] > 0 and event["args"]["what"] == "run" for event in events)


def test_a_pyproject_that_is_no_toml_is_one_line(built):
    (built.root / "pyproject.toml").write_text("[tool\n")
    outcome = built.command("build")
    assert outcome.status == 2
    assert outcome.output.count("\n") == 1
    assert "pyproject.toml: Expected" in outcome.output
    assert built.command("explain", "first").status == 2


def test_outside_a_checkout(built):
    (built.root / "dodo.py").rename(built.root / "gone.py")
    outcome = built.command("build")
    assert (outcome.status, outcome.output.count("\n")) == (2, 1)
    assert "no checkout here or above" in outcome.output


def test_random_edits_are_never_missed(quiet):
    """The front door says unchanged exactly where doit would say so."""
    chance = random.Random(5)
    path = quiet.root / "coppelius/kernels/plain.py"
    original = path.read_text()
    for _ in range(8):
        if chance.random() < 0.7:
            word = chance.choice(("plain", "Plain", "plume"))
            status = path.stat()
            path.write_text(original.replace('"plain"', f'"{word}"'))
            if chance.random() < 0.5:
                os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        else:
            word = None
        assert quiet.command("build").status == 0
        if word:
            assert word in (quiet.root / "build/sm86/first/emit.sass").read_text()
        time.sleep(chance.choice((0, 0.05)))


# fmt: off
OBJECTIONS = [
    (("--alwyas-execute",),   "option --alwyas-execute not recognized; nearest: --always-execute"),
    (("--tracee", "x"),       "option --tracee not recognized; nearest: --trace"),
    (("emit", "--singel"),    "option --singel not recognized; nearest: --single"),
    (("-z",),                 "option -z not recognized; `doit help run` lists the options"),
    (("-n",),                 "option -n requires argument; `doit help run` lists the options"),
    (("encode:frist",),       "no step 'encode:frist'; nearest: encode:first"),
    (("zzz",),                "no step 'zzz'; `doit list --all` names them"),
]
# fmt: on


@pytest.mark.parametrize(("arguments", "says"), OBJECTIONS)
def test_an_argument_that_doit_does_not_know_is_one_line(built, arguments, says):
    outcome = built.command("build", *arguments)
    assert (outcome.status, outcome.output) == (2, f"coppelius build: {says}\n")


@pytest.mark.parametrize("command", ["images", "build", "explain first", "graph", "show first"])
def test_what_works_on_a_checkout_refuses_elsewhere(built, command):
    (built.root / "dodo.py").rename(built.root / "gone.py")
    outcome = built.command(*command.split())
    assert (outcome.status, outcome.output.count("\n")) == (2, 1)
    assert "no checkout here or above" in outcome.output
    assert built.command(command.split()[0], "--help").status == 0
