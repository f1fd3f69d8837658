"""A digest is trusted only while nothing can have touched the file."""

import os
import time

import pytest

from cache.database import State
from cache.files import COARSE_STEP, FINE_STEP, MISSING, Files, settled

SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("ctime", "age", "is_settled"),
    [
        (5 * SECOND + 7, FINE_STEP + 1, True),
        (5 * SECOND + 7, FINE_STEP - 1, False),
        (5 * SECOND + 7, -SECOND, False),
        (5 * SECOND, COARSE_STEP + 1, True),
        (5 * SECOND, FINE_STEP + 1, False),
    ],
)
def test_a_young_signature_is_not_settled(ctime, age, is_settled):
    assert settled((ctime, 1, 1, ctime), ctime + age) == is_settled


def test_a_time_in_the_future_is_not_settled():
    assert not settled((9 * SECOND + 7, 1, 1, 5 * SECOND + 7), 6 * SECOND)


@pytest.fixture
def files(tmp_path):
    return Files(tmp_path, State(tmp_path / "state"))


def reads(files):
    """How often the content is read from here on."""
    count = []
    read = files._read

    def counted(path):
        count.append(path)
        return read(path)

    files._read = counted
    return count


def test_a_settled_file_is_read_once_and_in_later_runs_not_at_all(tmp_path, files):
    (tmp_path / "a").write_text("a")
    time.sleep(2 * FINE_STEP / SECOND)
    digest = files.look("a")[1]
    files.save()
    later = Files(tmp_path, State(tmp_path / "state"))
    count = reads(later)
    assert later.look("a")[1] == digest
    assert count == []


def test_a_young_file_is_read_again_and_settles_when_saved(tmp_path, files, monkeypatch):
    count = reads(files)
    monkeypatch.setattr("cache.files.FINE_STEP", 60 * SECOND)
    (tmp_path / "a").write_text("a")
    files.look("a")
    files.look("a")
    files.save()
    files.look("a")
    assert count == ["a", "a", "a"]
    monkeypatch.setattr("cache.files.FINE_STEP", 0)
    files.save()
    count.clear()
    files.look("a")
    assert count == []


def test_other_content_of_equal_size_under_an_old_time_is_seen(tmp_path, files):
    path = tmp_path / "a"
    path.write_text("old")
    time.sleep(2 * FINE_STEP / SECOND)
    old, status = files.look("a"), path.stat()
    path.write_text("new")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    new = files.look("a")
    assert old[0][:2] == new[0][:2]
    assert old[1] != new[1]


def test_what_is_not_there_is_missing(tmp_path, files):
    (tmp_path / "folder").mkdir()
    assert files.look("nothing") == (None, MISSING)
    assert files.look("folder")[1] == MISSING
