"""Each lane of a warp holds a few elements of every matrix operand; a layout says which.

With g = lane / 4 and t = lane % 4 (# published: PTX ISA), registers of 32 bits that hold p elements each:
A has rows g and, in the next register, g + 8, and columns p*t .. p*t + p - 1 of each group of 4p columns; B
has column g and rows p*t .. p*t + p - 1 of each group of 4p rows; the low bits hold the lower index. C and D
have row g, columns 2t and 2t + 1, then row g + 8 of the same columns; as halves, two to a register. The 8 x 8
shapes lack the rows g + 8. A layout is a permutation, so gathering and scattering are one indexing each.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from coppelius.emulator.numerics.rounding import Array

LANES = 32


@dataclass(frozen=True, eq=False)
class Layout:
    """Where each element of a rows x columns matrix lies in a warp's registers."""

    rows: int
    columns: int
    registers: int  # 32-bit registers a lane
    bits: int  # of an element
    places: Array  # [rows, columns]: index into the warp's elements, lane by lane

    def gather(self, registers: Array) -> Array:
        """[warps, 32, registers] uint32 to [warps, rows * columns] elements."""
        elements = np.ascontiguousarray(registers, np.uint32).view(f"u{self.bits // 8}")
        return elements.reshape(len(registers), -1).take(self.places.reshape(-1), axis=1)

    def scatter(self, elements: Array) -> Array:
        """[warps, rows * columns] elements to [warps, 32, registers] uint32."""
        order = np.argsort(self.places.reshape(-1))
        registers = np.ascontiguousarray(elements.take(order, axis=1)).view(np.uint32)
        return registers.reshape(len(elements), LANES, self.registers)


@cache
def operand_a(rows: int, depth: int, bits: int) -> Layout:
    """A: rows 8 or 16, `depth` columns, elements of 8, 16, 32 or 64 bits."""
    m, k = np.meshgrid(np.arange(rows), np.arange(depth), indexing="ij")
    return _layout(m % 8, k, m // 8, rows // 8, depth, bits, (rows, depth))


@cache
def operand_b(depth: int, bits: int) -> Layout:
    """B: `depth` rows, 8 columns."""
    k, n = np.meshgrid(np.arange(depth), np.arange(8), indexing="ij")
    return _layout(n, k, np.zeros_like(k), 1, depth, bits, (depth, 8))


@cache
def accumulator(rows: int, bits: int) -> Layout:
    """C and D: rows 8 or 16, 8 columns, elements of 16, 32 or 64 bits."""
    m, n = np.meshgrid(np.arange(rows), np.arange(8), indexing="ij")
    lane, element = (m % 8) * 4 + n // 2, 2 * (m // 8) + n % 2
    count = rows // 4
    return Layout(rows, 8, count * bits // 32, bits, lane * count + element)


def _layout(group: Array, k: Array, upper: Array, halves: int, depth: int, bits: int, shape: tuple[int, int]) -> Layout:
    packed = max(1, 32 // bits)
    lane = group * 4 + (k % (4 * packed)) // packed
    register = upper + halves * (k // (4 * packed))
    count = halves * depth // 4  # elements a lane
    return Layout(*shape, count * bits // 32, bits, lane * count + register * packed + k % packed)
