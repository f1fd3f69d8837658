"""Elementwise kernels: four elements a thread, 256 threads and 1,024 elements a block, any count.

A thread owns elements 4i to 4i+3.  A whole quad is one vector access; the last thread with elements
left does one to three single ones.  Whether a quad is whole is the first thing asked, so that threads with
one do nothing else; those without elements find out in the tail, and leave.  Offsets inside a buffer are
64-bit, so a count may be anything a u32 holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from coppelius.builder.kernel import Kernel
from coppelius.builder.registers import Vector
from coppelius.isa.operands import RZ, P, R

LANES = 4


@dataclass(frozen=True)
class Quads:
    """`index`: the thread's quad; `full`: it has all four elements; `sizes`: of quads, in registers."""

    k: Kernel
    index: R
    full: P
    sizes: dict[int, R] = field(default_factory=dict)

    def pointer(self, parameter: str, size: int) -> Vector:
        """The address of the thread's first element in a buffer of `size`-byte elements."""
        if size not in self.sizes:
            self.sizes[size] = self.k.size(f"quad.size{size}", LANES * size)
        return self.k.element(f"{parameter}.pointer", parameter, self.index, self.sizes[size])

    @contextmanager
    def whole(self) -> Iterator[None]:
        """For threads with all four elements, which then leave."""
        with self.k.region("quad"):
            done = self.k.label("tail")
            self.k.BRA(done, guard=~self.full)
            yield
            self.k.EXIT()
            self.k.place(done)

    def tail(self, element: Callable[[int], None]) -> None:
        """For the thread with one to three elements left: `element(lane)` for each of them, then it leaves."""
        k = self.k
        with k.region("tail"):
            first = k.SHF_L_U32("first", self.index, 2, RZ)
            count = k.parameter("count")
            k.exit_when(k.compare("past", "GE", first, count))
            rest = k.IADD3("rest", -first, count, RZ)
            for lane in range(LANES - 1):
                if lane:
                    k.exit_when(k.compare(f"done{lane}", "LE", rest, lane))
                element(lane)


def quads(k: Kernel) -> Quads:
    """Find the thread's quad."""
    k.descriptor()
    thread = k.thread_index()
    block = k.block_index()
    quad = k.IMAD("quad.index", block, 256, thread)
    last = k.LEA("last", quad, LANES - 1, 2)
    return Quads(k, quad, k.compare("full", "LT", last, k.parameter("count")))
