"""Blobs and traces: verified on read, whole whatever kills the writer, bounded by last use."""

import hashlib
import os
import random
import signal
import sys
import time
from pathlib import Path

import pytest

from cache.store import BLOB, TRACE, YOUNG, Output, Store, digest_of

SEQUENCES = 150


def keep(store: Store, key: str, contents: dict[str, bytes], seconds: float = 1.0) -> None:
    store.keep_blobs(list(contents.values()))
    outputs = [Output(name, hashlib.sha256(content).hexdigest(), len(content)) for name, content in contents.items()]
    store.keep_trace(key, "step", outputs, seconds)


def key(number: int) -> str:
    return digest_of({"number": number})


def contents_of(number: int) -> dict[str, bytes]:
    return {"a": b"a%d" % (number % 3), "b": b"b" * number}


def find(store: Store, number: int) -> dict[str, bytes] | None:
    found = store.find(key(number), ["a", "b"])
    return found and found.contents


def entries(folder: Path, kind: str = "") -> list[Path]:
    return sorted(path for path in (folder / kind).rglob("*") if path.is_file() and path.name != "lock")


def test_what_is_kept_is_found_and_nothing_else(tmp_path):
    store = Store(tmp_path)
    keep(store, key(1), contents_of(1), 2.5)
    found = store.find(key(1), ["a", "b"])
    assert (found.contents, found.seconds) == (contents_of(1), 2.5)
    assert store.find(key(2), ["a", "b"]) is None
    assert store.find(key(1), ["b", "a"]) is None  # outputs by other names
    assert all(path.stat().st_mode & 0o222 == 0 for path in entries(tmp_path, BLOB))


def test_a_key_is_one_spelling_of_its_parts():
    assert digest_of({"a": 1, "b": [2]}) == digest_of({"b": [2], "a": 1})
    assert digest_of({"a": 1}) != digest_of({"a": "1"})


def test_no_time_path_or_name_of_a_machine_is_in_an_entry(tmp_path):
    for folder in ("one", "another"):
        keep(Store(tmp_path / folder), key(1), contents_of(1))
    one, another = ([(p.name, p.read_bytes()) for p in entries(tmp_path / f)] for f in ("one", "another"))
    assert one == another


def test_damage_of_any_kind_is_a_miss_and_mended(tmp_path):
    """Random sequences of keeping, finding, damaging and collecting against a model in memory."""
    damages = 0
    for seed in range(SEQUENCES):
        chance, store = random.Random(seed), Store(tmp_path / str(seed))
        kept: set[int] = set()
        damaged = False
        for _ in range(12):
            number, act = chance.randrange(4), chance.random()
            if act < 0.4:
                keep(store, key(number), contents_of(number))
                kept.add(number)
            elif act < 0.7:
                found = find(store, number)
                assert found in (None, contents_of(number)), seed
                assert found is None or number in kept, seed
                assert damaged or (found is None) == (number not in kept), seed
            elif act < 0.95:
                damaged |= damage(chance, entries(tmp_path / str(seed)))
                damages += 1
            else:
                store.collect(10**6)
        for number in range(4):
            if find(store, number) is None:  # as a build does
                keep(store, key(number), contents_of(number))
            assert find(store, number) == contents_of(number), seed
    print(f"{SEQUENCES} sequences, {damages} damaged entries", file=sys.__stderr__)


def damage(chance: random.Random, paths: list[Path]) -> bool:
    if not paths:
        return False
    path = chance.choice(paths)
    content, other = path.read_bytes(), chance.choice(paths).read_bytes()
    path.unlink()
    how = chance.choice(("deleted", "truncated", "emptied", "flipped", "of another"))
    if how == "truncated":
        path.write_bytes(content[:-1])
    elif how == "emptied":
        path.write_bytes(b"")
    elif how == "flipped" and content:
        at = chance.randrange(len(content))
        path.write_bytes(content[:at] + bytes([content[at] ^ 1 << chance.randrange(8)]) + content[at + 1 :])
    elif how == "of another":
        path.write_bytes(other)
    return True


def test_a_writer_killed_at_every_point_leaves_no_lie(tmp_path):
    """kill -9 before each file that a writer opens, renames or changes."""
    point, ended = 0, False
    while not ended:
        point += 1
        folder = tmp_path / str(point)
        process = os.fork()
        if process == 0:
            left = point

            def hook(event: str, _arguments: tuple[object, ...]) -> None:
                nonlocal left
                if event in ("open", "os.rename", "os.mkdir", "os.chmod", "os.utime"):
                    left -= 1
                    if left == 0:
                        os.kill(os.getpid(), signal.SIGKILL)

            sys.addaudithook(hook)
            keep(Store(folder), key(5), contents_of(5))
            os._exit(0)
        ended = os.waitpid(process, 0)[1] == 0
        store = Store(folder)
        assert find(store, 5) in (None, contents_of(5)), point
        assert store.bad == 0, point  # nothing half written under a name
        keep(store, key(5), contents_of(5))
        assert find(store, 5) == contents_of(5), point
    assert point > 10


def test_collection_goes_by_last_use_and_spares_the_young(tmp_path):
    store = Store(tmp_path)
    for number in range(1, 6):
        keep(store, key(number), contents_of(number))
    old = time.time() - 2 * YOUNG
    for path in entries(tmp_path):
        os.utime(path, (old, old))
    assert find(store, 2) is not None  # used now
    size = sum(path.stat().st_size for path in entries(tmp_path))
    assert store.collect(size).removed == 0
    done = store.collect(0)
    assert (done.kept, done.removed) == (1, 4)
    assert find(store, 2) == contents_of(2)
    assert find(store, 3) is None
    assert len(entries(tmp_path, TRACE)) == 1
    assert len(entries(tmp_path, BLOB)) == 2


def test_a_collector_takes_the_oldest_first(tmp_path):
    store = Store(tmp_path)
    for number in range(1, 6):
        keep(store, key(number), {"a": bytes(1000), "b": bytes([number]) * 1000})
        used = time.time() - YOUNG * (20 - number)
        for path in entries(tmp_path):
            if path.stat().st_mtime > time.time() - 60:
                os.utime(path, (used, used))
    done = store.collect(5000)
    assert 0 < done.removed < 5
    assert done.bytes_kept <= 5000
    assert [store.find(key(n), ["a", "b"]) is not None for n in range(1, 6)] == [False] * done.removed + [
        True
    ] * done.kept


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_store_of_somebody_elses_is_read(tmp_path):
    keep(Store(tmp_path), key(1), contents_of(1))
    for path in [*tmp_path.rglob("*"), tmp_path]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    store = Store(tmp_path)
    assert find(store, 1) == contents_of(1)
    keep(store, key(2), contents_of(2))
    for path in [tmp_path, *tmp_path.rglob("*")]:
        if path.is_dir():
            path.chmod(0o755)
