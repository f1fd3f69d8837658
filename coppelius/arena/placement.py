"""Images lie in table order, each at the next multiple of the alignment after the previous end.

The gap is zero bytes; an image's address is the program base plus its offset.  Placement is a chain: an
offset depends on the sizes before it and on nothing else, so a change that keeps an image's aligned end
moves no offset.
"""

from coppelius.isa.refusal import Refusal

BASE_UNIT = 256  # decided: program bases are whole 256-byte units, and address 0 names no image
LEAST_ALIGNMENT = 128  # mined from ptxas: every .text section it writes is aligned to 128
ADDRESS_BITS = 49  # published: virtual addresses of the GPU's memory management unit


def check_plan(base: int, alignment: int) -> None:
    """Refuses a base or an alignment on which no image can be placed."""
    if alignment < LEAST_ALIGNMENT or alignment & (alignment - 1):
        raise Refusal(f"alignment {alignment}: give a power of two, at least {LEAST_ALIGNMENT}")
    if base <= 0:
        raise Refusal(f"base {base:#x}: an address of 0 names no image; give a positive multiple of {BASE_UNIT}")
    unit = max(BASE_UNIT, alignment)
    if base % unit:
        raise Refusal(f"base {base:#x}: not a multiple of {unit}; {max(base - base % unit, unit):#x} is one")


def place(previous_end: int, size: int, alignment: int) -> int:
    """The offset of the next image, of `size` bytes, after one that ended at `previous_end`."""
    if size <= 0:
        raise Refusal(f"{size} bytes to place after {previous_end}: an image's material is never empty")
    if previous_end < 0:
        raise Refusal(f"previous end {previous_end}: give the end of the image before, or 0")
    if alignment <= 0:
        raise Refusal(f"alignment {alignment}: give a power of two, at least {LEAST_ALIGNMENT}")
    return -(-previous_end // alignment) * alignment
