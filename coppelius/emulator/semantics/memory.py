"""Loads and stores of global, local and generic memory.

Cache hints, order and prefetch change no value.  A load whose source predicate is false gives zero
(# published: the predicate of `ld...` with a fallback).  LDC reads a constant bank at a lane's own index.
"""

from __future__ import annotations

import numpy as np

from coppelius.emulator import spaces
from coppelius.emulator.group import LANES, Group
from coppelius.emulator.machine import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_BYTES
from coppelius.emulator.operation import Operation
from coppelius.emulator.registry import Step, executes
from coppelius.emulator.semantics.shared_access import access_size, address_of, extend, indexed_constant
from coppelius.isa.address import ConstantAddress
from coppelius.isa.refusal import Refusal


@executes("LDG", "LD", "LDL", "LDS")
def load(op: Operation) -> Step:
    space = _space(op)
    address = address_of(op, wide=space in ("global", "generic"))
    size, signed = access_size(op)
    writes = [op.destination("D", part) for part in range(max(1, size // 4))]
    wanted = op.predicate("Ps")

    def step(g: Group) -> None:
        part = g.under(wanted(g))
        values = [np.zeros((1, 1), np.uint32)] * len(writes)
        if part is not None:
            values = spaces.load(op, space, part, address(part), size)
        for write, value in zip(writes, values, strict=True):
            write(g, value if size >= 4 else extend(value, signed))

    return step


@executes("STG", "ST", "STL", "STS")
def store(op: Operation) -> Step:
    space = _space(op)
    address = address_of(op, wide=space in ("global", "generic"))
    size, _ = access_size(op)
    index = op.field("data")
    reads = [op.register(index + k if index != 255 else 255) for k in range(max(1, size // 4))]

    def step(g: Group) -> None:
        parts = [np.broadcast_to(read(g), (g.count, LANES)) for read in reads]
        spaces.store(op, space, g, address(g), size, parts)

    return step


@executes("LDC")
def ldc(op: Operation) -> Step:
    """A constant at each lane's index."""
    slot = next(s for s in op.encoding.operands if isinstance(s, ConstantAddress))
    if slot.bank is None:
        raise Refusal(f"{op.encoding.name}: the emulator has no bindless constants (cx[UR][...])")
    size, _ = access_size(op)
    writes = [op.destination("D", part) for part in range(max(1, size // 4))]
    base, offset = op.register(op.field(slot.base.name)), op.field(slot.offset.name)
    return indexed_constant(op, op.field(slot.bank.name), base, offset, writes)


_WINDOWS = {"S": SHARED_WINDOW, "L": LOCAL_WINDOW}


@executes("QSPC")
def qspc(op: Operation) -> Step:
    """Whether a generic address lies in that space, as a predicate and as 1 or 0."""
    address, d, inside = address_of(op, wide=True), op.destination(), op.destination_predicate("Pd")
    space = op.suffix("SPACE")

    def step(g: Group) -> None:
        at = address(g)
        within = {name: at - np.uint64(base) < np.uint64(WINDOW_BYTES) for name, base in _WINDOWS.items()}
        chosen = within[space] if space in within else ~(within["S"] | within["L"])
        d(g, chosen.astype(np.uint32))
        inside(g, chosen)

    return step


def _space(op: Operation) -> str:
    return {"G": "global", "L": "local", "S": "shared"}.get(op.mnemonic[2:3], "generic")
