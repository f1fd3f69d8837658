"""What a cubin says beside its code: `.nv.info` records, notes, frames, as ptxas 13.0 spells them.

A record is a format byte, an attribute byte and 16 bits, which hold the value or count the bytes that follow.  The
order of a kernel's records is the target's, and so are those that say nothing here but are always there.  Toolkit
13.0 is named, not a newer one, so that drivers from 13.0 on load the file.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from coppelius.container.code_facts import CodeFacts
from coppelius.container.image import ReleasedImage
from coppelius.container.names import ATTRIBUTES

NUMBERS = {name: number for number, name in ATTRIBUTES.items()}
API_VERSION = 0x82  # measured: toolkit 13.0
_BANK = 0x1F << 12  # of a parameter: no bank of its own
# measured: what ptxas says of a pointer for which PTX gives neither space nor alignment, as nvcc does
_POINTER = 0x500
_VENDOR = b"NVIDIA Corp"
_CUINFO, _TKINFO = 1000, 2000  # kinds of note

# measured: the frame that every kernel without a stack has: the canonical address is R1
COMMON_FRAME = bytes.fromhex(
    "ffffffff2400000000000000ffffffffffffffff0300047cffffffff0f0c818080280008ff8180280881808028000000"
)
_FRAME_AT = 0x14  # where a frame holds the address of its code
# measured: the same bytes in every cubin for the target of toolkit 13.0
_COMPATIBILITY = bytes.fromhex("020900000202010002050500030701010203000002060100040b08000000000000000000")
COMPATIBILITY = {
    90: _COMPATIBILITY,
    120: bytes.fromhex("020900000202010002050500030701010203000002060100040b08005000000000000000"),
    121: _COMPATIBILITY,
}
# measured: the same bytes in every cubin for SM80 to SM89
RELOCATION_ACTION = bytes.fromhex("73000000000000000000001125000536")
CALL_GRAPH = b"".join(struct.pack("<Ii", 0, -n) for n in range(1, 5))  # measured: no kernel calls another


def record(name: str, value: int | bytes = 0, *, width: int = 0) -> bytes:
    """One record: no value, `width` bytes of value, or bytes."""
    if isinstance(value, bytes):
        return struct.pack("<BBH", 4, NUMBERS[name], len(value)) + value
    return struct.pack("<BBH", 1 + width, NUMBERS[name], value)


def words(*values: int) -> bytes:
    """32-bit numbers."""
    return struct.pack(f"<{len(values)}I", *values)


def module_records(registers: Sequence[tuple[int, int]]) -> bytes:
    """Of each kernel, by its symbol: registers, and that it has no stack."""
    out = b""
    for symbol, count in registers:
        out += record("REGCOUNT", words(symbol, count))
        out += record("FRAME_SIZE", words(symbol, 0)) + record("MIN_STACK_SIZE", words(symbol, 0))
    return out


def kernel_records(image: ReleasedImage, facts: CodeFacts, bank_symbol: int, parameters_at: int) -> bytes:
    """A kernel's own records, in the order in which ptxas writes them for this target."""
    number = int(image.target.removeprefix("sm"))
    size = image.parameter_bytes
    parameters = b"".join(
        record("KPARAM_INFO", struct.pack("<IHHI", 0, n, p.offset, p.size << 18 | _BANK | _POINTER * p.pointer))
        for n, p in reversed(list(enumerate(image.parameters)))
    )
    bank = record("PARAM_CBANK", struct.pack("<IHH", bank_symbol, parameters_at, size))
    first = record("CUDA_API_VERSION", words(API_VERSION))
    code = _of_the_code(image, facts, number)
    bank_size = record("CBANK_PARAM_SIZE", size, width=2)
    if number < 90:
        older = record("SW2861232_WAR") if number < 89 else b""
        return b"".join([first, older, bank, bank_size, parameters, code])
    workarounds = record("SW_WAR", words(0 if number >= 100 else 8))  # measured
    return b"".join([first, parameters, record("SPARSE_MMA_MASK", width=2), code, bank_size, bank, workarounds])


def _of_the_code(image: ReleasedImage, facts: CodeFacts, number: int) -> bytes:
    """What is said of the code, and how many threads it was made for."""
    rows = [record("MAXREG_COUNT", 255, width=2)]
    if facts.barriers:
        rows.append(record("NUM_BARRIERS", facts.barriers, width=1))
    rows.append(record("MERCURY_ISA_VERSION", 0x101 if number >= 90 else 0, width=2))
    if facts.cooperative:
        # the mask of each meeting is no register's
        rows.append(record("COOP_GROUP_MASK_REGIDS", words(0xFFFFFFFF) * len(facts.cooperative)))
        rows.append(record("COOP_GROUP_INSTR_OFFSETS", words(*facts.cooperative)))
    if number >= 100:
        rows.append(record("VRC_CTA_INIT_COUNT", width=1))
    rows.append(record("EXIT_INSTR_OFFSETS", words(*facts.exits)))
    if facts.reads_block_z and number < 90:
        rows.append(record("CTAIDZ_USED"))
    rows.append(record("MAX_THREADS", words(image.block_x, 1, 1)))
    if facts.divergent:
        rows.append(record("CRS_STACK_SIZE", words(0)))
    return b"".join(rows)


def frames(code_bytes: Sequence[int]) -> tuple[bytes, list[int]]:
    """A debugger's frames of kernels of so many bytes, and where each wants its kernel's address."""
    out, places = bytearray(COMMON_FRAME), []
    for size in code_bytes:
        places.append(len(out) + _FRAME_AT)
        content = struct.pack("<QQQ", 0, 0, size) + bytes(8)  # the common frame, the code, no change of it
        out += struct.pack("<IQ", 0xFFFFFFFF, len(content)) + content
    return bytes(out), places


def target_note(number: int) -> bytes:
    """For which target the file is, and by which toolkit's rules."""
    return struct.pack("<III12sHHHH", 12, 8, _CUINFO, _VENDOR, 2, number, API_VERSION, 0)


def tool_note() -> bytes:
    """Who wrote the file: a version, then where each of five texts begins."""
    texts = [b"", b"coppelius", b"release 13.0", b"", b""]
    starts = [sum(len(text) + 1 for text in texts[:n]) for n in range(5)]
    content = words(2, *starts) + b"".join(text + b"\0" for text in texts)
    content += bytes(-len(content) % 4)
    return struct.pack("<III12s", 12, len(content), _TKINFO, _VENDOR) + content
