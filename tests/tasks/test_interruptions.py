"""Whatever interrupts or damages a build, the next one ends as a clean one would."""

import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from miniature_checkout import KillAt, Watch

EDIT = ("coppelius/kernels/halves.py", "* count", "* (count + 16)")
UNDO = (EDIT[0], EDIT[2], EDIT[1])
SEED = 20
FILES = (
    "emit.sass",
    "lines.json",
    "halve.sass",
    "origin.json",
    "guard.sass",
    "material.bin",
    "verdict.json",
    "place.json",
)
STAGE_OF = dict(zip(FILES, ["emit", "emit", "halve", "halve", "guard", "encode", "check", "place"], strict=True))

SHARES = 3


@pytest.mark.parametrize("store", ["cold", "warm"])
@pytest.mark.parametrize("share", range(SHARES))
def test_a_build_killed_at_a_write_leaves_nothing_stale(built, share, store, tmp_path):
    """Some of all writes, and each of the last, where the release is published."""

    def chosen(writes):
        points = {*random.Random(SEED).sample(range(1, writes), 5), *range(writes - 5, writes + 1)}
        return sorted(points)[share::SHARES]

    kill_at_writes(built, store, chosen, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("store", ["cold", "warm"])
def test_a_build_killed_at_every_write_leaves_nothing_stale(mini, store, in_memory):
    copied = mini.copy(in_memory / "checkout").built()
    points = kill_at_writes(copied, store, lambda writes: range(1, writes + 1), in_memory)
    print(f"{store} store: killed at each of {points} writes")


@pytest.fixture
def in_memory(tmp_path):
    """A folder that no disk holds up: being killed needs none."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as folder:
        yield Path(folder)


def kill_at_writes(built, store, chosen, folder):
    """Cold: killed while it runs steps and fills the store; warm: while it restores them."""
    before = built.outputs()
    if store == "warm":
        built.edit(*EDIT)
        built.doit()
        built.edit(*UNDO)
        built.doit()

    def chill():
        if store == "cold":
            shutil.rmtree(built.root / "cache/objects")

    chill()
    built.edit(*EDIT)
    watch = Watch(folder / "watch")
    built.doit(before=watch)
    after = built.outputs()
    assert after == built.clean_outputs(folder / "clean")
    writes = len(watch.noted("write"))
    for point in chosen(writes):
        built.edit(*UNDO)
        assert built.doit().status == 0
        assert built.outputs() == before, f"killed at write {point} of {writes}, undone"
        built.edit(*EDIT)
        chill()
        status = built.doit(before=KillAt(point)).status
        # the last writes keep digests and answers that have settled by then: a quick build has fewer of them
        assert status == -signal.SIGKILL or (status == 0 and point > writes - 5)
        assert built.release_is_whole(), f"killed at write {point} of {writes}"
        built.edit(*UNDO)
        assert built.doit().status == 0
        assert built.outputs() == before, f"killed at write {point} of {writes}, undone"
        built.edit(*EDIT)
        assert built.doit().status == 0
        assert built.outputs() == after
    assert [path.name for path in (built.root / "build/.partial").iterdir()] == []
    return writes


@pytest.mark.slow
def test_a_first_build_killed_at_every_write_is_finished_by_the_next(mini, in_memory):
    clean = mini.clean_outputs(in_memory / "clean")
    watched = mini.copy(in_memory / "watched")
    watched.doit(before=Watch(in_memory / "watch"))
    writes = sum(line.startswith("write ") for line in (in_memory / "watch").read_text().splitlines())
    for point in range(1, writes - 5):  # the last writes depend on what has settled
        checkout = mini.copy(in_memory / "checkout")
        assert checkout.doit(before=KillAt(point)).status == -signal.SIGKILL
        assert checkout.release_is_whole(), point
        assert checkout.doit().status == 0
        assert checkout.outputs() == clean, point
        shutil.rmtree(checkout.root)
    print(f"killed at each of {writes} writes of a first build")


def test_a_first_build_killed_anywhere_is_finished_by_the_next(mini, tmp_path):
    clean = None
    for point in (1, 9, 70, 110):
        shutil.rmtree(mini.root / "build", ignore_errors=True)
        shutil.rmtree(mini.root / "cache/objects", ignore_errors=True)
        for path in (mini.root / "cache").glob("state.s*"):
            path.unlink()
        assert mini.doit(before=KillAt(point)).status == -signal.SIGKILL
        assert mini.release_is_whole(), point
        assert mini.doit().status == 0
        clean = clean or mini.clean_outputs(tmp_path / "clean")
        assert mini.outputs() == clean, point


def test_what_a_killed_build_finished_is_not_done_again(mini):
    assert mini.build("run").status != 0  # no such task: nothing is built
    killed = mini.doit("run", "-v", "2", before=KillAt(60))
    assert killed.status == -signal.SIGKILL
    again = mini.build()
    assert again.status == 0
    assert len(set(killed.ran) & set(again.ran)) <= 1  # the step that was running
    assert set(killed.ran) | set(again.ran) == set(mini.steps(also=["arena", "cubin"]))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_nothing_stale(built, number):
    before = built.outputs()
    built.edit(*EDIT)
    assert built.doit(before=KillAt(10, number)).status != 0
    built.edit(*UNDO)
    assert built.doit().status == 0
    assert built.outputs() == before


def damage(path, how):
    content = path.read_bytes()
    status = path.stat()
    if how == "overwritten":
        path.write_bytes(b"forged")
    elif how == "truncated":
        path.write_bytes(content[:-1])
    elif how == "deleted":
        path.unlink()
    else:  # other bytes of the same size under the old time
        path.write_bytes(bytes([content[0] ^ 1]) + content[1:])
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize("how", ["overwritten", "truncated", "deleted", "old time"])
def test_a_damaged_output_is_made_again(built, how):
    before = built.outputs()
    damaged = FILES[:: 1 if how == "old time" else 3]
    for file in damaged:
        damage(built.root / "build/sm86/third" / file, how)
        assert built.build().made == [f"{STAGE_OF[file]}:third"], file
    for file in ("arena.bin", "manifest.json"):
        damage(built.root / "build/sm86" / file, how)
        assert built.build().made == ["arena"], file
    assert built.outputs() == before


def test_a_deleted_build_folder_is_made_again(built):
    before = built.outputs()
    shutil.rmtree(built.root / "build")
    outcome = built.build()
    assert (outcome.ran, outcome.restored) == ([], built.steps(also=["arena", "cubin"]))
    assert built.outputs() == before


def test_files_in_the_place_of_the_release_are_replaced(built):
    before = built.outputs()
    for file in ("arena.bin", "manifest.json"):
        path = built.root / "build/sm86" / file
        content = path.read_bytes()
        path.unlink()
        path.write_bytes(content + b"!")
    assert built.build().made == ["arena"]
    assert built.outputs() == before
    built.edit(*EDIT)
    assert built.doit().status == 0
    assert built.release_is_whole()


def test_new_code_of_equal_size_under_an_old_time_is_seen(built):
    path = built.root / "coppelius/kernels/halves.py"
    status = path.stat()
    built.edit("coppelius/kernels/halves.py", "move half", "copy half")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert built.build().ran == built.steps("emit halve guard encode check", "third", also=["arena", "cubin"])
    assert (built.root / "build/sm86/third/emit.sass").read_text().startswith("copy half")


def test_edits_of_equal_size_in_quick_succession_are_all_seen(built):
    words = ["move half", "copy half", "read half", "take half", "keep half"]
    for old, new in itertools.pairwise(words):
        built.edit("coppelius/kernels/halves.py", old, new)
        assert built.doit().status == 0
        assert (built.root / "build/sm86/third/emit.sass").read_text().startswith(new)


def test_an_edit_while_its_step_runs_is_not_taken_for_built(built):
    path = built.root / "coppelius/kernels/halves.py"
    after = 'def halves(count):\n    return ["later half"] * count\n'
    path.write_text(
        "from pathlib import Path\n\n\n"
        f"def halves(count):\n    Path(__file__).write_text({after!r})\n    return ['first half'] * count\n"
    )
    outcome = built.build()
    assert "emit:third: what it reads changed while it ran" in outcome.output
    assert "emit:third" in built.build().ran
    assert (built.root / "build/sm86/third/emit.sass").read_text().startswith("later half")
    assert built.build().ran == []


def test_an_edit_undone_while_its_step_runs_leaves_no_record_of_the_edit(built):
    path = built.root / "coppelius/kernels/halves.py"
    original = path.read_text()
    edited = "from pathlib import Path\n\n\ndef halves(count):\n    return ['edited half'] * count\n"
    # between looking at the kernel and running it somebody edits it, and undoes that while it runs
    path.write_text(original.replace("move half", "other half"))
    looked_at = path.read_text()
    emitter = built.root / "coppelius/emit.py"
    emitter.write_text(
        emitter.read_text()
        .replace(
            "    module, _, name",
            "    from pathlib import Path\n"
            f"    path = Path(__file__).with_name('kernels') / 'halves.py'\n    path.write_text({edited!r})\n"
            "    module, _, name",
        )
        .replace("    return Emitted", f"    path.write_text({looked_at!r})\n    return Emitted")
    )
    built.doit()
    emitter.write_text(emitter.read_text().replace(f"path.write_text({edited!r})", "pass"))
    built.doit()
    assert (built.root / "build/sm86/third/emit.sass").read_text().startswith("other half")


def test_touched_files_are_read_once(built, tmp_path):
    for path in [*built.source_files(), *built.root.glob("build/sm86/*/*")]:
        os.utime(path)
    time.sleep(0.1)
    assert built.build().ran == []
    watch = Watch(tmp_path / "watch")
    assert built.doit("run", before=watch).status == 0
    assert [path for path in watch.noted("read") if "/kernels/" in path or "/build/" in path] == []


@pytest.mark.parametrize("damage", ["garbage", "torn", "emptied", "deleted", "other layout"])
def test_a_damaged_state_costs_time_and_nothing_else(built, damage):
    before = built.outputs()
    path = built.root / "cache/state.sqlite3"
    if damage == "garbage":
        path.write_bytes(b"not a database at all" * 100)
    elif damage == "torn":
        content = path.read_bytes()
        path.write_bytes(content[:8192] + b"\xff" * 4096 + content[12288:])
    elif damage == "emptied":
        path.write_bytes(b"")
    elif damage == "deleted":
        path.unlink()
    else:
        content = bytearray(path.read_bytes())
        content[60:64] = (77).to_bytes(4, "big")  # user_version
        path.write_bytes(content)
    (built.root / "cache/state.front").unlink(missing_ok=True)  # or nothing is asked of the state
    outcome = built.build()
    assert (outcome.status, outcome.restored) == (0, built.steps(also=["arena", "cubin"]))
    assert outcome.output.count("starting from an empty state") == (damage in ("garbage", "torn", "other layout"))
    assert built.outputs() == before


def test_the_second_of_two_builders_waits_and_finds_all_done(mini):
    slow = mini.root / "coppelius/kernels/halves.py"
    slow.write_text("import time\n\n\ndef halves(count):\n    time.sleep(0.5)\n    return ['half'] * count\n")
    first = mini.fork("run", "-v", "2")
    while not mini.log.exists() or ".  emit:third" not in mini.log.read_text():
        time.sleep(0.01)
    first_log, mini.log = mini.log, mini.log.with_name("second.log")
    second = mini.build()
    mini.log = first_log
    assert mini.finish(first).ran == mini.steps(also=["arena", "cubin"])
    assert (second.status, second.ran) == (0, [])
    assert "another build is running in this checkout" in second.output


@pytest.mark.parametrize("arguments", [(), ("-n", "2")])
def test_a_killed_builder_holds_nobody_up(mini, arguments):
    slow = mini.root / "coppelius/kernels/halves.py"
    slow.write_text("import time\n\n\ndef halves(count):\n    time.sleep(30)\n    return ['half'] * count\n")
    first = mini.fork("run", "-v", "2", *arguments)
    while not mini.log.exists() or ".  emit:third" not in mini.log.read_text():
        time.sleep(0.01)
    os.kill(first, signal.SIGKILL)
    mini.finish(first)
    slow.write_text("def halves(count):\n    return ['half'] * count\n")
    started = time.monotonic()
    assert mini.doit().status == 0
    assert time.monotonic() - started < 15


def test_an_idle_worker_of_a_killed_builder_holds_nobody_up(built):
    slow = built.root / "coppelius/kernels/halves.py"
    slow.write_text("import time\n\n\ndef halves(count):\n    time.sleep(30)\n    return ['half'] * count\n")
    first = built.fork("run", "-v", "2", "-n", "2")  # one step, and so one worker that waits for work
    while ".  emit:third" not in built.log.read_text():
        time.sleep(0.01)
    time.sleep(0.2)
    os.kill(first, signal.SIGKILL)
    built.finish(first)
    slow.write_text("def halves(count):\n    return ['half'] * count\n")
    started = time.monotonic()
    assert built.doit().status == 0
    assert time.monotonic() - started < 15


def test_a_killed_worker_ends_the_build(mini):
    path = mini.root / "coppelius/kernels/halves.py"
    path.write_text("import os\n\n\ndef halves(count):\n    os.kill(os.getpid(), 9)\n")
    outcome = mini.finish(mini.fork("run", "-n", "2"), seconds=20)
    assert outcome.status == 1
    assert "a worker process killed (signal 9)" in outcome.output


def test_a_worker_that_code_of_a_step_ends_ends_the_build(mini):
    path = mini.root / "coppelius/kernels/halves.py"
    path.write_text("import os\n\n\ndef halves(count):\n    os._exit(3)\n")
    outcome = mini.finish(mini.fork("run", "-n", "2"), seconds=20)
    assert outcome.status == 1
    assert "a worker process ended, status 3" in outcome.output


def test_a_killed_worker_is_seen_beside_one_that_has_ended(mini):
    """The ended one is still there to be asked about: doit waits for it last."""
    script = (
        "import multiprocessing, os, signal, sys, time\n"
        "from tasks.manager import _end_with_a_killed_worker\n"
        "start = multiprocessing.get_context('fork').Process\n"
        "signal.signal(signal.SIGCHLD, _end_with_a_killed_worker)\n"
        "ended = start(target=time.sleep, args=[0.3])\n"
        "ended.start()\n"
        "start(target=lambda: os.kill(time.sleep(0.6) or os.getpid(), 9)).start()\n"
        "for _ in range(20):\n    time.sleep(1)\n"
    )
    made = subprocess.run([sys.executable, "-c", script], cwd=mini.root, capture_output=True, text=True, check=False)
    assert (made.returncode, made.stderr) == (1, "a worker process killed (signal 9); its step will run again\n")
