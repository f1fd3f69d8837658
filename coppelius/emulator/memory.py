"""Global memory: buffers at 256-byte aligned addresses of one flat 64-bit space, each a numpy array in place.

A kernel may touch only the bytes of a buffer; between buffers lie gaps that belong to none, so an
access beyond a bound never lands in a neighbour.  An access of 2**k bytes must start at a multiple of
2**k.  Loads and stores take many addresses at once; addresses that rise by the access size become one
slice, others one fancy index into a view of the buffer in the access's own width.

Left out: caches and their hints; atomicity between kernels.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from coppelius.isa.refusal import Refusal

Array = npt.NDArray[Any]
Addresses = npt.NDArray[np.uint64]

ALIGNMENT = 256
# just below a multiple of 4 GiB, so that buffers cross it and a lost carry of address arithmetic shows
FIRST_ADDRESS = 0x7_FFFF_C000
GAP = 1 << 16


@dataclass
class Buffer:
    """`data uint8[size]` at `base`; writes show in the array it was made from."""

    name: str
    base: int
    data: npt.NDArray[np.uint8]
    writable: bool = True
    source: Array | None = field(default=None, repr=False)
    # of a buffer that began undefined: a flag for each byte that was written, for initcheck
    defined: npt.NDArray[np.uint8] | None = field(default=None, repr=False)
    _views: dict[int, Array] = field(default_factory=dict, repr=False)

    @property
    def end(self) -> int:
        return self.base + len(self.data)

    def view(self, width: int) -> Array:
        """Its whole words of 1, 2 or 4 bytes; of 8 and 16 bytes as `uint32[n, 2]` and `uint32[n, 4]`."""
        found = self._views.get(width)
        if found is None:
            whole = self.data[: len(self.data) // width * width]
            found = whole.view(np.uint32).reshape(-1, width // 4) if width > 4 else whole.view(f"u{width}")
            self._views[width] = found
        return found


class Memory:
    """The buffers of a launch; `place` gives the address to pass as a parameter."""

    def __init__(self) -> None:
        self.buffers: list[Buffer] = []
        self._next = FIRST_ADDRESS
        self._bases: Addresses = np.zeros(0, dtype=np.uint64)

    def place(self, array: Array, name: str = "", *, writable: bool = True, undefined: bool = False) -> int:
        """Gives a C-contiguous array an address; the kernel reads and writes the array itself.

        `undefined`: its contents mean nothing until a kernel writes them, which initcheck watches.
        """
        if not array.flags.c_contiguous:
            raise Refusal(f"buffer {name or len(self.buffers)}: only a C-contiguous array has a place in memory")
        data = array.reshape(-1).view(np.uint8)
        may_write = writable and array.flags.writeable
        buffer = Buffer(name or f"#{len(self.buffers)}", self._next, data, may_write, array)
        if undefined:
            buffer.defined = np.zeros(len(data), np.uint8)
        self.buffers.append(buffer)
        self._bases = np.array([b.base for b in self.buffers], dtype=np.uint64)
        self._next += -(-(len(data) + GAP) // ALIGNMENT) * ALIGNMENT
        return buffer.base

    def allocate(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike, name: str = "") -> tuple[int, Array]:
        """A zeroed array and its address."""
        array = np.zeros(shape, dtype=dtype)
        return self.place(array, name), array

    def address_of(self, array: Array) -> int | None:
        """Where this very array was placed, or None."""
        if not array.size:
            return next((b.base for b in self.buffers if b.source is array), None)
        pointer = array.__array_interface__["data"][0]
        for b in self.buffers:
            if b.data.__array_interface__["data"][0] == pointer and len(b.data) == array.nbytes:
                return b.base
        return None

    def locate(self, address: int) -> Buffer | None:
        """The buffer that holds this byte."""
        at = int(np.searchsorted(self._bases, np.uint64(address), side="right")) - 1
        if at < 0 or address >= self.buffers[at].end:
            return None
        return self.buffers[at]

    def nearest(self, address: int) -> str:
        """Where an address lies with respect to the buffer before it, for messages."""
        at = int(np.searchsorted(self._bases, np.uint64(address), side="right")) - 1
        if at < 0:
            return "below every buffer" if self.buffers else "there are no buffers"
        b = self.buffers[at]
        if address >= b.end:
            return f"{address - b.end} bytes past the end of buffer {b.name} ({b.base:#x}, {len(b.data)} bytes)"
        return f"at byte {address - b.base} of buffer {b.name} ({b.base:#x}, {len(b.data)} bytes)"

    def wild(self, addresses: Addresses, size: int) -> npt.NDArray[np.bool_] | None:
        """`bool[n]`: the accesses that lie in no buffer (None: none does)."""
        low, high = int(addresses.min()), int(addresses.max())
        buffer = self.locate(low)
        if buffer is not None and high + size <= buffer.end:
            return None
        owner = np.searchsorted(self._bases, addresses, side="right") - 1
        ends = np.array([b.end for b in self.buffers] or [0], dtype=np.uint64)
        bad = (owner < 0) | (addresses + np.uint64(size) > ends[owner]) | (addresses > np.uint64(-size & (2**64 - 1)))
        return bad if bad.any() else None

    def spans(self, addresses: Addresses, size: int) -> list[Span]:
        """Accesses that all lie in buffers and are aligned, grouped by buffer."""
        first = int(addresses[0])
        run = self.is_run(addresses, size)
        low, high = (first, int(addresses[-1])) if run else (int(addresses.min()), int(addresses.max()))
        buffer = self.locate(low)
        if buffer is not None and high < buffer.end:
            if run:
                start = (first - buffer.base) // size
                return [Span(buffer, None, slice(start, start + len(addresses)))]
            return [Span(buffer, None, _index(addresses, buffer, size))]
        owner = np.searchsorted(self._bases, addresses, side="right") - 1
        spans = []
        for at in np.unique(owner).tolist():
            where = np.flatnonzero(owner == at)
            spans.append(Span(self.buffers[at], where, _index(addresses[where], self.buffers[at], size)))
        return spans

    @staticmethod
    def is_run(addresses: Addresses, size: int) -> bool:
        """Whether each address is the one before plus `size`."""
        count = len(addresses)
        if int(addresses[-1]) - int(addresses[0]) != (count - 1) * size:
            return False
        steps = _steps.get((count, size))
        if steps is None:
            if len(_steps) > 64:
                _steps.clear()
            steps = _steps[count, size] = np.arange(count, dtype=np.uint64) * np.uint64(size)
        return bool(np.array_equal(addresses - addresses[0], steps))


@dataclass
class Span:
    """Accesses to one buffer: which of the addresses (None: all, in order), and their place in the buffer's view."""

    buffer: Buffer
    where: npt.NDArray[np.intp] | None
    index: slice | npt.NDArray[np.intp]


def _index(addresses: Addresses, buffer: Buffer, size: int) -> npt.NDArray[np.intp]:
    offsets = (addresses - np.uint64(buffer.base)).view(np.int64)
    return offsets >> (size.bit_length() - 1)


_steps: dict[tuple[int, int], Addresses] = {}
