"""doit's own commands do what its users expect."""

import fcntl
import os
import sys
import time

import pytest

STEPS = 32


def test_list_names_the_stages_and_all_steps(built):
    stages = [line.split()[0] for line in built.doit("list").output.splitlines()]
    assert stages == ["arena", "check", "choices", "cubin", "emit", "encode", "gc", "guard", "halve", "lower", "place"]
    listed = built.doit("list", "--all", "--status").output.splitlines()
    assert sum(line.startswith("U ") for line in listed) == STEPS


def test_list_shows_what_is_stale(built):
    built.edit("coppelius/kernels/halves.py", "move half", "copy half")
    listed = built.doit("list", "--all", "--status").output.splitlines()
    assert [line.split()[1] for line in listed if line.startswith("R ") and ":" in line.split()[1]] == ["emit:third"]


def test_info_says_why(built):
    assert "status     : up-to-date" in built.doit("info", "encode:first").output
    built.edit("coppelius/program/encoding.py", "FILL =", "UNUSED = FILL =")
    said = built.doit("info", "encode:first").output
    assert "status     : run" in said
    assert "its code changed" in said
    assert " - build/sm86/first/guard.sass" in said
    assert " - build/sm86/first/material.bin" in said
    (built.root / "build/sm86/first/guard.sass").write_text("forged\n")
    assert (
        "file dependencies have changed:\n    - build/sm86/first/guard.sass"
        in built.doit("info", "encode:first").output
    )
    (built.root / "build/sm86/first/material.bin").unlink()
    assert "targets do not exist:\n    - build/sm86/first/material.bin" in built.doit("info", "encode:first").output


def test_one_step_builds_what_it_needs(mini):
    assert mini.build("encode:third").ran == mini.steps("emit halve guard encode", "third")
    assert mini.build("guard").ran == mini.steps("emit halve guard", "first", "second", "fourth", "fifth")
    assert mini.build("build/sm86/first/material.bin").ran == ["encode:first"]
    assert mini.build("no-such-step").status == 3


def test_a_step_alone_needs_its_inputs(mini):
    outcome = mini.build("-s", "encode:third")
    assert outcome.status == 1
    assert "build/sm86/third/guard.sass is missing; build what makes it first" in outcome.output


def test_forget_makes_a_step_run_again(built):
    assert "forgetting encode:first" in built.doit("forget", "encode:first").output
    assert built.build().ran == ["encode:first"]
    built.doit("forget", "--all")
    assert built.build().ran == built.steps(also=["arena", "cubin"])


def test_clean_removes_what_the_steps_wrote(built):
    before = built.outputs()
    assert "removing file" in built.doit("clean", "--dry-run").output
    assert built.outputs() == before
    built.doit("clean", "encode:first")
    assert built.build().made == ["encode:first"]
    built.doit("clean")
    assert built.outputs() == {}
    assert list((built.root / "build/sm86").glob(".release*")) == []
    outcome = built.build()
    assert (outcome.ran, outcome.restored) == ([], built.steps(also=["arena", "cubin"]))
    assert built.outputs() == before


def test_clean_waits_for_a_build(built):
    path = built.root / "cache/state.lock"
    with path.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # not with our descriptor, which would hold the lock as long as the cleaner lives
        cleaner = built.fork("clean", before=lambda: os.close(lock.fileno()))
        deadline = time.monotonic() + 30
        while "another build is running" not in built.log.read_text() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert built.release_is_whole()
        assert built.outputs()
    assert built.finish(cleaner).status == 0
    assert built.outputs() == {}


def test_always_execute_runs_all_and_changes_nothing(built):
    before = built.outputs()
    assert built.build("--always-execute").ran == built.steps(also=["arena", "cubin"])
    assert built.outputs() == before
    assert built.build().ran == []


@pytest.mark.parametrize("parallel", [(), ("-n", "2")])
def test_always_execute_after_a_build_of_nothing_new(built, parallel):
    """Then no step was looked at one by one before it ran."""
    before = built.outputs()
    built.build()
    assert (built.root / "cache/state.front").exists()
    assert "reads changed" not in (outcome := built.doit("--always-execute", *parallel, "check:third")).output
    assert outcome.status == 0
    assert built.outputs() == before
    assert built.build().ran == []


def test_a_build_of_nothing_new_needs_no_record(built):
    built.build()
    records = built.root / "cache/state.sqlite3"
    kept = records.read_bytes()
    records.write_bytes(b"damaged")
    assert built.build().ran == []
    records.write_bytes(kept)
    folder = next((built.root / "build/sm86").glob("*/material.bin"))
    folder.write_bytes(b"other")
    assert len(built.build().made) == 1


def test_ignore_and_reset_dep(built):
    built.edit("coppelius/kernels/halves.py", "move half", "copy half")
    assert built.doit("ignore", "emit:third").status == 0
    assert built.build("emit").ran == []
    built.doit("forget", "emit:third")
    assert built.build("emit").ran == ["emit:third"]


@pytest.mark.parametrize("parallel", ["process", "thread"])
def test_two_at_once_build_the_same(mini, parallel, tmp_path):
    outcome = mini.build("-n", "2", "-P", parallel)
    assert (outcome.status, outcome.ran) == (0, mini.steps(also=["arena", "cubin"]))
    assert mini.outputs() == mini.clean_outputs(tmp_path / "clean")
    assert mini.build("-n", "2", "-P", parallel).ran == []


def test_doits_own_reporter_works(built):
    built.edit("coppelius/kernels/halves.py", "move half", "copy half")
    output = built.doit("run", "-r", "console").output
    assert ".  emit:third" in output
    assert "-- emit:first" in output


def test_another_working_folder(built):
    folder = built.root / "coppelius"
    outcome = built.doit("run", "-k", before=lambda: os.chdir(folder))
    assert (outcome.status, outcome.output) == (0, f"steps: {STEPS} up to date\n")


def test_loading_the_tasks_imports_nothing_heavy(built, tmp_path):
    seen = tmp_path / "modules"
    heavy = ("numpy", "networkx", "rich", "click", "coppelius.kernels", "coppelius.check", "coppelius.emit")

    def drop():
        for name in [name for name in sys.modules if name.startswith(heavy)]:
            del sys.modules[name]
        end = os._exit

        def note(status):
            seen.write_text("\n".join(sys.modules))
            end(status)

        os._exit = note  # in this forked process only

    assert built.doit("list", before=drop).status == 0
    loaded = seen.read_text().splitlines()
    assert "tasks.step" in loaded
    assert [name for name in loaded if name.startswith(heavy)] == []
