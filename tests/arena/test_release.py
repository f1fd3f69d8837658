"""A release, byte by byte, and everything that must stop one."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from coppelius.arena import release
from coppelius.arena.addresses import address
from coppelius.arena.release import Plan, Record, make_release
from coppelius.catalog import IMAGES, declaration
from coppelius.isa.refusal import Refusal

SCHEMA = json.loads(Path(release.__file__).with_name("manifest.schema.json").read_text())
PLAN = Plan("sm86", "bf16", 0x100000000, 256)
ACCEPTED = {"scoreboard": "accepted", "fixed_latency": "accepted"}
DECLARATIONS = {image.identity: declaration(image) for image in IMAGES}


def record(identity: str, count: int, offset: int, checks: Mapping[str, str] = ACCEPTED) -> Record:
    material = bytes([len(identity)]) * (16 * count)
    return Record(identity, material, offset, 24, DECLARATIONS[identity], checks)


RECORDS = [record("fill", 17, 0), record("copy", 1, 512), record("scale", 16, 768)]


def test_the_arena_is_materials_at_their_offsets_and_zeros_between() -> None:
    arena = make_release(PLAN, RECORDS).arena
    expected = b"\4" * 272 + bytes(240) + b"\4" * 16 + bytes(240) + b"\5" * 256
    assert arena == expected


def test_the_manifest_in_full() -> None:
    made = make_release(PLAN, RECORDS[:1])
    material = RECORDS[0].material
    digest = hashlib.sha256(material).hexdigest()
    entry = {
        "identity": "fill", "index": 0, "offset": 0, "address": 0x100000000, "bytes": 272, "instructions": 17,
        "registers": 24, "block_x": 256, "shared_bytes": 0, "dynamic_shared": False,
        "grid": ["ceil_div(count, 1024)", 1, 1],
        "parameters": [
            {"name": "out", "kind": "pointer", "type": "u32", "offset": 0x160},
            {"name": "count", "kind": "scalar", "type": "u32", "offset": 0x168},
            {"name": "value", "kind": "scalar", "type": "u32", "offset": 0x16C},
        ],
        "sha256": digest,
        "checks": {"fixed_latency": "accepted", "scoreboard": "accepted"},
    }  # fmt: skip
    expected = {
        "target": "sm86", "half_format": "bf16", "base": 0x100000000, "alignment": 256, "bytes": 272,
        "sha256": digest, "admitted": True, "images": [entry],
    }  # fmt: skip
    assert made.manifest == expected
    # spelling and key order are part of the format
    assert made.manifest_bytes.decode() == json.dumps(expected, indent=2) + "\n"


def test_the_manifest_satisfies_its_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    manifest = json.loads(make_release(PLAN, RECORDS).manifest_bytes)
    jsonschema.validate(manifest, SCHEMA)
    assert [address(manifest, r.identity) for r in RECORDS] == [PLAN.base + r.offset for r in RECORDS]


# fmt: off
WRONG = [
    ("half_format",          lambda m: m.update(half_format="f32")),
    ("admitted",             lambda m: m.update(admitted=False)),
    ("base",                 lambda m: m.update(base=0)),
    ("sha256",               lambda m: m.update(sha256="00")),
    ("a missing key",        lambda m: m.pop("bytes")),
    ("an unknown key",       lambda m: m.update(date="today")),
    ("grid of two",          lambda m: m["images"][0]["grid"].pop()),
    ("refused check",        lambda m: m["images"][0]["checks"].update(scoreboard="refused")),
    ("parameter type",       lambda m: m["images"][0]["parameters"][0].update(type="f64")),
    ("parameter offset",     lambda m: m["images"][0]["parameters"][0].update(offset=4)),
    ("registers",            lambda m: m["images"][0].update(registers=256)),
    ("missing image key",    lambda m: m["images"][0].pop("dynamic_shared")),
]
# fmt: on


@pytest.mark.parametrize("damage", [damage for _, damage in WRONG], ids=[what for what, _ in WRONG])
def test_the_schema_objects(damage: Any) -> None:
    manifest = json.loads(make_release(PLAN, RECORDS).manifest_bytes)
    damage(manifest)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(manifest, SCHEMA)


def test_every_catalogue_row_makes_a_valid_entry() -> None:
    offsets = range(0, 256 * len(IMAGES), 256)
    records = [record(image.identity, 1, offset) for image, offset in zip(IMAGES, offsets, strict=True)]
    jsonschema.validate(json.loads(make_release(PLAN, records).manifest_bytes), SCHEMA)


def test_over_48_kib_is_dynamic() -> None:
    for shared, dynamic in ((49_152, False), (49_153, True)):
        declared = {**DECLARATIONS["fill"], "shared_bytes": shared}
        manifest = make_release(PLAN, [replace(RECORDS[0], declaration=declared)]).manifest
        assert manifest["images"][0]["dynamic_shared"] is dynamic


REFUSED = {**ACCEPTED, "scoreboard": "refused"}
# fmt: off
STOPPED = [
    ("empty material",   [replace(RECORDS[0], material=b"")],
     "fill: its material is empty"),
    ("part of a word",   [replace(RECORDS[0], material=b"1234")],
     "fill: 4 bytes are not whole instructions of 16"),
    ("duplicate",        [RECORDS[0], replace(RECORDS[0], offset=512)],
     "fill: two images have this identity"),
    ("stale offset",     [RECORDS[0], replace(RECORDS[1], offset=256)],
     "copy: placed at 0x100, but the images before it end at 0x110, which gives 0x200"),
    ("unaligned offset", [replace(RECORDS[0], offset=16)],      "fill: placed at 0x10"),
    ("unjudged",         [replace(RECORDS[0], checks={})],      "fill: refused (no check has judged it)"),
    ("refused verdict",
     [RECORDS[0], replace(RECORDS[1], checks=REFUSED), replace(RECORDS[2], checks=REFUSED)],
     "copy: refused (scoreboard); nothing is released\n2 of 3 images refused: copy, scale"),
]
# fmt: on


@pytest.mark.parametrize(("records", "says"), [c[1:] for c in STOPPED], ids=[c[0] for c in STOPPED])
def test_a_release_is_refused(records: list[Record], says: str) -> None:
    with pytest.raises(Refusal, match="^" + re.escape(says)):
        make_release(PLAN, records)


# fmt: off
BAD_PLANS = [
    ({"base": 0},            "base 0x0: an address of 0 names no image"),
    ({"base": 0x100000001},  "base 0x100000001: not a multiple of 256"),
    ({"alignment": 100},     "alignment 100: give a power of two"),
    ({"base": 1 << 49},      "base 0x2000000000000: the arena would end past 49 bits"),
]
# fmt: on


@pytest.mark.parametrize(("change", "says"), BAD_PLANS)
def test_a_bad_plan_is_refused(change: dict[str, int], says: str) -> None:
    with pytest.raises(Refusal, match="^" + re.escape(says)):
        make_release(replace(PLAN, **change), RECORDS)  # type: ignore[arg-type]


def test_equal_inputs_give_equal_bytes_whatever_the_order_of_the_checks() -> None:
    turned = [replace(r, checks=dict(reversed(list(r.checks.items())))) for r in RECORDS]
    assert make_release(PLAN, RECORDS).manifest_bytes == make_release(PLAN, turned).manifest_bytes
