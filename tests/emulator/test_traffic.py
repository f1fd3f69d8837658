"""Sectors and bank conflicts of single warps against what is counted by hand, for each kind of access."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from coppelius.emulator.launch import launch
from coppelius.emulator.memory import Memory
from coppelius.emulator.parameters import pack_naturally
from coppelius.emulator.traffic import Access, Traffic, rounds, sectors

LANES = np.arange(32, dtype=np.int64)
HELD = ((1, "0x80"), (9, "0x10"), (10, "0x4"))
Watch = Callable[..., list[Access]]


def test_sectors_of_a_warp() -> None:
    assert sectors(4 * LANES, 4) == (4, 4)
    assert sectors(64 * LANES, 4) == (32, 4)
    assert sectors(0 * LANES, 4) == (1, 1)
    assert sectors(4 * LANES + 16, 4) == (5, 4)


def test_rounds_of_a_warp() -> None:
    assert rounds(4 * LANES, 4) == (1, 1)
    assert rounds(128 * LANES, 4) == (32, 1)
    assert rounds(2 * LANES, 2) == (1, 1)
    assert rounds(16 * LANES, 16) == (4, 4)
    assert rounds(64 * LANES, 16) == (16, 4)
    assert rounds(8 * LANES, 8) == (2, 2)
    # one word for all, and two rows of one bank
    assert rounds(0 * LANES, 4) == (1, 1)
    assert rounds(128 * (LANES % 2), 4) == (2, 1)


# the thread's number is in R0; rows of a matrix lie 16 bytes apart, or 128, where all begin in one bank
SHARED = [
    ("STS [R0.X4], R0", "STS", 1),
    ("STS [R0.X8], R0", "STS", 2),
    ("LDS R2, [R0.X4]", "LDS", 1),
    ("LDS R2, [R0.X16]", "LDS", 4),
    ("LDS.128 R4, [R0.X16]", "LDS", 1),
    ("LDSM.16.M88.4 R4, [R9]", "LDSM.16", 1),
    ("LDSM.16.M88.4 R4, [R1]", "LDSM.16", 8),
    ("LDSM.16.MT88.2 R4, [R9]", "LDSM.16", 1),
    ("LDSM.16.MT88.2 R4, [R1]", "LDSM.16", 8),
    ("LDGSTS.E [R10], [R2.64]", "LDGSTS", 1),
    ("LDGSTS.E [R9], [R2.64]", "LDGSTS", 4),
]


@pytest.fixture
def watched(assembled: Callable[..., bytes]) -> Watch:
    """What a warp's accesses took; R1, R9 and R10 hold 128, 16 and 4 times the thread, R2 its word's address."""

    def run(*lines: str) -> list[Access]:
        memory, traffic = Memory(), Traffic()
        head = ("S2R R0, SR_TID.X", *(f"IMAD.SHL.U32 R{r}, R0, {n}, RZ" for r, n in HELD), "MOV R8, 0x4")
        address = "IMAD.WIDE.U32 R2, R0, R8, c[0x0][0x160]"
        data: list[Any] = [np.zeros(256, np.uint32)]
        launch(
            assembled(*head, address, *lines, "EXIT"),
            grid=(1, 1, 1),
            block=(32, 1, 1),
            parameters=pack_naturally(data, memory),
            memory=memory,
            shared_bytes=4096,
            checks=(),
            traffic=traffic,
        )
        return traffic.accesses

    return run


@pytest.mark.parametrize(("line", "mnemonic", "degree"), SHARED)
def test_the_conflict_degree_of_each_kind(watched: Watch, line: str, mnemonic: str, degree: int) -> None:
    (found,) = [a for a in watched(line) if a.space == "shared"]
    assert (found.ordinal, found.mnemonic, found.worst, found.taken) == (6, mnemonic, degree, degree * found.fewest)


def test_a_copy_is_seen_on_both_sides(watched: Watch) -> None:
    found = watched("LDGSTS.E [R9], [R2.64]")
    assert [(a.space, a.taken, a.fewest) for a in found] == [("global", 4, 4), ("shared", 4, 1)]


def test_only_lanes_that_take_part_count_and_visits_add_up(watched: Watch) -> None:
    few = ("ISETP.LT.U32.AND P0, PT, R0, 0x8, PT", "@P0 LDG.E R4, [R2.64]")
    (found,) = watched(*few)
    assert (found.space, found.taken, found.fewest) == ("global", 1, 1)
    loop = ("MOV R5, RZ", "LDG.E R4, [R2.64]", "IADD3 R5, R5, 0x1, RZ", "ISETP.LT.U32.AND P0, PT, R5, 0x3, PT")
    (found,) = watched(*loop, "@P0 BRA 0x70")
    assert (found.taken, found.fewest, found.worst) == (12, 12, 1.0)


def test_the_worst_warp_is_kept_beside_the_sum(watched: Watch) -> None:
    lines = ("MOV R5, 0x4", "LDS R4, [R1]", "IMAD.SHL.U32 R1, R0, 0x4, RZ", "IADD3 R5, R5, -0x1, RZ",
             "ISETP.NE.AND P0, PT, R5, RZ, PT", "@P0 BRA 0x70")  # fmt: skip
    (found,) = watched(*lines)
    assert (found.taken, found.fewest, found.worst) == (32 + 3, 4, 32.0)
