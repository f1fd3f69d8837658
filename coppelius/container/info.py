"""`.nv.info`: what ptxas tells the driver about a kernel.

A record is a format byte, an attribute byte and 16 bits: formats 1 to 3 hold the value in those bits (none,
8 and 16 of them), format 4 holds the number of bytes that follow. Only this project's readers give the bytes a
meaning; an attribute without a name keeps its number.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from coppelius.container.names import ATTRIBUTES
from coppelius.isa.refusal import Refusal

NO_VALUE, BYTE_VALUE, HALF_VALUE, SIZED_VALUE = 1, 2, 3, 4


@dataclass(frozen=True)
class Attribute:
    """One record: `value` of formats 1 to 3, `data` of format 4."""

    number: int
    format: int
    value: int
    data: bytes

    @property
    def name(self) -> str:
        """EIATTR_... without that prefix; `0x7a` where nothing names the number."""
        return ATTRIBUTES.get(self.number, hex(self.number))

    def words(self, origin: str, at_least: int = 0) -> tuple[int, ...]:
        """The data as 32-bit numbers; refused where it is no whole number of them or fewer than `at_least`."""
        if len(self.data) % 4 or len(self.data) < 4 * at_least:
            raise Refusal(f"{origin}: attribute {self.name} has {len(self.data)} bytes, at least {4 * at_least} needed")
        return struct.unpack(f"<{len(self.data) // 4}I", self.data)


@dataclass(frozen=True)
class Parameter:
    """One kernel parameter; `offset` and `size` in bytes, the offset from the first parameter."""

    ordinal: int
    offset: int
    size: int


@dataclass(frozen=True)
class IndirectBranch:
    """A jump table's branch (BRX) and where it may go: byte offsets into the kernel."""

    offset: int
    targets: tuple[int, ...]


def read_attributes(data: bytes, origin: str) -> Iterator[Attribute]:
    """The records of one section, in order."""
    at = 0
    while at < len(data):
        if at + 4 > len(data):
            raise Refusal(f"{origin}: record at byte {at} is cut off: truncated?")
        kind, number, value = struct.unpack_from("<BBH", data, at)
        at += 4
        if kind == SIZED_VALUE:
            if at + value > len(data):
                raise Refusal(
                    f"{origin}: attribute {number:#x} needs {value} bytes, {len(data) - at} are left: truncated?"
                )
            yield Attribute(number, kind, 0, data[at : at + value])
            at += value
        elif kind in (NO_VALUE, BYTE_VALUE, HALF_VALUE):
            yield Attribute(number, kind, value & 0xFF if kind == BYTE_VALUE else value, b"")
        else:
            raise Refusal(f"{origin}: record at byte {at - 4} has format {kind}; known are 1 to 4")


def read_parameter(attribute: Attribute, origin: str) -> Parameter:
    """u32 index, u16 ordinal, u16 offset, then 32 bits with the size.

    KPARAM_INFO has it in bits [31:18]; KPARAM_INFO_V2, which ptxas writes for more than 4 KiB of parameters,
    in [15:0] (measured: sizes 4, 8 and 0x2ee0).
    """
    if len(attribute.data) != 12:
        raise Refusal(f"{origin}: attribute {attribute.name} has {len(attribute.data)} bytes, not 12")
    _, ordinal, offset, packed = struct.unpack("<IHHI", attribute.data)
    return Parameter(ordinal, offset, packed >> 18 if attribute.name == "KPARAM_INFO" else packed & 0xFFFF)


def read_indirect_branches(attribute: Attribute, origin: str) -> Iterator[IndirectBranch]:
    """INDIRECT_BRANCH_TARGETS: u32 offset, u32 zero, u32 count, then the targets; repeated."""
    words = attribute.words(origin)
    at = 0
    while at < len(words):
        if at + 3 > len(words) or at + 3 + words[at + 2] > len(words):
            raise Refusal(f"{origin}: attribute {attribute.name} is cut off in branch {words[at]:#x}")
        count = words[at + 2]
        yield IndirectBranch(words[at], words[at + 3 : at + 3 + count])
        at += 3 + count
