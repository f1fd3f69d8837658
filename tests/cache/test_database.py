"""The saved state survives readers, and says when it does not survive."""

import sqlite3

import pytest

from cache.database import State


def test_records_and_files_come_back(tmp_path):
    state = State(tmp_path / "state")
    state.save_record("a", {"code": "1"})
    state.save_files({"x": ((1, 2, 3, 4), "digest")})
    again = State(tmp_path / "state")
    assert again.records() == {"a": {"code": "1"}}
    assert again.files() == {"x": ((1, 2, 3, 4), "digest")}
    state.forget_records(["a"])
    assert again.records() == {}


def test_facts_of_modules_that_are_gone_are_dropped(tmp_path):
    state = State(tmp_path / "state")
    state.save_facts({"old": {"n": 1}, "kept": {"n": 2}}, {"old", "kept"})
    state.save_facts({"new": {"n": 3}}, {"kept", "new"})
    assert State(tmp_path / "state").facts() == {"kept": {"n": 2}, "new": {"n": 3}}


def test_a_state_that_is_only_busy_is_not_dropped(tmp_path, monkeypatch):
    first = State(tmp_path / "state")
    first.save_record("a", {})
    first.close()  # an exclusive holder of a log written ahead must be alone
    holder = sqlite3.connect(tmp_path / "state", isolation_level=None)
    holder.execute("pragma locking_mode=exclusive")
    holder.execute("begin exclusive")
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, **{**k, "timeout": 0}))
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        State(tmp_path / "state").records()
    holder.execute("rollback")
    holder.close()
    assert State(tmp_path / "state").records() == {"a": {}}


def test_a_damaged_state_is_dropped_with_one_warning(tmp_path, capsys):
    (tmp_path / "state").write_bytes(b"garbage" * 1000)
    state = State(tmp_path / "state")
    assert state.records() == {}
    state.save_record("a", {})
    assert capsys.readouterr().err.count("starting from an empty state") == 1
    assert State(tmp_path / "state").records() == {"a": {}}
