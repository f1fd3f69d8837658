"""Launch descriptors, bit for bit against a second packing: whole words and shifts, from the published positions."""

from __future__ import annotations

import json
from random import Random

import jsonschema
import pytest

from coppelius.container.image import ReleasedImage
from coppelius.container.launches import SCHEMA, Launch, launched, parse_launches
from coppelius.container.qmd import Descriptor, pack
from coppelius.isa.refusal import Refusal

CONFIGS = {8: 3, 16: 5, 32: 9, 64: 17, 100: 26}  # KiB -> what the field holds


def config(shared: int) -> int:
    return next(code for kib, code in CONFIGS.items() if shared <= kib * 1024)


def put(words: list[int], bit: int, value: int) -> None:
    """Add `value << bit` word by word."""
    word, shift = divmod(bit, 32)
    value <<= shift
    while value:
        words[word] |= value & 0xFFFFFFFF
        value >>= 32
        word += 1


def second(d: Descriptor) -> bytes:
    """Both layouts by lowest bit, values worked out here."""
    blackwell = d.target in ("sm120", "sm121")
    unit = 128 if blackwell else 256
    shared = (d.shared_bytes + unit - 1) // unit * unit
    words = [0] * (96 if blackwell else 64)
    low = config(shared)
    rows = [
        # value                          Ampere Blackwell
        (5 if blackwell else 3,            580,   468),
        (0x3F,                             128,   144),
        (1,                                378,   456),
        (1,                                382,   457),
        (d.grid[0],                        384,  1248),
        (d.grid[1],                        416,  1280),
        (d.grid[2],                        448,  1312),
        (d.block[0],                       592,  1088),
        (d.block[1],                       608,  1104),
        (d.block[2],                       624,  1120),
        (d.address >> (4 * blackwell),    1536,  1024),
        (d.registers,                      648,  1128),
        (d.barriers,                       763,  1137),
        (shared >> (7 * blackwell),        544,  1152),
        (low,                              562,  1163),
        (26,                               569,  1169),
        (low,                              657,  1175),
        (1,                                640,  1856),
        (d.bank.address >> (6 * blackwell), 1024, 1344),
        ((d.bank.size + 15) >> 4,         1075,  1395),
        (1,                               1074,  1859),
        (int(d.target[-2:] if not blackwell else {"sm120": "c0", "sm121": "c1"}[d.target], 16), 1656, 448),
    ]  # fmt: skip
    for value, on_ampere, on_blackwell in rows:
        put(words, on_blackwell if blackwell else on_ampere, value)
    put(words, 151 if blackwell else 134, 2 if blackwell else 1)
    return b"".join(v.to_bytes(4, "little") for v in words)


def image(target: str, random: Random) -> ReleasedImage:
    address = (1 << 32) + random.randrange(1 << 20) * 256
    shared = random.choice((0, 96, 1024, 5000, 49152, 65536, 99 * 1024))
    block = random.choice((32, 128, 256, 1024))
    return ReleasedImage(
        "a", target, bytes(16), address, random.randrange(16, 255), block, shared, False, (1, 1, 1), ()
    )


@pytest.mark.parametrize("target", ["sm80", "sm86", "sm89", "sm120", "sm121"])
def test_both_packings_agree(target: str) -> None:
    random = Random(target)
    for _ in range(50):
        grid = (random.randrange(1, 1 << 31), random.randrange(1, 1 << 16), random.randrange(1, 1 << 16))
        bank = random.randrange(1 << 40) * 256
        made = Descriptor.of(image(target, random), grid, bank, barriers=random.randrange(17))
        assert pack(made).hex() == second(made).hex()


def test_what_the_hardware_cannot_hold_is_refused() -> None:
    one = image("sm86", Random(0))
    with pytest.raises(Refusal, match=r"sm86: a descriptor's grid\.y cannot hold 0x10000"):
        pack(Descriptor.of(one, (1, 65536, 1), 0, barriers=0))
    with pytest.raises(Refusal, match="is no multiple of 64"):
        pack(Descriptor.of(image("sm121", Random(0)), (1, 1, 1), 32, barriers=0))
    with pytest.raises(Refusal, match="sm90: its descriptor is V04_00"):
        pack(Descriptor.of(image("sm90", Random(0)), (1, 1, 1), 0, barriers=0))


LIST = '{"version": 1, "launches": [{"identity": "add", "grid": [4, 1, 1], "parameters": {"count": 4096}}]}'


def test_a_launch_list_selects_images_in_the_release_order() -> None:
    (launch,) = parse_launches(LIST)
    assert launch == Launch("add", (4, 1, 1), {"count": 4096})
    again = Launch("fill", (1, 1, 1), {})
    assert launched([launch, again, launch], ["fill", "copy", "add"]) == ["fill", "add"]
    with pytest.raises(Refusal, match="launch 0: no image 'add' in the release"):
        launched([launch], ["fill"])


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('"version": 1', '"version": 2', "an object with"),
        ("[4, 1, 1]", "[4, 0, 1]", "is not three positive integers"),
        ("4096", '"many"', "parameters are numbers by name"),
        ('"add"', '""', "is no name"),
        ("}]}", "}", "launch list: "),
        ('"grid"', '"grids"', "identity, grid and parameters are wanted"),
    ],
)
def test_a_bad_launch_list_is_refused_by_place(old: str, new: str, why: str) -> None:
    with pytest.raises(Refusal, match=why):
        parse_launches(LIST.replace(old, new))


def test_the_schema_agrees() -> None:
    jsonschema.validate(json.loads(LIST), SCHEMA)
    for bad in (LIST.replace("[4, 1, 1]", "[4, 0, 1]"), LIST.replace('"version": 1', '"version": 2')):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(json.loads(bad), SCHEMA)
