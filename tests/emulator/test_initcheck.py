"""initcheck finds each undefined value that decides something or gets out, and says nothing of those that do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from coppelius.emulator.launch import launch
from coppelius.emulator.memory import Memory
from coppelius.emulator.parameters import pack_naturally

Assemble = Callable[..., bytes]
POINTER = ("S2R R0, SR_TID.X", "MOV R4, 0x4", "IMAD.WIDE.U32 R2, R0, R4, c[0x0][0x160]")


def _found(code: bytes, **options: Any) -> list[str]:
    memory, out = Memory(), np.zeros(64, np.uint32)
    report = launch(
        code,
        grid=(1, 1, 1),
        block=(64, 1, 1),
        parameters=pack_naturally([out], memory),
        memory=memory,
        collect=True,
        checks=["initcheck"],
        **options,
    )
    return [f"{f.offset:#x} {f.detail} {f.lanes}" for f in report.findings if f.rule == "initcheck"]


@pytest.mark.parametrize(
    ("lines", "finding"),
    [
        (("STG.E [R2], R9",), "0x30 an undefined value reaches global memory 64"),
        (("IADD3 R9, R9, 0x1, RZ", "STG.E [R2], R9"), "0x40 an undefined value reaches global memory 64"),
        (("@P3 MOV R5, RZ",), "0x30 an undefined value decides whether it executes 64"),
        (("BRA P3, 0x50", "NOP"), "0x30 an undefined value decides where threads go on 64"),
        (("LDG.E R5, [R8]",), "0x30 an undefined value is an address 64"),
        (("LDS R5, [R0.X4]", "STG.E [R2], R5"), "0x40 an undefined value reaches global memory 64"),
        (("STS [R0.X4], R9", "LDS R5, [R0.X4]", "STG.E [R2], R5"), "0x50 an undefined value reaches global memory 64"),
        (
            ("ISETP.GE.AND P0, PT, R0, 0xa, PT", "@P0 MOV R5, R0", "STG.E [R2], R5"),
            "0x50 an undefined value reaches global memory 10",
        ),
        (
            ("ISETP.GE.AND P0, PT, R0, 0xa, PT", "SEL R5, R0, R9, P0", "STG.E [R2], R5"),
            "0x50 an undefined value reaches global memory 10",
        ),
        (("RED.E.ADD.STRONG.GPU [R2], R9",), "0x30 an undefined value reaches global memory 64"),
        (("VOTE.ANY R5, PT, P2", "STG.E [R2], R5"), "0x40 an undefined value reaches global memory 64"),
    ],
)
def test_undefined_values_are_found(assembled: Assemble, lines: tuple[str, ...], finding: str) -> None:
    code = assembled(*POINTER, *lines, "EXIT")
    assert finding in _found(code, shared_bytes=256)


def test_a_shuffle_follows_the_lane_it_reads(assembled: Assemble) -> None:
    code = assembled(
        *POINTER,
        "ISETP.EQ.AND P0, PT, R0, 0x5, PT",
        "@P0 MOV R9, R0",
        "SHFL.IDX PT, R5, R9, 0x5, 0x1f",
        "STG.E [R2], R5",
        "EXIT",
    )
    # thread 5 is of the first warp: the second reads its own lane 5, which has nothing
    assert _found(code) == ["0x60 an undefined value reaches global memory 32"]


def test_defined_values_are_left_alone(assembled: Assemble) -> None:
    code = assembled(
        *POINTER,
        "MOV R1, c[0x0][0x28]",
        "STS [R0.X4], R0",
        "BAR.SYNC 0x0",
        "LDS R5, [R0.X4]",
        "STL [R1+-0x10], R5",
        "LDL R6, [R1+-0x10]",
        "MOV R7, R9",
        "ISETP.GE.AND P0, PT, R0, 0x20, PT",
        "@P0 IADD3 R6, R6, 0x1, RZ",
        "STG.E [R2], R6",
        "EXIT",
    )
    assert _found(code, shared_bytes=256) == []


@pytest.mark.parametrize(
    ("lines", "defined"),
    [
        # R9 has a single byte, the rest of it nobody set
        (("STL.U8 [R1+-0x10], R0", "LDL R9, [R1+-0x10]", "LOP3.LUT R5, R9, 0xff, RZ, 0xc0, !PT"), True),
        (("STL.U8 [R1+-0x10], R0", "LDL R9, [R1+-0x10]", "LOP3.LUT R5, R9, 0xffff, RZ, 0xc0, !PT"), False),
        (("STL.U8 [R1+-0x10], R0", "LDL R9, [R1+-0x10]", "PRMT R5, R9, 0x7770, RZ"), True),
        (("STL.U8 [R1+-0x10], R0", "LDL R9, [R1+-0x10]", "PRMT R5, R9, 0x7771, RZ"), False),
        (("STL.U8 [R1+-0x10], R0", "LDL R9, [R1+-0x10]", "PRMT R5, R9, 0x8880, RZ"), True),
        (("STL.U8 [R1+-0x10], R0", "LDL R9, [R1+-0x10]", "SHF.L.U32 R5, R9, 0x18, RZ"), True),
        (("STL.U8 [R1+-0x10], R0", "LDL R9, [R1+-0x10]", "SHF.L.U32 R5, R9, 0x10, RZ"), False),
        (("STL.U8 [R1+-0x10], R0", "LDL.U8 R5, [R1+-0x10]"), True),
        (("STL.U8 [R1+-0x10], R0", "LDL.U8 R5, [R1+-0xf]"), False),
        (("STS.U8 [R0.X4], R0", "LDS.U8 R5, [R0.X4]"), True),
        (("STS.U8 [R0.X4], R0", "LDS.U16 R5, [R0.X4]"), False),
        (("STS.U8 [R0.X4], R0", "LDS R9, [R0.X4]", "MOV R5, R9", "I2F.U8 R5, R5"), True),
        (("LOP3.LUT R5, R9, R9, RZ, 0x3c, !PT",), False),
        (("LOP3.LUT R5, R9, R0, RZ, 0x0, !PT",), True),
        (("MOV R8, R0", "STL.64 [R1+-0x10], R8", "LDL.64 R10, [R1+-0x10]", "MOV R5, R10"), True),
        (("MOV R8, R0", "STL.64 [R1+-0x10], R8", "LDL.64 R10, [R1+-0x10]", "MOV R5, R11"), False),
        (("IMAD.MOV.U32 R6, RZ, RZ, R9", "LOP3.LUT R5, R6, 0x0, RZ, 0xc0, !PT"), True),
        (("MOV R9, R0", "F2FP.PACK_AB R6, R10, R9", "PRMT R5, R6, 0x7732, RZ"), False),
        (("MOV R9, R0", "F2FP.PACK_AB R6, R10, R9", "PRMT R5, R6, 0x7710, RZ"), True),
    ],
)
def test_single_bytes(assembled: Assemble, lines: tuple[str, ...], defined: bool) -> None:
    code = assembled(*POINTER, "MOV R1, c[0x0][0x28]", *lines, "STG.E [R2], R5", "EXIT")
    assert (_found(code, shared_bytes=256) == []) == defined


def test_bytes_that_are_stored_alone_count_alone(assembled: Assemble) -> None:
    code = assembled(*POINTER, "STS.U8 [R0.X4], R0", "LDS R5, [R0.X4]", "STG.E.U8 [R2], R5", "EXIT")
    assert _found(code, shared_bytes=256) == []


def _from_scratch(code: bytes, scratch: np.ndarray, memory: Memory, out: np.ndarray) -> list[str]:
    report = launch(
        code,
        grid=(1, 1, 1),
        block=(64, 1, 1),
        parameters=pack_naturally([out, scratch], memory),
        memory=memory,
        collect=True,
        checks=["initcheck"],
    )
    return [f"{f.offset:#x} {f.detail} {f.lanes}" for f in report.findings]


def test_buffers_placed_as_undefined(assembled: Assemble) -> None:
    head = (*POINTER, "IMAD.WIDE.U32 R6, R0, R4, c[0x0][0x168]", "ISETP.GE.AND P0, PT, R0, 0x30, PT")
    copy = assembled(*head, "LDG.E R5, [R6]", "STG.E [R2], R5", "EXIT")
    fill = assembled(*head, "@!P0 STG.E [R6], R0", "EXIT")
    spoil = assembled(*head, "STG.E [R6], R9", "EXIT")
    scratch, out, memory = np.zeros(64, np.uint32), np.zeros(64, np.uint32), Memory()
    memory.place(scratch, undefined=True)
    assert _from_scratch(copy, scratch, memory, out) == ["0x60 an undefined value reaches global memory 64"]
    assert _from_scratch(fill, scratch, memory, out) == []
    assert _from_scratch(copy, scratch, memory, out) == ["0x60 an undefined value reaches global memory 16"]
    assert _from_scratch(spoil, scratch, memory, out) == ["0x50 an undefined value reaches global memory 64"]
    add = assembled(*head, "RED.E.ADD.STRONG.GPU [R6], R0", "EXIT")
    fresh, memory = np.zeros(64, np.uint32), Memory()
    memory.place(fresh, undefined=True)
    assert _from_scratch(add, fresh, memory, out) == ["0x50 an undefined value reaches global memory 64"]
