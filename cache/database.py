"""What the build remembers between runs, in one sqlite file: file digests, facts of modules, step records.

A record is saved by a transaction of its own when its step has finished, so that a build killed at any
point keeps what it finished and nothing else.  The log is written ahead (WAL): a process may be killed at
any write.  A damaged or foreign file is dropped with one warning; everything is then built again, which is
slow and never wrong.
"""

import json
import sqlite3
import sys
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

LAYOUT = 2  # of the tables and of what they hold; another number means: forget everything

TABLES = """
create table file (path text primary key, mtime int, size int, inode int, ctime int, digest text) without rowid;
create table module (key text primary key, facts text) without rowid;
create table step (name text primary key, record text) without rowid;
create table code (digest text primary key, modules text) without rowid;
create table forgotten (name text primary key) without rowid;
"""

# primary result codes that say something of the moment or the place, not of the file
NOT_DAMAGE = (
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
)

Signature = tuple[int, int, int, int]  # mtime_ns, size, inode, ctime_ns


class State:
    """The saved state of one checkout; reads on first use, so that a builder that waited reads the newest."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._link: sqlite3.Connection | None = None

    def _connection(self) -> sqlite3.Connection:
        if self._link is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._link = self._opened()
            except sqlite3.DatabaseError as error:
                if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF in NOT_DAMAGE:
                    raise
                print(f"{self._path.name}: {error}; starting from an empty state", file=sys.stderr)
                self._remove_files()
                self._link = self._opened()
        return self._link

    def _opened(self) -> sqlite3.Connection:
        link = sqlite3.connect(self._path, isolation_level=None, timeout=30)
        try:
            (layout,) = link.execute("pragma user_version").fetchone()
            if layout != LAYOUT:
                if layout:
                    raise sqlite3.DatabaseError(f"its layout is {layout}, this build's is {LAYOUT}")
                link.execute("pragma journal_mode=wal")
                link.executescript(f"begin immediate; {TABLES} pragma user_version={LAYOUT}; commit;")
            link.execute("pragma synchronous=normal")
            (sound,) = link.execute("pragma quick_check(1)").fetchone()
            if sound != "ok":
                raise sqlite3.DatabaseError(sound)
        except BaseException:
            link.close()
            raise
        return link

    def _remove_files(self) -> None:
        for suffix in ("", "-wal", "-shm"):
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)

    def files(self) -> dict[str, tuple[Signature, str]]:
        rows = self._connection().execute("select path, mtime, size, inode, ctime, digest from file")
        return {path: ((mtime, size, inode, ctime), digest) for path, mtime, size, inode, ctime, digest in rows}

    def save_files(self, files: Mapping[str, tuple[Signature, str]]) -> None:
        rows = [(path, *signature, digest) for path, (signature, digest) in files.items()]
        self._many("insert or replace into file values (?,?,?,?,?,?)", rows)

    def forget_files(self, paths: Collection[str]) -> None:
        self._many("delete from file where path=?", [(path,) for path in paths])

    def facts(self) -> dict[str, dict[str, Any]]:
        rows = self._connection().execute("select key, facts from module")
        return {key: json.loads(facts) for key, facts in rows}

    def save_facts(self, facts: Mapping[str, Mapping[str, Any]], live: Collection[str]) -> None:
        """Adds `facts`; of the older ones keeps the keys in `live`."""
        known = {key for (key,) in self._connection().execute("select key from module")}
        self._many("delete from module where key=?", [(key,) for key in known - set(live)])
        rows = [(key, json.dumps(fact)) for key, fact in facts.items()]
        self._many("insert or replace into module values (?,?)", rows)

    def records(self) -> dict[str, dict[str, Any]]:
        return {n: json.loads(r) for n, r in self._connection().execute("select name, record from step")}

    def save_record(self, name: str, record: Mapping[str, Any]) -> None:
        self._connection().execute("insert or replace into step values (?,?)", (name, json.dumps(record)))

    def forget_records(self, names: Collection[str]) -> None:
        self._many("delete from step where name=?", [(name,) for name in names])

    def code(self, digest: str) -> dict[str, str]:
        """What counted of each file of a step's code when its digest was this; empty if not known."""
        row = self._connection().execute("select modules from code where digest=?", (digest,)).fetchone()
        return json.loads(row[0]) if row else {}

    def save_code(self, codes: Mapping[str, Mapping[str, str]], live: Collection[str]) -> None:
        """Adds `codes` by digest; of the older ones keeps those in `live`."""
        known = {digest for (digest,) in self._connection().execute("select digest from code")}
        self._many("delete from code where digest=?", [(digest,) for digest in known - set(live)])
        rows = [(digest, json.dumps(modules)) for digest, modules in codes.items() if digest not in known]
        self._many("insert or replace into code values (?,?)", rows)

    def forgotten(self) -> set[str]:
        return {name for (name,) in self._connection().execute("select name from forgotten")}

    def save_forgotten(self, names: Collection[str]) -> None:
        self._many("insert or replace into forgotten values (?)", [(name,) for name in names])

    def remember(self, name: str) -> None:
        self._connection().execute("delete from forgotten where name=?", (name,))

    def close(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None

    def _many(self, statement: str, rows: Iterable[tuple[Any, ...]]) -> None:
        rows = list(rows)
        if not rows:
            return
        link = self._connection()
        link.execute("begin immediate")
        link.executemany(statement, rows)
        link.execute("commit")
