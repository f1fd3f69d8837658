"""Code runs as it stands in the source."""

import os
import sys

import pytest

from cache.imports import ContentFinder


@pytest.fixture
def checkout(tmp_path):
    """A finder for a checkout whose `cache` package is a stand-in."""
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache/__init__.py").touch()
    return tmp_path, ContentFinder(tmp_path)


def run(checkout, module="cache.thing"):
    root, finder = checkout
    spec = finder.find_spec(module, [str(root / "cache")])
    code = spec.loader.get_code(module)
    names = {}
    exec(code, names)
    return names["VALUE"], code


def test_an_edit_of_equal_size_and_time_is_run(checkout):
    path = checkout[0] / "cache/thing.py"
    path.write_text("VALUE = 1\n")
    status = path.stat()
    assert run(checkout)[0] == 1
    path.write_text("VALUE = 2\n")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert run(checkout)[0] == 2


def test_bytecode_is_kept_and_trusted_by_content(checkout, monkeypatch):
    path = checkout[0] / "cache/thing.py"
    path.write_text("VALUE = 1\n")
    run(checkout)
    monkeypatch.setattr("cache.imports.ContentLoader.source_to_code", None)
    os.utime(path)
    assert run(checkout)[0] == 1


@pytest.mark.parametrize("damage", [b"", b"\0", b"x" * 100])
def test_damaged_bytecode_counts_as_none(checkout, damage):
    path = checkout[0] / "cache/thing.py"
    path.write_text("VALUE = 1\n")
    run(checkout)
    (kept,) = (checkout[0] / "cache/state.code").iterdir()
    kept.write_bytes(kept.read_bytes()[:-1] + damage)
    assert run(checkout)[0] == 1


def test_frames_name_the_source(checkout):
    path = checkout[0] / "cache/thing.py"
    path.write_text("VALUE = 1\n")
    run(checkout)
    assert run(checkout)[1].co_filename == str(path)


def test_other_packages_are_left_to_python(checkout):
    assert checkout[1].find_spec("json") is None
    assert not any(isinstance(finder, ContentFinder) and finder is checkout[1] for finder in sys.meta_path)
