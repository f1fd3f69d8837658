"""racecheck and synccheck on short listings: what orders two accesses, what does not, what a barrier may not be."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from coppelius.emulator.launch import launch
from coppelius.emulator.memory import Memory
from coppelius.emulator.parameters import pack_naturally

Assemble = Callable[..., bytes]


def _found(code: bytes, block: int = 64) -> list[str]:
    memory, out = Memory(), np.zeros(256, np.uint32)
    report = launch(
        code,
        grid=(2, 1, 1),
        block=(block, 1, 1),
        parameters=pack_naturally([out], memory),
        memory=memory,
        shared_bytes=1024,
        collect=True,
        checks=("racecheck", "synccheck"),
    )
    return [f"{f.rule} {f.offset:#x} {f.detail} {f.lanes}" for f in report.findings]


# R0 the thread, R1 its neighbour across 32
START = ("S2R R0, SR_TID.X", "LOP3.LUT R1, R0, 0x20, RZ, 0x3c, !PT")
STORE, LOAD = "STS [R0.X4], R0", "LDS R2, [R1.X4]"


def test_a_barrier_orders(assembled: Assemble) -> None:
    assert _found(assembled(*START, STORE, "BAR.SYNC 0x0", LOAD, "BAR.SYNC 0x0", STORE, "EXIT")) == []


@pytest.mark.parametrize(
    ("lines", "finding"),
    [
        ((STORE, LOAD), "racecheck 0x30 read after write of the warp of thread (32, 0, 0) at 0x0020 STS [R0.X4], R0"),
        (
            (STORE, "BAR.SYNC 0x0", LOAD, "STS [R0.X4], R1"),
            "racecheck 0x50 write after read of the warp of thread (32, 0, 0) at 0x0040 LDS R2, [R1.X4]",
        ),
        (
            (STORE, "STS [R1.X4], R1", "STS [R0.X4], R1"),
            "racecheck 0x40 write after write of the warp of thread (32, 0, 0) at 0x0030 STS [R1.X4], R1",
        ),
        (("STS [0x4], R0",), "racecheck 0x20 write after write: several threads write different values at once"),
        ((STORE, "BAR.ARV 0x1, 0x40", LOAD), "racecheck 0x40 read after write"),
    ],
)
def test_races(assembled: Assemble, lines: tuple[str, ...], finding: str) -> None:
    assert any(f.startswith(finding) for f in _found(assembled(*START, *lines, "EXIT")))


def test_a_write_of_what_is_there_changes_nothing(assembled: Assemble) -> None:
    assert _found(assembled(*START, "MOV R3, 0x7", "STS [0x4], R3", "STS [0x4], R3", "EXIT")) == []


def test_atomics_are_exempt(assembled: Assemble) -> None:
    assert _found(assembled(*START, "ATOMS.ADD RZ, [0x4], R0", "ATOMS.ADD RZ, [0x4], R0", "EXIT")) == []


def test_producers_arrive_and_consumers_wait(assembled: Assemble) -> None:
    """Warp 0 writes and only arrives; warp 1 waits, reads, and tells warp 0 by another barrier to write again."""
    code = assembled(
        *START,
        "ISETP.GE.AND P0, PT, R0, 0x20, PT",
        "@P0 BRA 0x90",
        STORE,
        "BAR.ARV 0x1, 0x40",
        "BAR.SYNC 0x2, 0x40",
        "STS [R0.X4], R1",
        "EXIT",
        "BAR.SYNC 0x1, 0x40",
        LOAD,
        "BAR.ARV 0x2, 0x40",
        "EXIT",
    )
    assert _found(code) == []
    broken = assembled(*START, "ISETP.GE.AND P0, PT, R0, 0x20, PT", "@P0 BRA 0x80", STORE, "BAR.ARV 0x1, 0x40",
                       "STS [R0.X4], R1", "EXIT", "BAR.SYNC 0x1, 0x40", LOAD, "EXIT")  # fmt: skip
    assert any("read after write" in f and "at 0x0060" in f for f in _found(broken))


# the lower half of a warp writes, apart from the upper one
APART = (
    "S2R R0, SR_LANEID",
    "LOP3.LUT R1, R0, 0x10, RZ, 0x3c, !PT",
    "ISETP.GE.AND P0, PT, R0, 0x10, PT",
)


def test_threads_of_a_warp_that_meet_are_ordered(assembled: Assemble) -> None:
    code = assembled(*APART, "BSSY B0, 0x60", "@P0 BRA 0x60", STORE, "BSYNC B0", "@P0 LDS R2, [R1.X4]", "EXIT")
    assert _found(code, 32) == []


def test_threads_of_a_warp_that_do_not_meet_race(assembled: Assemble) -> None:
    code = assembled(*APART, "@P0 BRA 0x60", STORE, "EXIT", "NOP", LOAD, "EXIT")
    assert _found(code, 32) == [
        "racecheck 0x70 read after write of thread (0, 0, 0) at 0x0040 STS [R0.X4], R0, with no barrier between 32"
    ]


def test_bytes_of_one_word_are_apart(assembled: Assemble) -> None:
    """Neighbours that write single bytes do not race; with words they would."""
    head = ("S2R R0, SR_TID.X", "IMAD.SHL.U32 R3, R0, 0x2, RZ")
    code = assembled(*head, "STS.U8 [R3], R0", "LDS.U8 R4, [R3]", "BAR.SYNC 0x0", "LDS R4, [RZ]", "EXIT")
    assert _found(code) == []
    mixed = assembled(*head, "STS.U8 [R0], R0", "LDS.U8 R4, [R0]", "EXIT")
    assert _found(mixed) == []


@pytest.mark.parametrize(
    ("lines", "finding"),
    [
        (
            ("ISETP.GE.AND P0, PT, R0, 0x10, PT", "@!P0 BAR.SYNC 0x0", "BAR.SYNC 0x0"),
            "synccheck 0x30 divergent barrier: 16 more threads of the warp are not here 32",
        ),
        (
            ("ISETP.GE.AND P0, PT, R0, 0x20, PT", "@P0 EXIT", "BAR.SYNC 0x0"),
            "synccheck 0x40 barrier of the whole block, of which 32 threads have left 64",
        ),
        (("BAR.SYNC 0x0, 0x30",), "synccheck 0x20 wrong count: 48 threads of a block of 64, counted in warps of 32"),
        (("BAR.SYNC 0x0, 0x80",), "synccheck 0x20 wrong count: 128 threads of a block of 64"),
        (("WARPSYNC 0xffff",), "synccheck 0x20 a thread waits for a mask that does not name it"),
        (("MOV R3, 0x10", "BAR.SYNC R3"), "synccheck 0x30 barrier 16: a block has 16"),
        (
            ("ISETP.GE.AND P0, PT, R0, 0x20, PT", "@P0 BRA 0x60", "BAR.SYNC 0x1, 0x20", "EXIT", "BAR.SYNC 0x1, 0x40"),
            "deadlock 0x60 nobody can go on: 64 threads at 0x60 BAR.SYNC 0x1, 0x40",
        ),
    ],
)
def test_barriers_no_program_may_count_on(assembled: Assemble, lines: tuple[str, ...], finding: str) -> None:
    found = _found(assembled("S2R R0, SR_TID.X", "NOP", *lines, "EXIT"))
    assert any(f.startswith(finding) for f in found), found
