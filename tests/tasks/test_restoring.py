"""Nothing is computed twice: what was once made comes from the store, and what the store lost is made again."""

import errno
import os
import random
import shutil
import signal
import time

import pytest
from miniature_checkout import KillAt, Watch, is_write

EDIT = ("coppelius/kernels/halves.py", "* count", "* (count + 16)")
UNDO = (EDIT[0], EDIT[2], EDIT[1])
ALL = 32


class FullFrom:
    """From this process's n-th write on, the disk is full."""

    def __init__(self, point):
        self.left = point

    def __call__(self):
        import sys

        sys.addaudithook(self.hook)

    def hook(self, event, arguments):
        if is_write(event, arguments):
            self.left -= 1
            if self.left <= 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(arguments[0]))


def entries(checkout, kind):
    return sorted(path for path in (checkout.root / "cache/objects" / kind).rglob("*") if path.is_file())


def all_steps(checkout):
    return checkout.steps(also=["arena", "cubin"])


def test_an_undone_edit_is_restored(built):
    before = built.outputs()
    built.edit(*EDIT)
    edited = built.build()
    built.edit(*UNDO)
    outcome = built.build()
    assert (outcome.ran, outcome.restored) == ([], edited.ran)
    assert built.outputs() == before
    assert "steps: 10 restored, 22 up to date, 0." in outcome.output
    assert outcome.output.endswith(" s saved\n")
    built.edit(*EDIT)
    assert built.build().ran == []


def test_a_branch_switched_back_is_restored(built):
    before = built.outputs()
    sources = {path: path.read_text() for path in built.source_files()}
    built.edit("coppelius/kernels/common.py", "[word]", "[word, word]")
    built.edit("coppelius/program/encoding.py", 'b"."', 'b"-"')
    built.edit("coppelius/check/verdict.py", '"hazard"]', '"hazards"]')
    built.plan(alignment="512")
    assert len(built.build().ran) > 15
    for path, text in sources.items():
        path.write_text(text)
    built.plan()
    assert built.build().ran == []
    assert built.outputs() == before


def test_a_comment_away_and_back_in_the_encoder_changes_nothing(built):
    built.edit("coppelius/program/encoding.py", "FILL =", "# how to fill\nFILL =")
    assert built.build().made == []


def test_a_fresh_clone_with_a_warm_store_computes_nothing(built, tmp_path):
    clone = built.copy(tmp_path / "elsewhere/clone")
    clone.environment = {"COPPELIUS_STORE": str(built.root / "cache/objects")}
    outcome = clone.build()
    assert (outcome.status, outcome.ran, outcome.restored) == (0, [], all_steps(built))
    assert clone.outputs() == built.outputs()
    assert not (clone.root / "cache/objects").exists()


def test_two_at_once_restore_and_keep(mini, tmp_path):
    assert mini.build("-n", "2").ran == all_steps(mini)
    shutil.rmtree(mini.root / "build")
    assert mini.build("-n", "2").restored == all_steps(mini)
    clone = mini.copy(tmp_path / "clone")
    clone.environment = {"COPPELIUS_STORE": str(mini.root / "cache/objects")}
    assert clone.build("-n", "2", "-P", "thread").restored == all_steps(mini)
    assert clone.outputs() == mini.outputs()


def test_two_builders_on_one_store_at_once(mini, tmp_path):
    shared = {"COPPELIUS_STORE": str(tmp_path / "shared")}
    twin = mini.copy(tmp_path / "twin")
    mini.environment = twin.environment = shared
    for builder in (mini, twin):
        builder.edit("coppelius/emit.py", "    module, _", "    import time\n\n    time.sleep(0.01)\n    module, _")
    first, second = mini.fork("run"), twin.fork("run")
    assert (mini.finish(first).status, twin.finish(second).status) == (0, 0)
    assert mini.outputs() == twin.outputs()
    third = mini.copy(tmp_path / "third")
    third.environment = shared
    assert third.build().restored == all_steps(mini)


def test_forgetting_means_running(built):
    built.doit("forget", "encode:first")
    assert built.build().ran == ["encode:first"]
    assert "it was to be forgotten" not in built.doit("info", "encode:first").output
    built.doit("forget", "--all")
    assert built.build().ran == all_steps(built)
    shutil.rmtree(built.root / "build")
    assert built.build().restored == all_steps(built)


@pytest.mark.parametrize("how", ["overwritten", "truncated", "emptied", "deleted"])
@pytest.mark.parametrize("kind", ["blob", "trace"])
def test_a_damaged_entry_is_made_again_and_said_once(built, kind, how):
    before = built.outputs()
    shutil.rmtree(built.root / "build")
    for path in entries(built, kind)[::3]:
        content = path.read_bytes()
        path.unlink()
        if how != "deleted":
            path.write_bytes({"overwritten": b"forged", "truncated": content[:-1], "emptied": b""}[how])
    outcome = built.build()
    assert outcome.status == 0
    assert outcome.made == all_steps(built)
    assert 0 < len(outcome.ran) < ALL
    assert outcome.output.count("is damaged; dropped, and made again") == (how != "deleted")
    assert (" bad in the store" in outcome.output) == (how != "deleted")
    assert built.outputs() == before
    shutil.rmtree(built.root / "build")
    assert built.build().restored == all_steps(built)  # as good as new


def test_traces_that_lie_about_their_key_are_damaged(built):
    """A trace under the name of another: whole, and yet not what was asked for."""
    traces = entries(built, "trace")
    texts = [path.read_bytes() for path in traces]
    for path, text in zip(traces, texts[1:] + texts[:1], strict=True):
        path.unlink()
        path.write_bytes(text)
    before = built.outputs()
    shutil.rmtree(built.root / "build")
    assert built.build().ran == all_steps(built)
    assert built.outputs() == before


def test_a_refused_release_is_in_no_store(built):
    built.edit("coppelius/kernels/halves.py", '"move half"', '"hazard"')
    assert built.build().status == 1
    built.edit("coppelius/kernels/halves.py", '"hazard"', '"move half"')
    assert built.build().ran == []
    built.edit("coppelius/kernels/halves.py", '"move half"', '"hazard"')
    outcome = built.build()
    assert (outcome.status, outcome.ran) == (1, ["arena"])  # the verdict is restored, and refuses again
    outcome = built.build("check:third")
    assert (outcome.status, "check:third failed" in outcome.output) == (1, True)


def test_another_version_of_a_tool_makes_all_again(built):
    path = built.root / "tasks/restore.py"
    path.write_text(path.read_text().replace("found[package] = version(package)", 'found[package] = "9"'))
    assert "numpy " in built.doit("info", "place:first").output
    assert built.build().ran == all_steps(built)


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_a_full_disk_loses_nothing(built, workers, tmp_path):
    before = built.outputs()
    watch = Watch(tmp_path / "watch")
    built.edit(*EDIT)
    assert built.doit(*(("run", *workers) if workers else ()), before=watch).status == 0
    writes = len(watch.noted("write"))
    built.edit(*UNDO)
    built.doit()
    for point in random.Random(7).sample(range(4, writes), 3 if workers else 6):
        built.edit(*EDIT)
        shutil.rmtree(built.root / "cache/objects", ignore_errors=True)
        outcome = built.doit("run", *workers, before=FullFrom(point))
        assert built.release_is_whole(), point
        assert "Traceback" not in outcome.output, (point, outcome.output)
        built.edit(*UNDO)
        assert built.doit().status == 0
        assert built.outputs() == before, point


def test_a_store_that_cannot_be_written_costs_the_store_only(mini, tmp_path):
    (tmp_path / "file").write_text("in the way")
    mini.environment = {"COPPELIUS_STORE": str(tmp_path / "file/store")}
    outcome = mini.build()
    assert (outcome.status, outcome.ran) == (0, all_steps(mini))
    assert outcome.output.count("nothing more is kept") == 1


def test_an_edit_while_steps_are_restored_leaves_no_record(built):
    built.edit(*EDIT)
    built.doit()
    built.edit(*UNDO)

    class EditAt(KillAt):
        def hook(self, event, arguments):
            if is_write(event, arguments) and self.left > 0:
                self.left -= 1
                if self.left == 0:
                    path = built.root / EDIT[0]
                    path.write_text(path.read_text().replace("move half", "copy half"))

    built.doit(before=EditAt(6))
    built.doit()
    assert (built.root / "build/sm86/third/emit.sass").read_text().startswith("copy half")
    assert built.build().made == []


def test_gc_bounds_the_store_and_spares_the_young(built):
    folder = built.root / "cache/objects"
    shown = built.doit("gc", "--size", "0")
    assert (shown.status, "32 traces kept, 0 removed" in shown.output) == (0, True)
    old = time.time() - 7200
    for path in folder.rglob("*"):
        os.utime(path, (old, old))
    built.edit(*EDIT)
    built.build()  # new entries
    shown = built.doit("gc", "--size", "0")
    assert "10 traces kept, 32 removed" in shown.output
    built.edit(*UNDO)
    assert len(built.build().ran) == 10
    assert built.doit("gc", "--size", "lots").status == 1
    assert "write it like 500M or 2G" in built.doit("gc", "--size", "lots").output


def test_a_collection_killed_anywhere_leaves_a_store_that_works(built):
    before = built.outputs()
    old = time.time() - 7200
    for point in (1, 2, 3):
        for path in (built.root / "cache/objects").rglob("*"):
            os.utime(path, (old, old))

        class KillAtRemoval(KillAt):
            def hook(self, event, _arguments):
                if event == "os.remove":
                    self.left -= 1
                    if self.left == 0:
                        os.kill(os.getpid(), signal.SIGKILL)

        assert built.doit("gc", "--size", "1K", before=KillAtRemoval(point * 11)).status == -signal.SIGKILL
        shutil.rmtree(built.root / "build")
        outcome = built.build()
        assert (outcome.status, outcome.made) == (0, all_steps(built))
        assert built.outputs() == before
