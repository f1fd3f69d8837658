"""Cubins that we write: nvdisasm and cuobjdump read them without a word of complaint and say what the manifest says."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from oracle import disassemble_kernel, find_tool

from coppelius.arena.placement import place
from coppelius.arena.release import Plan, Record, Release, make_release
from coppelius.container.code_facts import facts_of
from coppelius.container.cubin import read_cubin
from coppelius.container.image import ReleasedImage, find_image, images_of
from coppelius.container.writer import symbol_name, write_cubin
from coppelius.emulator.launch import launch
from coppelius.emulator.memory import Memory
from coppelius.emulator.parameters import pack_naturally
from coppelius.isa.refusal import Refusal
from coppelius.isa.table import table_of
from coppelius.lowering.lower import lower
from coppelius.program.listing import parse_listing
from coppelius.schedule.schedule import schedule

TARGETS = ("sm80", "sm86", "sm90", "sm121")
# one word a thread through shared memory, reversed inside the block, times a factor
LINES = """
ULDC.64 UR4, c[0x0][0x118]
S2R R0, SR_TID.X
S2R R1, SR_CTAID.Z
IMAD.WIDE R2, R0, 0x4, RZ
IADD3 R4, P0, R2, c[0x0][0x168], RZ
IADD3.X R5, R3, c[0x0][0x16c], RZ, P0, !PT
LDG.E R6, [R4.64]
FMUL R6, R6, c[0x0][0x170]
STS [R0.X4], R6
BAR.SYNC.DEFER_BLOCKING 0x0
IADD3 R7, -R0, 0x3f, RZ
LDS R8, [R7.X4]
SHFL.BFLY PT, R9, R8, 0x0, 0x1f
IADD3 R10, P0, R2, c[0x0][0x160], RZ
IADD3.X R11, R3, c[0x0][0x164], RZ, P0, !PT
STG.E [R10.64], R9
EXIT
BRA 0x110
""".strip().splitlines()
DECLARED = {
    "block_x": 64,
    "shared_bytes": 256,
    "grid": [1, 1, 1],
    "parameters": [
        {"name": "out", "kind": "pointer", "type": "f32", "offset": 0x160},
        {"name": "a", "kind": "pointer", "type": "f32", "offset": 0x168},
        {"name": "factor", "kind": "scalar", "type": "f32", "offset": 0x170},
    ],
}


@cache
def release(target: str) -> Release:
    listing = ".target sm86\n" + "".join(f"[B------:R-:W-:-:S01] {line}\n" for line in LINES)
    program = parse_listing(listing)
    program = schedule(program, [{}] * len(program))[0]
    if target != "sm86":
        program = lower(program, target).program
    material = program.encode()
    records, end = [], 0
    for identity in ("turn-around", "again"):
        offset = place(end, len(material), 256)
        end = offset + len(material)
        records.append(Record(identity, material, offset, 16, DECLARED, {"all": "accepted"}))
    return make_release(Plan(target, "bf16", 1 << 32, 256), records)


def images(target: str) -> list[ReleasedImage]:
    made = release(target)
    return images_of(made.manifest, made.arena)


@pytest.mark.parametrize("target", TARGETS)
def test_our_reader_gives_back_what_was_written(target: str) -> None:
    written = images(target)
    found = read_cubin(write_cubin(written))
    assert found.architecture == int(target[2:])
    for kernel, image in zip(found.kernels, written, strict=True):
        assert kernel.name == symbol_name(image.identity)
        assert kernel.is_entry
        assert kernel.code[: len(image.code)] == image.code
        assert (kernel.registers, kernel.shared) == (image.registers, image.shared_bytes)
        assert kernel.max_threads == (64, 1, 1)
        assert kernel.barriers == 1
        assert [(p.offset, p.size) for p in kernel.parameters] == [(0, 8), (8, 8), (16, 4)]
        (facts,) = facts_of(target, [image.code], [image.identity])
        assert (kernel.parameter_bytes, kernel.exits) == (20, facts.exits)
        assert len(kernel.exits) == 1


@pytest.mark.parametrize("target", TARGETS)
def test_the_kernel_read_back_computes(target: str) -> None:
    kernel = read_cubin(write_cubin(images(target)[:1])).kernels[0]
    a, out, memory = np.arange(64, dtype=np.float32), np.zeros(64, np.float32), Memory()
    parameters = pack_naturally([out, a, np.float32(3)], memory)
    launch(
        kernel.code, grid=(1, 1, 1), block=(64, 1, 1), parameters=parameters, memory=memory, table=table_of(target),
        shared_bytes=256, mode="strict",
    )  # fmt: skip
    np.testing.assert_array_equal(out, a[::-1] * 3)


@pytest.mark.skipif(find_tool() is None or find_tool("cuobjdump") is None, reason="needs nvdisasm and cuobjdump")
@pytest.mark.parametrize("target", TARGETS)
def test_the_tools_read_it_without_complaint(target: str, tmp_path: Path) -> None:
    path = tmp_path / "coppelius.cubin"
    path.write_bytes(write_cubin(images(target)))
    said = {}
    for tool, *options in (("nvdisasm",), ("cuobjdump", "-elf"), ("cuobjdump", "-sass"), ("cuobjdump", "-res-usage")):
        done = subprocess.run([find_tool(tool), *options, path], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), f"{tool} {options}: {done.stderr}"
        said[(tool, *options)] = done.stdout
    usage = re.findall(r"REG:(\d+) STACK:0 SHARED:(\d+) LOCAL:0 CONSTANT\[0\]:(\d+)", said["cuobjdump", "-res-usage"])
    row = release(target).manifest["images"][0]
    bank = row["parameters"][0]["offset"] + 20
    assert usage == [(str(row["registers"]), str(row["shared_bytes"]), str(bank))] * 2
    ours = disassemble_kernel(images(target)[0].code, target.upper())
    sass = re.findall(r"/\*[0-9a-f]{4}\*/\s+(.*?) ?;", said["cuobjdump", "-sass"])
    # where they print an address, two tools differ in how
    assert [t.split()[0] for t in sass[: len(ours)]] == [(t or "").split()[0] for t in ours]


def test_images_of_two_targets_are_refused() -> None:
    with pytest.raises(Refusal, match="a cubin is for one target; these images are for sm121, sm86"):
        write_cubin([*images("sm86"), *images("sm121")])


def test_two_images_that_c_cannot_tell_apart_are_refused() -> None:
    one = images("sm86")[0]
    with pytest.raises(Refusal, match="turn-around: another image's symbol is turn_around, too"):
        write_cubin([one, one])
    with pytest.raises(Refusal, match="no image 'other' in the release"):
        find_image([one], "other")
