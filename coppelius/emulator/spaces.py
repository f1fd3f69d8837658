"""Loads and stores of many lanes in each space: global, shared, local, and generic addresses that name any of them.

`load` gives the 32-bit parts of each lane's value as `[warps, 32]`, `store` takes them.  An access of fewer
than four bytes is one part, zero-extended.  Lanes that are out of bounds or misaligned are reported, read
zero and store nothing.  Of several lanes that store to one address one wins.

initcheck is told of every access to shared and local memory and to buffers that began undefined, racecheck of
every plain access to shared memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from coppelius.emulator.group import LANES, Bools, Group
from coppelius.emulator.machine import LOCAL_WINDOW, SHARED_WINDOW, STACK_TOP, WINDOW_BYTES
from coppelius.emulator.memory import Span
from coppelius.emulator.operation import Operation
from coppelius.emulator.shadow import load_bytes, store_bytes
from coppelius.emulator.undefined import NONE, Masks

Array = npt.NDArray[Any]
Parts = list[Array]


def load(op: Operation, space: str, g: Group, address: Array, size: int) -> Parts:
    """The parts at each lane's address; `space` is global, shared, local or generic."""
    if space == "generic":
        return _load_generic(op, g, address, size)
    flat = flatten(g, address)
    if op.machine.traffic is not None:
        op.machine.traffic.note(op, space, g, flat, size)
    return [unflatten(g, w) for w in _LOADERS[space](op, g, flat, size)]


def store(op: Operation, space: str, g: Group, address: Array, size: int, parts: Sequence[Array]) -> None:
    """Stores each lane's parts at its address."""
    if space == "generic":
        for name, lanes, local in by_space(g, address):
            store(op, name, lanes, local, size, parts)
        return
    flat = flatten(g, address)
    if op.machine.traffic is not None:
        op.machine.traffic.note(op, space, g, flat, size)
    _STORERS[space](op, g, flat, size, [flatten(g, p) for p in parts])


def flatten(g: Group, value: Array) -> Array:
    """The active lanes' values, one after another."""
    spread = value if value.shape == (g.count, LANES) else np.broadcast_to(value, (g.count, LANES))
    return spread.reshape(-1) if g.mask is None else spread[g.mask]


def unflatten(g: Group, flat: Array) -> Array:
    """Inverse of `flatten`, inactive lanes being zero."""
    if g.mask is None:
        return flat.reshape(g.count, LANES)
    out = np.zeros((g.count, LANES), dtype=flat.dtype)
    out[g.mask] = flat
    return out


def _lanes(g: Group, flags: Bools) -> Bools:
    """`bool[warps, 32]` from flags of the active lanes."""
    out = np.zeros((g.count, LANES), dtype=np.bool_)
    out[g.active] = flags
    return out


def checked(op: Operation, g: Group, flat: Array, size: int, wild: Bools | None, detail: str) -> Array | None:
    """Reports misaligned and wild lanes; the places of the good ones among the active lanes (None: all)."""
    bad = None
    if size > 1:
        crooked = (flat & flat.dtype.type(size - 1)) != 0
        if crooked.any():
            first = int(flat[int(crooked.argmax())])
            text = f"misaligned: {size} bytes must start at a multiple of {size}"
            op.machine.report(op, "memcheck", text, warps=g.warps, lanes=_lanes(g, crooked), address=first)
            bad = crooked
    if wild is not None:
        outside = wild if bad is None else wild & ~bad
        if outside.any():
            first = int(flat[int(outside.argmax())])
            text = f"out of bounds: {size} bytes {detail or op.machine.memory.nearest(first)}"
            op.machine.report(op, "memcheck", text, warps=g.warps, lanes=_lanes(g, outside), address=first)
        bad = wild if bad is None else wild | bad
    return None if bad is None else np.flatnonzero(~bad)


# global


def global_spans(op: Operation, g: Group, flat: Array, size: int) -> list[Span]:
    """The good accesses by buffer; `where` counts among the active lanes."""
    first, last = int(flat[0]), int(flat[-1])
    memory = op.machine.memory
    if first % size == 0 and memory.is_run(flat, size):
        buffer = memory.locate(first)
        if buffer is not None and last + size <= buffer.end:
            start = (first - buffer.base) // size
            return [Span(buffer, None, slice(start, start + len(flat)))]
    good = checked(op, g, flat, size, memory.wild(flat, size), "")
    if good is None:
        return memory.spans(flat, size)
    if not len(good):
        return []
    spans = memory.spans(flat[good], size)
    return [Span(s.buffer, good if s.where is None else good[s.where], s.index) for s in spans]


def _load_global(op: Operation, g: Group, flat: Array, size: int) -> Parts:
    spans = global_spans(op, g, flat, size)
    if op.machine.shadow is not None:
        _note_global(op, g, spans, size, len(flat))
    if len(spans) == 1 and spans[0].where is None:
        return _columns(spans[0].buffer.view(size), spans[0].index)
    parts = _zeros(len(flat), size)
    for span in spans:
        for part, column in zip(parts, _columns(span.buffer.view(size), span.index), strict=True):
            part[span.where] = column
    return parts


def _note_global(op: Operation, g: Group, spans: Sequence[Span], size: int, count: int) -> None:
    """Tells initcheck which bytes of buffers that began undefined nobody has written yet."""
    assert op.machine.shadow is not None
    for span in spans:
        if span.buffer.defined is not None:
            masks = load_bytes(span.buffer.defined, _starts(span, size), size)
            op.machine.shadow.note(g, masks, span.where, count)


def _starts(span: Span, size: int) -> Array:
    """The first byte of each access in its buffer."""
    index = span.index
    return (np.arange(index.start, index.stop) if isinstance(index, slice) else index) * size


def _zeros(count: int, size: int) -> Parts:
    return [np.zeros(count, np.uint32) for _ in range(max(1, size // 4))]


def _columns(view: Array, index: slice | Array) -> Parts:
    rows = view[index] if isinstance(index, slice) else view.take(index, axis=0)
    return [rows] if rows.ndim == 1 else [rows[:, k] for k in range(rows.shape[1])]


def _store_global(op: Operation, g: Group, flat: Array, size: int, parts: Sequence[Array]) -> None:
    for span in global_spans(op, g, flat, size):
        if not span.buffer.writable:
            text = f"store into read-only buffer {span.buffer.name}"
            op.machine.report(op, "memcheck", text, warps=g.warps, lanes=g.active, address=int(flat[0]))
            continue
        _put(span.buffer.view(size), span.index, parts, span.where)
        if span.buffer.defined is not None:
            stored = _stored(op, g, len(parts), span.where)
            store_bytes(span.buffer.defined, _starts(span, size), size, stored)


def _stored(op: Operation, g: Group, parts: int, where: Array | None) -> list[Masks]:
    """The masks of what is stored by these lanes; without initcheck everything is defined."""
    shadow = op.machine.shadow
    flat = [flatten(g, NONE if shadow is None else shadow.part(k)) for k in range(parts)]
    return flat if where is None else [f[where] for f in flat]


def _put(view: Array, index: slice | Array, parts: Sequence[Array], where: Array | None) -> None:
    for k, part in enumerate(parts):
        chosen = part if where is None else part[where]
        if view.ndim == 1:
            view[index] = chosen if chosen.dtype == view.dtype else chosen.astype(view.dtype)
        else:
            view[index, k] = chosen


def _filled(parts: Parts, good: Array | None, count: int) -> Parts:
    """The good lanes' parts among zeros."""
    if good is None:
        return parts
    out = [np.zeros(count, p.dtype) for p in parts]
    for whole, part in zip(out, parts, strict=True):
        whole[good] = part
    return out


# shared


def shared_index(op: Operation, g: Group, flat: Array, size: int) -> tuple[Array, Array | None]:
    """Good lanes' bytes in the batch's shared memory, and their places (None: all)."""
    machine = op.machine
    base = flatten(g, machine.shared_base[g.select])
    high = machine.shared_bytes - size
    if machine.shared_start:
        # what lies below the start becomes a large number, and wild
        flat = flat - np.uint32(machine.shared_start)
    wild = flat > np.uint32(high) if high >= 0 else np.ones(len(flat), dtype=np.bool_)
    detail = f"of {machine.shared_bytes} bytes of shared memory"
    good = checked(op, g, flat, size, wild if wild.any() else None, detail)
    if good is not None:
        flat, base = flat[good], base[good]
    return base + flat, good


def _load_shared(op: Operation, g: Group, flat: Array, size: int) -> Parts:
    at, good = shared_index(op, g, flat, size)
    if op.machine.shadow is not None:
        op.machine.shadow.note(g, load_bytes(op.machine.shadow.shared, at, size), good, len(flat))
    if op.machine.races is not None:
        op.machine.races.read(op, g, at, size, good)
    return _filled(_columns(op.machine.shared_views[size], at >> (size.bit_length() - 1)), good, len(flat))


def _store_shared(op: Operation, g: Group, flat: Array, size: int, parts: Sequence[Array]) -> None:
    at, good = shared_index(op, g, flat, size)
    if op.machine.shadow is not None:
        store_bytes(op.machine.shadow.shared, at, size, _stored(op, g, len(parts), good))
    view, index = op.machine.shared_views[size], at >> (size.bit_length() - 1)
    if op.machine.races is None:
        _put(view, index, parts, good)
        return
    op.machine.races.write(op, g, at, size, good, lambda: _differs(view, index, parts, good))
    _put(view, index, parts, good)
    op.machine.races.lost(op, g, at, good, _differs(view, index, parts, good))


def _differs(view: Array, index: Array, parts: Sequence[Array], where: Array | None) -> Bools:
    """Which of these accesses' bytes in memory are not those given."""
    found = np.zeros(len(index), np.bool_)
    for k, part in enumerate(parts):
        chosen = part if where is None else part[where]
        there = view[index] if view.ndim == 1 else view[index, k]
        found |= there != (chosen if chosen.dtype == view.dtype else chosen.astype(view.dtype))
    return found


# local


def _local_index(op: Operation, g: Group, flat: Array, size: int) -> tuple[Array, Array, Array | None]:
    """Good lanes' byte offsets, their columns in the word-major local memory, and their places."""
    machine = op.machine
    offset = flat.astype(np.int64) - (STACK_TOP - machine.local_bytes)
    wild = (offset < 0) | (offset > machine.local_bytes - size)
    detail = f"of {machine.local_bytes} bytes of local memory (local_bytes of the launch)"
    good = checked(op, g, flat, size, wild if wild.any() else None, detail)
    columns = np.arange(machine.warps * LANES).reshape(-1, LANES)[g.select]
    column = flatten(g, columns)
    return (offset, column, None) if good is None else (offset[good], column[good], good)


def _load_local(op: Operation, g: Group, flat: Array, size: int) -> Parts:
    offset, column, good = _local_index(op, g, flat, size)
    words = op.machine.local.reshape(-1, op.machine.warps * LANES)
    row = offset >> 2
    if op.machine.shadow is not None:
        op.machine.shadow.note(g, op.machine.shadow.load_local(row, column, offset, size), good, len(flat))
    parts: Parts = [words[row + k, column] for k in range(max(1, size // 4))]
    if size < 4:
        shift = (offset & 3).astype(np.uint32) * np.uint32(8)
        parts[0] = parts[0] >> shift & np.uint32((1 << 8 * size) - 1)
    return _filled(parts, good, len(flat))


def _store_local(op: Operation, g: Group, flat: Array, size: int, parts: Sequence[Array]) -> None:
    offset, column, good = _local_index(op, g, flat, size)
    words = op.machine.local.reshape(-1, op.machine.warps * LANES)
    row = offset >> 2
    chosen = [p if good is None else p[good] for p in parts]
    if op.machine.shadow is not None:
        op.machine.shadow.store_local(row, column, offset, size, _stored(op, g, len(chosen), good))
    if size >= 4:
        for k, part in enumerate(chosen):
            words[row + k, column] = part
        return
    shift = (offset & 3).astype(np.uint32) * np.uint32(8)
    mask = np.uint32((1 << 8 * size) - 1)
    kept = words[row, column] & ~(mask << shift)
    words[row, column] = kept | (chosen[0] & mask) << shift


_LOADERS = {"global": _load_global, "shared": _load_shared, "local": _load_local}
_STORERS = {"global": _store_global, "shared": _store_shared, "local": _store_local}


# generic


def by_space(g: Group, address: Array) -> list[tuple[str, Group, Array]]:
    """Lanes by the space their generic address names, with their addresses there, `[warps of the part, 32]`."""
    address = np.broadcast_to(address, (g.count, LANES))
    found = []
    rest: Group | None = g
    for name, window in (("shared", SHARED_WINDOW), ("local", LOCAL_WINDOW)):
        inside = (address - np.uint64(window)) < np.uint64(WINDOW_BYTES)
        part = g.under(inside) if inside.any() else None
        if part is not None:
            found.append((name, part, (address - np.uint64(window)).astype(np.uint32)))
            rest = rest.under(~inside) if rest is not None else None
    if rest is not None:
        found.append(("global", rest, address))
    return found


def in_window(address: Array) -> Bools:
    """Whether generic addresses name shared or local memory."""
    inside: Bools = (address - np.uint64(SHARED_WINDOW)) < np.uint64(WINDOW_BYTES)
    return inside | ((address - np.uint64(LOCAL_WINDOW)) < np.uint64(WINDOW_BYTES))


def _load_generic(op: Operation, g: Group, address: Array, size: int) -> Parts:
    total = [np.zeros((g.count, LANES), np.uint32) for _ in range(max(1, size // 4))]
    for name, part, local in by_space(g, address):
        for out, value in zip(total, load(op, name, part, local, size), strict=True):
            np.copyto(out, value, where=part.active)
    return total


def words(
    op: Operation, space: str, g: Group, flat: Array, size: int
) -> list[tuple[Array, npt.NDArray[np.intp], Array | None]]:
    """For atomics: (one-dimensional words of `size` bytes, index into them, places among the lanes) a piece."""
    if space == "shared":
        at, good = shared_index(op, g, flat, size)
        whole = op.machine.shared.reshape(-1).view(f"u{size}")
        if op.machine.shadow is not None:
            op.machine.shadow.note(g, load_bytes(op.machine.shadow.shared, at, size), good, len(flat))
        return [(whole, at // size, good)] if len(at) else []
    found: list[tuple[Array, npt.NDArray[np.intp], Array | None]] = []
    spans = global_spans(op, g, flat, size)
    if op.machine.shadow is not None:
        _note_global(op, g, spans, size, len(flat))
    for span in spans:
        data = span.buffer.data
        view = data[: len(data) // size * size].view(f"u{size}")
        index = np.arange(span.index.start, span.index.stop) if isinstance(span.index, slice) else span.index
        found.append((view, index, span.where))
    return found
