"""Cubins of all images: the vendor's tools read them without a word of complaint and agree with the manifest."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import harness
import numpy as np
import pytest
from oracle import find_tool

from coppelius import catalog
from coppelius.arena.placement import place
from coppelius.arena.release import Plan, Record, Release, make_release
from coppelius.check import resources
from coppelius.check.verdict import judge
from coppelius.container.cubin import Cubin, read_cubin
from coppelius.container.image import ReleasedImage, images_of
from coppelius.container.release import cubins_of
from coppelius.container.writer import symbol_name
from coppelius.emulator.launch import launch
from coppelius.emulator.memory import Memory
from coppelius.emulator.module import Module
from coppelius.emulator.parameters import pack_naturally
from coppelius.isa.table import table_of
from coppelius.isa.targets.layout import layout_of
from coppelius.lowering.lower import lower
from coppelius.program.listing import parse_listing

TARGETS = ("sm86", "sm121")
USAGE = re.compile(r"Function (\S+):\n\s*REG:(\d+) STACK:0 SHARED:(\d+) LOCAL:0 CONSTANT\[0\]:(\d+)")


@cache
def release(target: str) -> Release:
    """Of all images, as the build makes it."""
    records, end = [], 0
    for row in catalog.IMAGES:
        material = harness.material(row.identity, "bf16")
        if target != "sm86":
            material = lower(parse_listing(harness.listing(row.identity, "bf16")), target).program.encode()
        declared = catalog.declaration(row)
        parameters = {**declared, "half": "bf16", "target": target, "identity": row.identity, "registers": None}
        demand = resources.Demand(**judge(material, parameters)["demand"])
        registers = max(resources.launch_registers(demand), row.registers or 0)
        offset = place(end, len(material), 256)
        end = offset + len(material)
        records.append(Record(row.identity, material, offset, registers, declared, {"all": "accepted"}))
    return make_release(Plan(target, "bf16", 1 << 32, 256), records)


@cache
def cubins(target: str) -> list[bytes]:
    made = release(target)
    return cubins_of(made.manifest, made.arena)


def images(target: str) -> list[ReleasedImage]:
    made = release(target)
    return images_of(made.manifest, made.arena)


def said(tool: str, *arguments: object) -> str:
    """What a tool prints; it must not complain."""
    done = subprocess.run([find_tool(tool), *map(str, arguments)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), f"{tool} {arguments}: {done.stderr}"
    return done.stdout


def expected(image: ReleasedImage) -> tuple[str, str, str, str]:
    """Symbol, registers, static shared bytes and those of bank 0."""
    layout = layout_of(image.target)
    shared = layout.reserved if image.dynamic_shared else image.shared_bytes
    bank = layout.parameters + image.parameter_bytes
    return (symbol_name(image.identity), str(image.registers), str(shared), str(bank))


@pytest.mark.skipif(find_tool() is None or find_tool("cuobjdump") is None, reason="needs nvdisasm and cuobjdump")
@pytest.mark.parametrize("target", TARGETS)
def test_the_tools_agree_with_the_manifest(target: str, tmp_path: Path) -> None:
    """The cubin of all images, and each alone, whose words cuobjdump prints as many of as the image has."""
    whole = tmp_path / "coppelius.cubin"
    whole.write_bytes(cubins(target)[0])
    said("nvdisasm", whole)
    dumped = said("cuobjdump", "-elf", whole)
    assert sorted(USAGE.findall(said("cuobjdump", "-res-usage", whole))) == sorted(map(expected, images(target)))
    sizes = re.findall(r"KPARAM_INFO.*\n.*\n.*Ordinal : (\w+)\s+Offset  : (\w+)\s+Size    : (\w+)", dumped)
    listed = [(n, p.offset, p.size) for i in images(target) for n, p in reversed(list(enumerate(i.parameters)))]
    assert [tuple(int(part, 16) for part in row) for row in sizes] == listed
    for image, content in zip(images(target), cubins(target)[1:], strict=True):
        path = tmp_path / f"{image.identity}.cubin"
        path.write_bytes(content)
    paths = sorted(tmp_path.glob("*-*.cubin"))[:3]  # each start takes a tenth of a second
    for path in paths:
        image = next(i for i in images(target) if i.identity == path.stem)
        assert USAGE.findall(said("cuobjdump", "-res-usage", path)) == [expected(image)]
        printed = re.findall(r"^\s*/\*[0-9a-f]{4,5}\*/\s+\S", said("cuobjdump", "-sass", path), re.MULTILINE)
        assert len(printed) - len(image.code) // 16 in range(8)  # NOPs up to 128 bytes
        said("nvdisasm", path)


@pytest.mark.parametrize("target", TARGETS)
def test_our_reader_finds_what_the_manifest_says(target: str) -> None:
    whole, *each = (read_cubin(content) for content in cubins(target))
    alone = [kernel for cubin in each for kernel in cubin.kernels]
    for kernels in (whole.kernels, alone):
        for image, kernel in zip(images(target), kernels, strict=True):
            assert (kernel.name, kernel.registers) == (symbol_name(image.identity), image.registers)
            assert kernel.code[: len(image.code)] == image.code
            assert kernel.parameter_base == layout_of(target).parameters
            assert [(p.offset, p.size) for p in kernel.parameters] == [(p.offset, p.size) for p in image.parameters]
            assert kernel.max_threads == (image.block_x, 1, 1)


def test_the_emulator_runs_a_kernel_of_the_file() -> None:
    cubin: Cubin = read_cubin(cubins("sm86")[0])
    a, b, out = np.arange(1000, dtype=np.float32), np.full(1000, 0.5, np.float32), np.zeros(1000, np.float32)
    report = Module(cubin).launch("add", (1, 1, 1), (256, 1, 1), out, a, b, np.uint32(1000), mode="strict")
    assert report.findings == []
    np.testing.assert_array_equal(out, a + b)


def test_the_emulator_runs_a_lowered_kernel_of_the_file() -> None:
    kernel = next(k for k in read_cubin(cubins("sm121")[0]).kernels if k.name == "scale")
    a, out, memory = np.arange(1000, dtype=np.float32), np.zeros(1000, np.float32), Memory()
    parameters = pack_naturally([out, a, np.float32(3), np.uint32(1000)], memory)
    launch(kernel.code, grid=(1, 1, 1), block=(256, 1, 1), parameters=parameters, memory=memory,
           table=table_of("sm121"), mode="strict")  # fmt: skip
    np.testing.assert_array_equal(out, a * 3)
