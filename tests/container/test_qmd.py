"""Launch descriptors, bit for bit against a second packing: the fields' published names and places, word by word.

The table has the names of NVIDIA's open headers (open-gpu-doc, classes/compute: clc6c0qmd.h for QMDV03_00, clcec0qmd.h
for QMDV05_00; open drivers that start kernels with them agree), where a place is MW(high:low).
"""

from __future__ import annotations

import json
import re
from functools import cache
from random import Random

import jsonschema
import pytest

from coppelius.container.image import ReleasedImage
from coppelius.container.launches import SCHEMA, Launch, launched, parse_launches
from coppelius.container.qmd import Descriptor, descriptors, pack
from coppelius.isa.refusal import Refusal
from coppelius.lowering.lower import lower
from coppelius.program.listing import parse_listing

CONFIGS = {8: 3, 16: 5, 32: 9, 64: 17, 100: 26}  # KiB -> what the field holds
LISTING = """.target sm86
[B------:R-:W-:-:S05] BAR.SYNC.DEFER_BLOCKING 0x2
[B------:R-:W-:-:S05] EXIT
"""
PUBLISHED = """
QMD_MAJOR_VERSION                    583:580    471:468
QMD_VERSION                          579:576    467:464
QMD_TYPE                             -          153:151
QMD_GROUP_ID                         133:128    149:144
SM_GLOBAL_CACHING_ENABLE             134:134    -
INVALIDATE_TEXTURE_HEADER_CACHE      186:186    472:472
INVALIDATE_TEXTURE_SAMPLER_CACHE     187:187    473:473
INVALIDATE_TEXTURE_DATA_CACHE        188:188    474:474
INVALIDATE_SHADER_DATA_CACHE         189:189    475:475
CWD_MEMBAR_TYPE                      369:368    625:624
API_VISIBLE_CALL_LIMIT               378:378    456:456
SAMPLER_INDEX                        382:382    457:457
CTA_RASTER_WIDTH                     415:384    1279:1248
CTA_RASTER_HEIGHT                    431:416    1295:1280
CTA_RASTER_DEPTH                     463:448    1327:1312
CTA_THREAD_DIMENSION0                607:592    1103:1088
CTA_THREAD_DIMENSION1                623:608    1119:1104
CTA_THREAD_DIMENSION2                639:624    1127:1120
PROGRAM_ADDRESS_LOWER                1567:1536  1055:1024
PROGRAM_ADDRESS_UPPER                1584:1568  1076:1056
REGISTER_COUNT                       656:648    1136:1128
BARRIER_COUNT                        767:763    1141:1137
SHARED_MEMORY_SIZE                   561:544    1162:1152
MIN_SM_CONFIG_SHARED_MEM_SIZE        567:562    1168:1163
MAX_SM_CONFIG_SHARED_MEM_SIZE        574:569    1174:1169
TARGET_SM_CONFIG_SHARED_MEM_SIZE     662:657    1180:1175
CONSTANT_BUFFER_VALID                640:640    1856:1856
CONSTANT_BUFFER_ADDR_LOWER           1055:1024  1375:1344
CONSTANT_BUFFER_ADDR_UPPER           1072:1056  1394:1376
CONSTANT_BUFFER_SIZE_SHIFTED4        1087:1075  1407:1395
CONSTANT_BUFFER_INVALIDATE           1074:1074  1859:1859
SASS_VERSION                         1663:1656  455:448
"""
SASS = {"sm80": 0x80, "sm86": 0x86, "sm89": 0x89, "sm120": 0xA4, "sm121": 0xA4}


def fields_of(blackwell: bool) -> dict[str, tuple[int, int]]:
    """Name -> (highest, lowest bit)."""
    rows = [line.split() for line in PUBLISHED.split("\n") if line]
    places = {row[0]: row[2 if blackwell else 1] for row in rows}
    found = {name: re.fullmatch(r"(\d+):(\d+)", place) for name, place in places.items()}
    return {name: (int(place[1]), int(place[2])) for name, place in found.items() if place}


def config(shared: int) -> int:
    return next(code for kib, code in CONFIGS.items() if shared <= kib * 1024)


def put(words: list[int], high: int, low: int, value: int) -> None:
    """A field's bits one by one, into 32-bit words."""
    assert value < 1 << (high - low + 1)
    for bit in range(low, high + 1):
        words[bit // 32] |= (value >> (bit - low) & 1) << bit % 32


def second(d: Descriptor) -> bytes:
    """Each published field, its value worked out here from what the descriptor says."""
    blackwell = d.target in ("sm120", "sm121")
    unit = 128 if blackwell else 256
    shared = (d.shared_bytes + unit - 1) // unit * unit
    program, bank = d.address >> (4 if blackwell else 0), d.bank.address >> (6 if blackwell else 0)
    values = dict.fromkeys((name for name in fields_of(blackwell) if name.startswith("INVALIDATE")), 1) | {
        "QMD_MAJOR_VERSION": 5 if blackwell else 3, "QMD_VERSION": 0, "QMD_GROUP_ID": 63, "CWD_MEMBAR_TYPE": 1,
        "API_VISIBLE_CALL_LIMIT": 1, "SAMPLER_INDEX": 1,
        "CTA_RASTER_WIDTH": d.grid[0], "CTA_RASTER_HEIGHT": d.grid[1], "CTA_RASTER_DEPTH": d.grid[2],
        "CTA_THREAD_DIMENSION0": d.block[0], "CTA_THREAD_DIMENSION1": d.block[1], "CTA_THREAD_DIMENSION2": d.block[2],
        "PROGRAM_ADDRESS_LOWER": program % 2**32, "PROGRAM_ADDRESS_UPPER": program // 2**32,
        "REGISTER_COUNT": d.registers, "BARRIER_COUNT": d.barriers,
        "SHARED_MEMORY_SIZE": shared // 128 if blackwell else shared,
        "MIN_SM_CONFIG_SHARED_MEM_SIZE": config(shared), "MAX_SM_CONFIG_SHARED_MEM_SIZE": 26,
        "TARGET_SM_CONFIG_SHARED_MEM_SIZE": config(shared),
        "CONSTANT_BUFFER_VALID": 1, "CONSTANT_BUFFER_INVALIDATE": 1,
        "CONSTANT_BUFFER_ADDR_LOWER": bank % 2**32, "CONSTANT_BUFFER_ADDR_UPPER": bank // 2**32,
        "CONSTANT_BUFFER_SIZE_SHIFTED4": (d.bank.size + 15) // 16, "SASS_VERSION": SASS[d.target],
    }  # fmt: skip
    values |= {"QMD_TYPE": 2} if blackwell else {"SM_GLOBAL_CACHING_ENABLE": 1}
    words = [0] * (96 if blackwell else 64)
    assert values.keys() == fields_of(blackwell).keys()
    for name, (high, low) in fields_of(blackwell).items():
        put(words, high, low, values[name])
    return b"".join(word.to_bytes(4, "little") for word in words)


@cache
def code_for(target: str) -> bytes:
    """Words with the third named barrier."""
    native = parse_listing(LISTING)
    return native.encode() if target == "sm86" else lower(native, target).program.encode()


def image(target: str, random: Random, identity: str = "a") -> ReleasedImage:
    address = (1 << 32) + random.randrange(1 << 20) * 256
    shared = random.choice((0, 96, 1024, 5000, 49152, 65536, 99 * 1024))
    block, registers = random.choice((32, 128, 256, 1024)), random.randrange(16, 255)
    code = code_for(target)
    return ReleasedImage(identity, target, code, address, registers, block, shared, False, (1, 1, 1), ())


@pytest.mark.parametrize("target", ["sm80", "sm86", "sm89", "sm120", "sm121"])
def test_both_packings_agree(target: str) -> None:
    random = Random(target)
    for _ in range(50):
        grid = (random.randrange(1, 1 << 31), random.randrange(1, 1 << 16), random.randrange(1, 1 << 16))
        bank = random.randrange(1 << 40) * 256
        made = Descriptor.of(image(target, random), grid, bank)
        assert pack(made).hex() == second(made).hex()
        assert made.barriers == 3


def test_what_the_hardware_cannot_hold_is_refused() -> None:
    one = image("sm86", Random(0))
    with pytest.raises(Refusal, match=r"sm86: a descriptor's program\.high cannot hold 0x20000"):
        pack(Descriptor.of(one, (1, 1, 1), 0, moved=(1 << 49) - (1 << 32)))
    for target in ("sm86", "sm121"):
        with pytest.raises(Refusal, match="address of constant bank 0 0x20 is no multiple of 64"):
            pack(Descriptor.of(image(target, Random(0)), (1, 1, 1), 32))
        with pytest.raises(Refusal, match=r"code address 0x[0-9a-f]+8 is no multiple of 16"):
            pack(Descriptor.of(image(target, Random(0)), (1, 1, 1), 0, moved=8))
    with pytest.raises(Refusal, match="sm90: its descriptor is V04_00"):
        pack(Descriptor.of(image("sm90", Random(0)), (1, 1, 1), 0))


@pytest.mark.parametrize(
    ("grid", "says"),
    [
        ((0, 1, 1), "0 blocks along x; a grid has 1 to 2147483647 there"),
        ((1 << 31, 1, 1), "2147483648 blocks along x"),
        ((1, 65536, 1), "65536 blocks along y; a grid has 1 to 65535 there"),
        ((1, 1, 65536), "65536 blocks along z"),
        ((1, -1, 1), "-1 blocks along y"),
    ],
)
def test_a_grid_that_no_card_launches_is_refused(grid: tuple[int, int, int], says: str) -> None:
    with pytest.raises(Refusal, match=f"a: {says}"):
        Descriptor.of(image("sm86", Random(0)), grid, 0)
    text = LIST.replace("[4, 1, 1]", str(list(grid)))
    with pytest.raises(Refusal, match=r"launch 0 \(add\): "):
        parse_launches(text)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(json.loads(text), SCHEMA)


def test_a_launch_list_gives_a_descriptor_a_launch() -> None:
    random = Random(1)
    images = [image("sm121", random, identity) for identity in ("add", "fill")]
    launches = [Launch("fill", (2, 1, 1), {}), Launch("add", (3, 1, 1), {}), Launch("fill", (4, 1, 1), {})]
    made = descriptors(launches, images, [0x1000, 0x2000, 0x3000], moved=1 << 20)
    expected = [
        Descriptor.of(images[1], (2, 1, 1), 0x1000, moved=1 << 20),
        Descriptor.of(images[0], (3, 1, 1), 0x2000, moved=1 << 20),
        Descriptor.of(images[1], (4, 1, 1), 0x3000, moved=1 << 20),
    ]
    assert made == [second(descriptor) for descriptor in expected]
    with pytest.raises(Refusal, match="3 launches need as many constant banks; 1 are given"):
        descriptors(launches, images, [0x1000])
    with pytest.raises(Refusal, match="no image 'fill' in the release"):
        descriptors(launches, images[:1], [0, 0, 0])


def test_a_descriptor_captured_from_cuda_has_the_same_words() -> None:
    """Published: words 4 and 14 of a launch that CUDA made on SM120, but for one bit."""
    made = pack(Descriptor.of(image("sm120", Random(0)), (1, 1, 1), 0))
    type_and_group, versions = (int.from_bytes(made[4 * n : 4 * n + 4], "little") for n in (4, 14))
    assert type_and_group == 0x013F0000
    assert versions & 0xFFFFFF == 0x5003A4
    assert versions >> 24 == 0x2F ^ 0x20  # the caches; what bit 29 says is not known


LIST = '{"version": 1, "launches": [{"identity": "add", "grid": [4, 1, 1], "parameters": {"count": 4096}}]}'


def test_a_launch_list_selects_images_in_the_release_order() -> None:
    (launch,) = parse_launches(LIST)
    assert launch == Launch("add", (4, 1, 1), {"count": 4096})
    again = Launch("fill", (1, 1, 1), {})
    release: dict[str, list[str]] = {"fill": [], "copy": [], "add": ["out", "count"]}
    assert launched([launch, again, launch], release) == ["fill", "add"]
    with pytest.raises(Refusal, match="launch 0: no image 'add' in the release"):
        launched([launch], {"fill": []})
    with pytest.raises(Refusal, match=r"launch 0 \(add\): no parameter 'count'; it has out, a"):
        launched([launch], {"add": ["out", "a"]})


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('"version": 1', '"version": 2', "an object with"),
        ("[4, 1, 1]", "[4, 0, 1]", "is not three positive integers"),
        ("4096", '"many"', "parameters are numbers by name"),
        ("4096", "NaN", "NaN is no number in JSON"),
        ("4096", "[" * 100_000, "launch list: maximum recursion depth"),
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
