"""Files change as a whole, and those published together change together."""

import os
from pathlib import Path

import pytest

from cache import atomic


def contents(folder):
    return {name: (folder / name).read_text() for name in ("a", "b") if (folder / name).exists()}


def test_a_write_replaces_and_leaves_nothing_beside(tmp_path):
    atomic.write(tmp_path / "deep/a", b"1", tmp_path / ".partial")
    atomic.write(tmp_path / "deep/a", b"2", tmp_path / ".partial")
    assert (tmp_path / "deep/a").read_bytes() == b"2"
    assert list((tmp_path / ".partial").iterdir()) == []


def test_an_interrupted_write_leaves_the_old_content(tmp_path, monkeypatch):
    atomic.write(tmp_path / "a", b"old", tmp_path / ".partial")

    def half(path, content):
        with path.open("wb") as file:
            file.write(content[: len(content) // 2])
        raise OSError("the disk is full")

    monkeypatch.setattr(Path, "write_bytes", half)
    with pytest.raises(OSError, match="full"):
        atomic.write(tmp_path / "a", b"new", tmp_path / ".partial")
    assert (tmp_path / "a").read_bytes() == b"old"


def test_publications_replace_one_another(tmp_path):
    for n in range(3):
        atomic.publish(tmp_path, {"a": b"a%d" % n, "b": b"b%d" % n})
        assert contents(tmp_path) == {"a": f"a{n}", "b": f"b{n}"}
    assert len(atomic.releases(tmp_path)) == 1
    atomic.withdraw(tmp_path)
    assert contents(tmp_path) == {}


class Interrupted(Exception):
    pass


def interrupted_publication(folder, content, point):
    """Publishes, stopping at the point-th call that changes the folder; tells whether it was stopped."""
    left = point

    def counted(original):
        def call(*arguments, **named):
            nonlocal left
            left -= 1
            if left < 0:
                raise Interrupted
            return original(*arguments, **named)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in ("mkdir", "symlink", "replace", "unlink", "rmdir"):
            patch.setattr(os, name, counted(getattr(os, name)))
        patch.setattr(Path, "write_bytes", counted(Path.write_bytes))
        try:
            atomic.publish(folder, content)
        except Interrupted:
            return True
        return False


@pytest.mark.parametrize("earlier", [False, True])
def test_an_interrupted_publication_shows_the_old_or_the_new(tmp_path, earlier):
    old, new = {"a": b"old", "b": b"old"}, {"a": b"new", "b": b"new"}
    whole = [{"a": "old", "b": "old"} if earlier else {}, {"a": "new", "b": "new"}]
    stopped, point = True, 0
    while stopped:
        folder = tmp_path / str(point)
        folder.mkdir()
        if earlier:
            atomic.publish(folder, old)
        stopped = interrupted_publication(folder, new, point)
        assert contents(folder) in whole, point
        atomic.publish(folder, new)
        assert contents(folder) == whole[1]
        point += 1
    assert point > 6


def test_a_file_in_the_place_of_a_name_is_replaced(tmp_path):
    atomic.publish(tmp_path, {"a": b"1", "b": b"1"})
    (tmp_path / "a").unlink()
    (tmp_path / "a").write_text("mine")
    atomic.publish(tmp_path, {"a": b"2", "b": b"2"})
    assert contents(tmp_path) == {"a": "2", "b": "2"}


def test_sweep_removes_what_killed_writers_left(tmp_path):
    atomic.sweep(tmp_path / "nothing")
    (tmp_path / "1-a").touch()
    atomic.sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []
