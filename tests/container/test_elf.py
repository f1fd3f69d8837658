"""Broken cubins: every one gives a result or a refusal of one line; no traceback, no hang."""

import random
import struct
import time
from pathlib import Path

import pytest

from coppelius.container.cubin import read_cubin
from coppelius.isa.refusal import Refusal

CUBINS = Path(__file__).resolve().parents[1] / "data" / "cuda" / "cubins"
SMALL = CUBINS / "O3" / "texture.cubin"


def outcome(image: bytes) -> str | None:
    """None for a result, the message for a refusal; anything else is a failure of the reader."""
    message = None
    try:
        read_cubin(image, "file")
    except Refusal as refusal:
        message = str(refusal)
    assert message is None or (message.startswith("file: ") and "\n" not in message), message
    return message


def boundaries(image: bytes) -> list[int]:
    """Ends of the ELF header, of each section and of each section header, and one byte to either side."""
    table, count = struct.unpack_from("<Q", image, 40)[0], struct.unpack_from("<H", image, 60)[0]
    places = {0, 4, 16, 64}
    for index in range(count):
        at = table + 64 * index
        offset, size = struct.unpack_from("<QQ", image, at + 24)
        places |= {at, at + 64, offset, offset + size}
    return sorted({place + step for place in places for step in (-1, 0, 1) if 0 <= place + step < len(image)})


def test_truncation_at_every_boundary() -> None:
    image = SMALL.read_bytes()
    for length in boundaries(image):
        if length < struct.unpack_from("<Q", image, 40)[0] + 64 * struct.unpack_from("<H", image, 60)[0]:
            assert outcome(image[:length]) is not None, length
        else:
            outcome(image[:length])


def test_random_flips() -> None:
    """Single bits and bursts, most of them in headers and records, which are the most fragile."""
    image, chance, began = SMALL.read_bytes(), random.Random(86), time.monotonic()
    refused = 0
    rounds = 600
    for _ in range(rounds):
        broken = bytearray(image)
        for _ in range(chance.choice((1, 1, 1, 4, 16))):
            at = chance.randrange(chance.choice((64, 4096, len(broken))))
            broken[at] ^= 1 << chance.randrange(8)
        refused += outcome(bytes(broken)) is not None
    assert 0 < refused < rounds
    assert time.monotonic() - began < 60


def test_every_section_type_with_bytes_that_do_not_suit_it() -> None:
    """pyelftools interprets some types (hash tables, notes, dynamic, versions) as it lists the sections."""
    image = SMALL.read_bytes()
    table, count = struct.unpack_from("<Q", image, 40)[0], struct.unpack_from("<H", image, 60)[0]
    special = [0x6FFFFFF5, 0x6FFFFFF6, 0x6FFFFFF7, 0x6FFFFFFD, 0x6FFFFFFE, 0x6FFFFFFF, 0x70000001, 0x70000003]
    for index in range(count):
        for kind in [*range(20), *special]:
            broken = bytearray(image)
            struct.pack_into("<I", broken, table + 64 * index + 4, kind)
            outcome(bytes(broken))


def test_every_section_header_field_at_its_extremes() -> None:
    image = SMALL.read_bytes()
    table, count = struct.unpack_from("<Q", image, 40)[0], struct.unpack_from("<H", image, 60)[0]
    fields = [(0, "<I"), (4, "<I"), (8, "<Q"), (24, "<Q"), (32, "<Q"), (40, "<I"), (44, "<I"), (48, "<Q"), (56, "<Q")]
    for index in range(count):
        for offset, layout in fields:
            for value in (0, 1, (1 << 8 * struct.calcsize(layout)) - 1, 1 << (8 * struct.calcsize(layout) - 1)):
                broken = bytearray(image)
                struct.pack_into(layout, broken, table + 64 * index + offset, value)
                outcome(bytes(broken))


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (b"", "file: empty file"),
        (b"#!/bin/sh\n", "file: no ELF file (it begins with 23 21 2f 62)"),
        (b"\x7fELF\x02\x01", "file: 6 bytes, an ELF header alone has 64: truncated?"),
        (b"\x7fELF\x01\x01" + bytes(90), "file: no 64-bit little-endian ELF file"),
        (
            b"\x7fELF\x02\x01" + bytes(10) + struct.pack("<HH", 2, 62) + bytes(60),
            "file: ELF machine 62 is not CUDA (190); a fatbin inside it is read by the fatbin reader",
        ),
        (b"\x7fELF\x02\x01" + bytes(10) + struct.pack("<HH", 2, 190) + bytes(60),
         "file: section table of 0 entries of 0 bytes: no cubin has that"),
    ],
)  # fmt: skip
def test_messages(image: bytes, message: str) -> None:
    assert outcome(image) == message


def test_architecture_in_both_layouts() -> None:
    image = bytearray(SMALL.read_bytes())
    assert read_cubin(bytes(image)).architecture == 86
    image[8] = 7
    struct.pack_into("<I", image, 48, 0x560556)  # what toolkits before 13 write
    cubin = read_cubin(bytes(image))
    assert (cubin.architecture, cubin.abi) == (86, 7)


@pytest.mark.slow
def test_many_flips_in_every_cubin() -> None:
    chance = random.Random(1)
    for file in sorted(CUBINS.glob("*/*.cubin")):
        image = file.read_bytes()
        for _ in range(200):
            broken = bytearray(image)
            for _ in range(chance.choice((1, 8, 64))):
                broken[chance.randrange(len(broken))] = chance.randrange(256)
            outcome(bytes(broken))
