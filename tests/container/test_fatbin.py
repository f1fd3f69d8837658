"""Fat binaries: found anywhere, unpacked in both ways, refused by name when broken."""

import random
import struct
import sys
from pathlib import Path

import pytest

from coppelius.container.fatbin import cubins_in, entries, payload
from coppelius.isa.refusal import Refusal

FATBINS = Path(__file__).resolve().parents[1] / "data" / "cuda" / "fatbins"
NAMES = ("plain", "lz4", "zstd")
PACKAGES = {"lz4": "lz4.block", "zstd": "zstandard"}


def need(name: str) -> None:
    if name in PACKAGES:
        pytest.importorskip(PACKAGES[name])


@pytest.mark.parametrize("name", NAMES)
def test_entries(name: str) -> None:
    rows = list(entries((FATBINS / f"{name}.fatbin").read_bytes(), "file"))
    assert [(row.kind_name, row.architecture) for row in rows] == [("cubin", 80), ("cubin", 86), ("ptx", 86)]
    assert {row.compression for row in rows} == {None if name == "plain" else name}


@pytest.mark.parametrize("name", NAMES)
def test_compression_changes_nothing(name: str) -> None:
    need(name)
    plain = [image for image, _ in cubins_in(FATBINS / "plain.fatbin")]
    assert [image for image, _ in cubins_in(FATBINS / f"{name}.fatbin")] == plain
    buffer = (FATBINS / f"{name}.fatbin").read_bytes()
    text = [payload(buffer, row, "file") for row in entries(buffer, "file")][2].rstrip(b"\0")
    assert text.lstrip().startswith(b".version")
    assert b".visible .entry surface_copy" in text


def test_several_inside_an_executable(tmp_path: Path) -> None:
    """Two fat binaries, a chance hit of the magic, and bytes around, as in an archive or library."""
    one, magic = (FATBINS / "plain.fatbin").read_bytes(), b"\x50\xed\x55\xba"
    file = tmp_path / "library.so"
    file.write_bytes(b"\x7fELF" + bytes(60) + magic + b"\x81\xfe" * 20 + one + magic + bytes(4) + one + magic)
    found = list(cubins_in(file))
    assert len(found) == 2
    assert found[0][0] == found[1][0]
    assert [origin for _, origin in found] == ["library.so@0x2124", "library.so@0x6ff4"]
    assert [len(list(cubins_in(file, arch))) for arch in (80, 86, 90)] == [2, 2, 0]


@pytest.mark.parametrize("name", PACKAGES)
def test_missing_library_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, PACKAGES[name], None)
    with pytest.raises(Refusal, match=f"is compressed with {name}: pip install {PACKAGES[name].partition('.')[0]}"):
        list(cubins_in(FATBINS / f"{name}.fatbin"))


def test_relocatable_cubins_only_on_demand(tmp_path: Path) -> None:
    cubin = (FATBINS.parent / "relocatable" / "linkage.cubin").read_bytes()
    size = -(-len(cubin) // 8) * 8
    entry = struct.pack("<HHIQ", 2, 0x101, 64, size) + struct.pack("<IIHHI", 0, 0, 8, 1, 86) + bytes(8)
    entry += struct.pack("<QQQ", 0x11, 0, 0)
    body = entry + cubin.ljust(size, b"\0")
    file = tmp_path / "object.o"
    file.write_bytes(struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body)
    assert list(cubins_in(file)) == []
    assert len(list(cubins_in(file, relocatable=True))) == 1


@pytest.mark.parametrize("name", NAMES)
def test_truncated(name: str, tmp_path: Path) -> None:
    need(name)
    image = (FATBINS / f"{name}.fatbin").read_bytes()
    file = tmp_path / "cut.fatbin"
    for length in (16, 17, 79, 80, 81, len(image) // 2, len(image) - 1):
        file.write_bytes(image[:length])
        with pytest.raises(Refusal, match="truncated"):
            list(cubins_in(file))


@pytest.mark.parametrize("name", NAMES)
def test_random_flips(name: str, tmp_path: Path) -> None:
    """A result or a refusal of one line, in headers as in compressed data."""
    need(name)
    image, chance = (FATBINS / f"{name}.fatbin").read_bytes(), random.Random(7)
    file = tmp_path / "broken.fatbin"
    messages = []
    for _ in range(300):
        broken = bytearray(image)
        broken[chance.randrange(chance.choice((144, len(image))))] ^= 1 << chance.randrange(8)
        file.write_bytes(broken)
        try:
            list(cubins_in(file))
        except Refusal as refusal:
            messages.append(str(refusal))
    assert messages
    assert [text for text in messages if "\n" in text or not text.startswith("broken.fatbin: ")] == []
