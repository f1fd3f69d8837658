"""Elementwise kernels: four elements a thread, 256 threads and 1,024 elements a block, any count.

A thread owns elements 4i to 4i+3.  A whole quad is one vector access; the last thread with elements
left does one to three single ones.  Threads past the end leave at once.  Offsets inside a buffer are
64-bit, so a count may be anything a u32 holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from coppelius.builder.kernel import Kernel
from coppelius.builder.registers import Vector
from coppelius.isa.operands import RZ, P, R

LANES = 4


@dataclass(frozen=True)
class Quads:
    """`first`: the thread's first element; `rest`: how many there are from it on; `full`: it has all four."""

    k: Kernel
    first: R
    rest: R
    full: P

    def pointer(self, parameter: str, size: int) -> Vector:
        """The address of the thread's first element in a buffer of `size`-byte elements."""
        return self.k.element(f"{parameter}.pointer", parameter, self.first, size)

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
        with self.k.region("tail"):
            for lane in range(LANES - 1):
                if lane:
                    self.k.exit_when(self.k.compare(f"done{lane}", "LE", self.rest, lane))
                element(lane)


def quads(k: Kernel) -> Quads:
    """Find the thread's quad; threads without elements leave."""
    k.descriptor()
    thread = k.thread_index()
    block = k.block_index()
    quad = k.IMAD("quad.index", block, 256, thread)
    first = k.SHF_L_U32("first", quad, 2, RZ)
    count = k.parameter("count")
    k.exit_when(k.compare("past", "GE", first, count))
    rest = k.IADD3("rest", -first, count, RZ)
    return Quads(k, first, rest, k.compare("full", "GE", rest, LANES))
