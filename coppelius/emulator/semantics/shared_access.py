"""What loads, stores and atomics share: the size of an access, and the address each lane names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from coppelius.emulator.access import Write
from coppelius.emulator.group import LANES, Group
from coppelius.emulator.operation import Operation
from coppelius.emulator.registry import Step
from coppelius.isa.operands import RZ_INDEX

Array = npt.NDArray[Any]
Read = Callable[[Group], Array]

_32 = np.uint64(32)
_BYTES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "": 4, "32": 4, "64": 8, "128": 16, "U": 4}


def access_size(op: Operation) -> tuple[int, int]:
    """(bytes, bits to sign-extend from or 0) of a load or store."""
    name = op.suffix("SIZE")
    size = _BYTES[name]
    return size, 8 * size if name.startswith("S") else 0


def address_of(op: Operation, name: str = "address", *, wide: bool) -> Read:
    """The address of each lane: uint64 where `wide` (global, generic), else uint32 (shared, local)."""
    slot = op.address(name)
    base, offset = op.field(slot.base.name), op.field(slot.offset.name)
    pair = wide and _is_pair(op, slot.base.name)
    scale = op.field(f"{slot.name}.scale", 0)
    described = bool(op.field(f"{slot.name}.descriptor", 0))
    uniform = op.field(f"{slot.name}.uniform", 63)
    low = op.register(base)
    adds_uniform = not described and uniform != 63
    ulow, uhigh = op.uniform(uniform), op.uniform(uniform + 1)
    if not wide:
        shift, add = np.uint32((0, 2, 3, 4)[scale]), np.uint32(offset & 0xFFFFFFFF)

        def narrow(g: Group) -> Array:
            value = low(g) << shift if scale else low(g)
            value = value + ulow(g) if adds_uniform else value
            return value + add if offset else value

        return narrow
    high = op.register(base + 1 if pair and base != RZ_INDEX else RZ_INDEX)
    add64 = np.uint64(offset & (2**64 - 1))

    def full(g: Group) -> Array:
        value = _pair(low(g), high(g))
        if adds_uniform:
            value = value + _pair(ulow(g), uhigh(g))
        return value + add64 if offset else value

    return full


def _pair(low: Array, high: Array) -> Array:
    first = high.flat[0]
    if (high == first).all():
        # most addresses share their upper half
        return low.astype(np.uint64) | np.uint64(int(first) << 32)
    return low.astype(np.uint64) | high.astype(np.uint64) << _32


def _is_pair(op: Operation, field: str) -> bool:
    access = next(a for a in op.encoding.accesses if a.field == field)
    if isinstance(access.width, int):
        return access.width == 2
    return access.width[1].get(op.field(access.width[0]), 1) == 2


def extend(word: Array, bits: int) -> Array:
    """Sign-extends from that many bits; 0: leaves the zero extension."""
    if word.dtype != np.uint32:
        word = word.astype(np.uint32)
    if not bits:
        return word
    up = np.int32(32 - bits)
    result: Array = (word.view(np.int32) << up >> up).view(np.uint32)
    return result


def indexed_constant(op: Operation, bank: int, index: Read, offset: int, writes: Sequence[Write]) -> Step:
    """Loads from a constant bank at index + offset; past its end is a finding and reads as zero."""
    size, signed = access_size(op)
    data = op.machine.constants.get(bank, np.zeros(0, np.uint8))
    last = len(data) - size

    def step(g: Group) -> None:
        at = np.broadcast_to(index(g).view(np.int32).astype(np.int64) + offset, (g.count, LANES))
        wild = ((at < 0) | (at > last)) & g.active
        if wild.any():
            text = f"out of bounds: {size} bytes of constant bank {bank}, which has {len(data)} bytes"
            op.machine.report(op, "memcheck", text, warps=g.warps, lanes=wild, address=int(at[wild][0]))
        if last < 0:
            return
        safe = np.clip(at, 0, last)
        for k, write in enumerate(writes):
            word = np.zeros(at.shape, np.uint32)
            for n in range(min(size, 4)):
                word |= data[safe + 4 * k + n].astype(np.uint32) << np.uint32(8 * n)
            write(g, extend(word, signed))

    return step
