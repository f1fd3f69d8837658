"""Fat binaries: cubins and PTX of several architectures, wherever they lie in a file.

A fat binary is a 16-byte header (magic, version, header bytes, bytes that follow) and entries: a 64-byte header (kind,
header bytes, payload bytes; compressed bytes, architecture, flags, uncompressed bytes) and a payload. An
executable, library, archive or object holds any number of them; they are found by their magic, which needs no
knowledge of the file around. Payloads are plain, or compressed with lz4 (flag 0x2000) or zstd (0x8000); both
need an optional package, and where it is missing that is said, never skipped.
"""

import mmap
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from coppelius.container.elf import EM_CUDA, MAGIC
from coppelius.isa.refusal import Refusal

Buffer = bytes | mmap.mmap

FATBIN_MAGIC = b"\x50\xed\x55\xba"
HEADER_BYTES, ENTRY_BYTES = 16, 64
KINDS = {
    1: "ptx",
    2: "cubin",
    4: "elf source",
    8: "index",
    16: "mercury",
    64: "nvvm",
}  # 1 and 2 measured, others assumed
PTX, CUBIN = 1, 2
LZ4, ZSTD = 0x2000, 0x8000  # flags; measured from nvcc 13.0 -compress-mode=speed and =size
MAXIMUM_PAYLOAD = 1 << 31  # bytes; no cubin is larger, a corrupt size is


@dataclass(frozen=True)
class Entry:
    """One payload of a fat binary; offsets and sizes in bytes of the file, `unpacked` 0 for a plain one."""

    kind: int
    architecture: int  # 86 for sm_86
    flags: int
    offset: int
    size: int
    unpacked: int

    @property
    def kind_name(self) -> str:
        """ptx, cubin, ... or the number."""
        return KINDS.get(self.kind, f"kind {self.kind}")

    @property
    def compression(self) -> str | None:
        """lz4, zstd or None."""
        return "lz4" if self.flags & LZ4 else "zstd" if self.flags & ZSTD else None


def entries(buffer: Buffer, origin: str) -> Iterator[Entry]:
    """Every entry of every fat binary, in order; a fat binary that is cut off is refused."""
    at = buffer.find(FATBIN_MAGIC)
    while at >= 0:
        end = at + len(FATBIN_MAGIC)
        if at + HEADER_BYTES <= len(buffer):
            _, version, header, size = struct.unpack_from("<IHHQ", buffer, at)
            if version == 1 and header == HEADER_BYTES:  # anything else is a chance hit: code that compares the magic
                end = at + header + size
                if end > len(buffer):
                    raise Refusal(f"{origin}: fat binary at {at:#x} ends at byte {end} of {len(buffer)}: truncated?")
                yield from _entries(buffer, at + header, end, origin)
        at = buffer.find(FATBIN_MAGIC, end)


def _entries(buffer: Buffer, at: int, end: int, origin: str) -> Iterator[Entry]:
    while at + ENTRY_BYTES <= end:
        kind, _, header, size = struct.unpack_from("<HHIQ", buffer, at)
        packed, architecture = struct.unpack_from("<I8xI", buffer, at + 16)
        flags, unpacked = struct.unpack_from("<Q8xQ", buffer, at + 40)
        if header < ENTRY_BYTES or at + header + size > end:
            raise Refusal(f"{origin}: entry at {at:#x} of a fat binary runs past its end: corrupt")
        compressed = bool(flags & (LZ4 | ZSTD))
        if compressed and packed > size:
            raise Refusal(f"{origin}: entry at {at:#x} has {packed} compressed bytes in {size}: corrupt")
        held = packed if compressed and packed else size
        yield Entry(kind, architecture, flags, at + header, held, unpacked if compressed else 0)
        at += header + size


def payload(buffer: Buffer, entry: Entry, origin: str) -> bytes:
    """An entry's bytes, uncompressed."""
    raw = bytes(buffer[entry.offset : entry.offset + entry.size])
    if entry.compression is None:
        return raw
    where = f"{origin}: {entry.kind_name} at {entry.offset:#x}"
    if entry.unpacked > MAXIMUM_PAYLOAD:
        raise Refusal(f"{where}: claims {entry.unpacked} bytes uncompressed: corrupt")
    try:
        return (_unpack_lz4 if entry.compression == "lz4" else _unpack_zstd)(raw, entry.unpacked)
    except ImportError:
        package = {"lz4": "lz4", "zstd": "zstandard"}[entry.compression]
        raise Refusal(f"{where} is compressed with {entry.compression}: pip install {package}") from None
    except Exception as error:  # each library has its own errors
        raise Refusal(f"{where}: {entry.compression} data does not unpack ({error}): corrupt") from None


def _unpack_lz4(raw: bytes, size: int) -> bytes:
    if size > 255 * len(raw) + 64:  # published: one length byte stands for at most 255 bytes
        raise ValueError(f"{size} bytes cannot come of {len(raw)}")
    unpacked: bytes = import_module("lz4.block").decompress(raw, uncompressed_size=size)
    if len(unpacked) != size:
        raise ValueError(f"{len(unpacked)} bytes, not {size}")
    return unpacked


def _unpack_zstd(raw: bytes, size: int) -> bytes:
    zstandard = import_module("zstandard")
    claimed = zstandard.get_frame_parameters(raw).content_size
    if claimed not in (size, zstandard.CONTENTSIZE_UNKNOWN):
        raise ValueError(f"the frame holds {claimed} bytes, not {size}")
    unpacked: bytes = zstandard.ZstdDecompressor().decompress(raw, max_output_size=size)
    if len(unpacked) != size:
        raise ValueError(f"{len(unpacked)} bytes, not {size}")
    return unpacked


@contextmanager
def mapped(path: Path) -> Iterator[Buffer]:
    """A file's bytes, mapped; empty bytes for an empty file, which cannot be mapped."""
    with path.open("rb") as file:
        if not file.seek(0, 2):
            yield b""
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as buffer:
            yield buffer


def is_cubin(buffer: Buffer) -> bool:
    """Whether the file is itself a CUDA ELF."""
    return buffer[:4] == MAGIC and buffer[18:20] == EM_CUDA.to_bytes(2, "little")


def cubins_in(path: Path | str, arch: int = 86, relocatable: bool = False) -> Iterator[tuple[bytes, str]]:
    """(cubin, origin) for each cubin of an architecture in any file; the file may be one itself.

    Relocatable cubins (ELF type 1), which a linker still has to join, come only when asked for.
    """
    path = Path(path)
    with mapped(path) as buffer:
        if is_cubin(buffer):
            yield bytes(buffer), path.name
            return
        for entry in entries(buffer, path.name):
            if entry.kind != CUBIN or entry.architecture != arch:
                continue
            cubin = payload(buffer, entry, path.name)
            if not is_cubin(cubin):
                raise Refusal(f"{path.name}: sm_{arch} entry at {entry.offset:#x} is no CUDA ELF: corrupt")
            if relocatable or cubin[16:18] != b"\x01\x00":
                yield cubin, f"{path.name}@{entry.offset:#x}"
