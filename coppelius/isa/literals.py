"""Immediates as nvdisasm writes them, exact both ways but for NaN payloads (those go into braces).

A float prints with up to 20 significant digits, from 1e9 on with an exponent and 21 of them; `-0.0`,
`+INF`, `-INF`, `+QNAN`, `-SNAN` by name; each of these is followed by a space where more text follows.
"""

from __future__ import annotations

import math
import re
import struct

_NAMED = re.compile(r"^([+-])(INF|QNAN|SNAN)$")
_NUMBER = re.compile(r"^-?\d+(\.\d*)?(e[+-]?\d+)?$")


def float_text(value: float) -> str:
    """A finite float as nvdisasm prints it."""
    if value == 0.0:
        return "-0.0 " if math.copysign(1.0, value) < 0 else "0"
    return f"{value:.20e}" if abs(value) >= 1e9 else f"{value:.20g}"


def _named(sign: bool, infinite: bool, quiet: bool) -> str:
    return f"{'-' if sign else '+'}{'INF' if infinite else 'QNAN' if quiet else 'SNAN'} "


def f32_text(code: int) -> str:
    """A 32-bit pattern as a float literal."""
    if code & 0x7F800000 == 0x7F800000:
        return _named(bool(code >> 31), not code & 0x7FFFFF, bool(code & 0x400000))
    return float_text(struct.unpack("<f", struct.pack("<I", code))[0])


def f16_text(code: int) -> str:
    """A 16-bit IEEE half pattern as a float literal."""
    if code & 0x7C00 == 0x7C00:
        return _named(bool(code >> 15), not code & 0x3FF, bool(code & 0x200))
    return float_text(struct.unpack("<e", struct.pack("<H", code))[0])


def f16_low_text(code: int) -> str:
    """The lower 16 bits of a 32-bit immediate, all of it that counts, as an IEEE half literal."""
    return f16_text(code & 0xFFFF)


def bf16_text(code: int) -> str:
    """A bfloat16 pattern as a float literal."""
    return f32_text(code << 16)


def f64_high_text(code: int) -> str:
    """The upper 32 bits of a double, the lower being zero, as a float literal."""
    if code & 0x7FF00000 == 0x7FF00000:
        return _named(bool(code >> 31), not code & 0xFFFFF, bool(code & 0x80000))
    return float_text(struct.unpack("<d", struct.pack("<II", 0, code))[0])


def _parse(text: str, exponent: int, fraction: int, pack: str, shift: int) -> int | None:
    """Bits of a literal in a format of that many exponent and fraction bits; None if it is not one exactly."""
    text = text.strip()
    named = _NAMED.match(text)
    if named:
        code = ((1 << exponent) - 1) << fraction
        code |= {"INF": 0, "QNAN": 1 << (fraction - 1), "SNAN": 1}[named[2]]
        return code | (named[1] == "-") << (exponent + fraction)
    if not _NUMBER.match(text):
        return None
    value = float(text)
    try:
        packed = struct.pack(pack, value)
    except OverflowError:
        return None
    if math.isinf(value):
        return None
    code = int.from_bytes(packed, "little")
    return code >> shift if not code & ((1 << shift) - 1) else None


def parse_f32(text: str) -> int | None:
    """A float literal -> its 32 bits."""
    return _parse(text, 8, 23, "<f", 0)


def parse_f16(text: str) -> int | None:
    """A float literal -> its 16 IEEE half bits."""
    return _parse(text, 5, 10, "<e", 0)


def parse_bf16(text: str) -> int | None:
    """A float literal -> its 16 bfloat16 bits; None if it is no bfloat16."""
    return _parse(text, 8, 7, "<f", 16)


def parse_f64_high(text: str) -> int | None:
    """A float literal -> the upper 32 bits of its double; None if the lower are not zero."""
    return _parse(text, 11, 20, "<d", 32)


def parse_integer(text: str) -> int | None:
    """`0x1f`, `-0x4`, `12` -> the integer."""
    try:
        return int(text.strip(), 0)
    except ValueError:
        return None
