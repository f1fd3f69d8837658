"""What each image's warps do on their main path: wide accesses to memory, and loops that whole warps go around.

Measured in the emulator on a block of the real grid.  A loop is what lies between a backward branch and its target; a
warp diverges in it where an instruction is executed by some of the lanes that are still there and not by others.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import harness
import numpy as np
import pytest

from coppelius import catalog
from coppelius.cli.sampling import sampled_accesses
from coppelius.emulator import launch as launching
from coppelius.emulator.engine import Bound, Engine
from coppelius.emulator.group import Group
from coppelius.emulator.memory import Memory
from coppelius.isa.latency import full_name
from coppelius.program.flow import blocks
from coppelius.program.listing import parse_listing
from coppelius.program.program import Program

WIDTHS = {"128": 16, "64": 8, "U16": 2}
ROWS = catalog.IMAGES[:32]
# bytes a lane of accesses to global memory, where they are not 128 bits
_PAIR = {8}  # cosine and sine of one angle
_HALVES = {8}  # four halves beside four f32: lanes lie side by side on both
_TILE = {8}  # eight rows of a 64 x 64 tile, whole sectors; the other side is 128 bits
_ONE = {4}  # one number a row, a thread or a lane
NARROW = {
    "rotary-table": {"LDG": _ONE, "STG": _PAIR},
    "cast-down": {"STG": _HALVES},
    "cast-up": {"LDG": _HALVES},
    "argmax": {"STG": _ONE},
    "gather": {"LDG": _ONE},
    "layernorm-forward": {"STG": _HALVES | _ONE},
    "qk-rope": {"STG": _HALVES},
    "value-transpose": {"STG": _HALVES},
    "token-to-head": {"STG": _HALVES},
    "inverse-rope-qkv": {"STG": _HALVES},
    "softmax-forward": {"STG": _HALVES},
    "softmax-backward": {"LDG": _HALVES, "STG": _HALVES},
    "layernorm-backward": {"LDG": _ONE},
    "layernorm-parameters": {"LDG": _ONE, "STG": _ONE},
    "cross-entropy": {"LDG": _ONE, "STG": _ONE},
    "cross-entropy-backward": {"LDG": _ONE, "STG": _HALVES},
    "embedding-scatter": {"LDG": _ONE},
    "adamw": {"STG": _HALVES},
    "gated-gelu-forward": {"STG": _HALVES},
    "gated-gelu-backward": {"STG": _HALVES},
    "transpose-g8-r1024-c64": {"LDG": _TILE},
    "transpose-g8-r64-c1024": {"LDG": _TILE},
    "loss-target-gather": {"LDG": _ONE, "STG": _ONE},
    "attention-forward": {"STG": _ONE},
    "attention-query": {"LDG": _ONE, "STG": _ONE},
}
LOOPS = {"layernorm-parameters", "embedding-scatter", "adamw", *(i.identity for i in ROWS[29:])}


def loops(program: Program) -> set[int]:
    """The ordinals inside loops; a branch to itself at the program's end is none."""
    inside: set[int] = set()
    for block in blocks(program):
        for target in block.following:
            if target < block.start or (target == block.start and block.end - block.start > 1):
                inside.update(range(target, block.end))
    return inside


@contextmanager
def watching() -> Iterator[set[int]]:
    """Launches inside note where a warp was executing without some of its lanes that are alive."""
    diverged: set[int] = set()

    class Watched(Engine):
        def _bind(self, place: int) -> Bound:
            bound = super()._bind(place)
            guard = bound.guard

            def noted(group: Group) -> Any:
                if (group.active != self.machine.alive[group.warps]).any():
                    diverged.add(place)
                return np.ones((1, 1), bool) if guard is None else guard(group)

            bound.guard = noted
            return bound

    with patch.object(launching, "Engine", Watched):
        yield diverged


def watched(image: catalog.Image) -> tuple[set[int], dict[str, set[int]]]:
    """Where warps diverged, and the bytes a lane of each kind of access to global memory."""
    material = harness.material(image.identity, "bf16")
    rows = list(Program.decode(material))
    with watching() as diverged:
        found = sampled_accesses(image, material)
    sizes: dict[str, set[int]] = {}
    for access in found:
        if access.space == "global":
            parts = full_name(rows[access.ordinal].encoding, rows[access.ordinal].values).split(".")
            width = next((WIDTHS[part] for part in parts if part in WIDTHS), 4)
            sizes.setdefault(parts[0], set()).add(width)
    return diverged, sizes


@pytest.mark.parametrize("image", ROWS, ids=[image.identity for image in ROWS])
def test_accesses_are_wide_and_warps_stay_whole(image: catalog.Image) -> None:
    diverged, sizes = watched(image)
    narrow = {kind: found - {16} for kind, found in sizes.items() if found - {16}}
    assert narrow == NARROW.get(image.identity, {})
    inside = loops(Program.decode(harness.material(image.identity, "bf16")))
    assert bool(inside) == (image.identity in LOOPS)
    assert not diverged & inside


def test_a_loop_of_some_lanes_is_seen() -> None:
    """The trap that the measure must not miss: lanes that leave a loop one after another."""
    lines = ("S2R R0, SR_TID.X", "IADD3 R0, R0, -0x1, RZ", "ISETP.GE.AND P0, PT, R0, RZ, PT", "@P0 BRA 0x10", "EXIT")
    text = "".join(f"[B------:R-:W-:Y:S13] {line}\n" for line in lines)
    material = parse_listing(f".target sm86\n{text}").encode()
    with watching() as diverged:
        launching.launch(material, grid=(1, 1, 1), block=(32, 1, 1), parameters=b"", memory=Memory(), checks=())
    assert loops(Program.decode(material)) == {1, 2, 3}
    assert diverged & {1, 2, 3}
