"""Where a target keeps what is not in the words: constant bank 0, shared memory, and its limits.

Constant bank 0 holds what the driver tells a kernel, then its parameters; each target lays it out anew.  From SM90
on the first kilobyte of shared memory is reserved, and everything else lies above it.
"""

from __future__ import annotations

from dataclasses import dataclass

from coppelius.isa.refusal import Refusal


@dataclass(frozen=True)
class Layout:
    """One target.  Offsets are bytes into constant bank 0; `reserved` is where shared memory starts to be usable.

    words: what bank 0 holds before the parameters, by what it means (in threads, blocks, bytes).
    """

    target: str
    parameters: int
    words: dict[str, int]
    reserved: int  # bytes of shared memory below the first usable one
    uniform_registers: int
    urz: int  # the index that reads as zero
    shared_limit: int  # bytes of shared memory that one block can ask for
    # whether code reads constants as operands of any instruction, or through uniform registers
    constant_operands: bool = True


# published: facts of CUDA 13's compiler, read from code for each target
_AMPERE = {
    "ntid.x": 0x0, "ntid.y": 0x4, "ntid.z": 0x8, "nctaid.x": 0xC, "nctaid.y": 0x10, "nctaid.z": 0x14,
    "shared window": 0x18, "local window": 0x20, "stack": 0x28, "descriptor": 0x118,
}  # fmt: skip
_HOPPER = _AMPERE | {"descriptor": 0x208}
_BLACKWELL = {
    "ntid.x": 0x360, "ntid.y": 0x364, "ntid.z": 0x368, "nctaid.x": 0x370, "nctaid.y": 0x374, "nctaid.z": 0x378,
    "stack": 0x37C, "descriptor": 0x358,
}  # fmt: skip

# meanings of 64 bits
DOUBLE_WORDS = frozenset(("descriptor", "shared window", "local window"))

# fmt: off
LAYOUTS = {layout.target: layout for layout in (
    #       target  parameters words      reserved uniform urz shared limit
    Layout("sm80",  0x160, _AMPERE,    0,     63, 63, 163 << 10),
    Layout("sm86",  0x160, _AMPERE,    0,     63, 63,  99 << 10),
    Layout("sm89",  0x160, _AMPERE,    0,     63, 63,  99 << 10),
    Layout("sm90",  0x210, _HOPPER,    0x400, 63, 63, 227 << 10, False),
    # assumed: eight bits name more, and compiled code uses no more than 63 of them
    Layout("sm120", 0x380, _BLACKWELL, 0x400, 63, 255,  99 << 10, False),
    Layout("sm121", 0x380, _BLACKWELL, 0x400, 63, 255,  99 << 10, False),
)}
# fmt: on


def layout_of(target: str) -> Layout:
    """The layout of a target by its name."""
    if target not in LAYOUTS:
        raise Refusal(f"no target {target!r}; known: {', '.join(LAYOUTS)}")
    return LAYOUTS[target]
