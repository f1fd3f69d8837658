"""Parameter values to the bytes of constant bank 0 from 0x160 on.

A pointer is eight bytes, so is u64; other scalars take four; each lies at a multiple of its size.  A
pointer's value is an address, or a numpy array, which then gets a place in memory (once) and is read
and written there.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from coppelius.emulator.memory import Memory
from coppelius.isa.refusal import Refusal

PARAMETER_BASE = 0x160  # published: where SM86 code finds its parameters in constant bank 0
_SCALARS = {"f32": "<f", "u32": "<I", "u64": "<Q"}

Value = int | float | npt.NDArray[Any] | np.generic | bytes


def pack_parameters(rows: Sequence[tuple[str, str, int]], values: Sequence[Value], memory: Memory) -> bytes:
    """(kind, type, offset in constant bank 0) of each parameter, and its value -> parameter bytes."""
    if len(rows) != len(values):
        raise Refusal(f"{len(values)} values for {len(rows)} parameters")
    out = bytearray()
    for (kind, type_, offset), value in zip(rows, values, strict=True):
        at = offset - PARAMETER_BASE
        packed = _pack(kind, type_, value, memory)
        out.extend(bytes(max(0, at + len(packed) - len(out))))
        out[at : at + len(packed)] = packed
    return bytes(out)


def pack_naturally(values: Sequence[Value], memory: Memory) -> bytes:
    """Values in order as C lays them out: arrays and addresses (Python integers) are pointers, numpy scalars and
    `bytes` (a structure, at a multiple of 8 or of its size if less) keep their size."""
    out = bytearray()
    for value in values:
        if isinstance(value, bytes):
            packed, alignment = value, min(8, len(value))
        elif isinstance(value, np.generic):
            packed, alignment = value.tobytes(), value.dtype.itemsize
        else:
            packed, alignment = _pack("pointer", "", value, memory), 8
        out.extend(bytes(-len(out) % alignment))
        out.extend(packed)
    return bytes(out)


def _pack(kind: str, type_: str, value: Value, memory: Memory) -> bytes:
    if kind == "pointer":
        return struct.pack("<Q", pointer_to(value, memory))
    form = _SCALARS.get(type_)
    if form is None:
        raise Refusal(f"no scalar parameter has type {type_!r}; known: {', '.join(_SCALARS)}")
    number = float(value) if type_ == "f32" else int(value)
    try:
        return struct.pack(form, number)
    except (struct.error, OverflowError):
        raise Refusal(f"{value!r} does not fit a parameter of type {type_}") from None


def pointer_to(value: Value, memory: Memory) -> int:
    """The address of a pointer's value: an array gets a place in memory, once."""
    if isinstance(value, np.ndarray):
        placed = memory.address_of(value)
        return memory.place(value) if placed is None else placed
    if isinstance(value, int | np.integer):
        return int(value)
    raise Refusal(f"{value!r} is no pointer: give an address or a numpy array")
