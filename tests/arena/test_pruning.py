"""A pruned release: fewer images, placed anew; the whole one's otherwise."""

import hashlib

import pytest

from coppelius.arena.pruning import prune, same_but_placed
from coppelius.arena.release import Plan, Record, make_release
from coppelius.isa.refusal import Refusal

DECLARED = {"block_x": 32, "shared_bytes": 0, "grid": [1, 1, 1], "parameters": []}


def whole():
    records = [
        Record(name, bytes([n + 1]) * 16 * (9 * n + 1), offset, 24, DECLARED, {"all": "accepted"})
        for n, (name, offset) in enumerate((("a", 0), ("b", 256), ("c", 512)))
    ]
    return make_release(Plan("sm86", "bf16", 1 << 32, 256), records)


def test_addresses_follow_and_nothing_else_changes():
    made = whole()
    pruned = prune(made.manifest, made.arena, {"c", "a"})
    assert [(i["identity"], i["index"], i["offset"]) for i in pruned.manifest["images"]] == [("a", 0, 0), ("c", 1, 256)]
    assert pruned.manifest["images"][1]["address"] == (1 << 32) + 256
    assert pruned.arena[256:] == made.arena[512 : 512 + 16 * 19]
    assert pruned.manifest["sha256"] == hashlib.sha256(pruned.arena).hexdigest()
    assert same_but_placed(pruned.manifest, made.manifest)


def test_an_unknown_identity_is_refused():
    made = whole()
    with pytest.raises(Refusal, match="no image 'd' in the release for sm86"):
        prune(made.manifest, made.arena, ["a", "d"])


def test_all_images_give_the_whole_release():
    made = whole()
    assert prune(made.manifest, made.arena, "abc") == made
