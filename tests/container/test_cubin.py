"""Cubins: what we read of our own kernels is what cuobjdump reads (its recorded answers where it is absent)."""

import json
import lzma
import re
import subprocess
from pathlib import Path
from typing import Any

import oracle
import pytest

from coppelius.container.cubin import PARAMETER_BASE, Cubin, Kernel, read_cubin

CUDA = Path(__file__).resolve().parents[1] / "data" / "cuda"
RECORD = CUDA / "cuobjdump_facts.json.xz"


def read(file: str) -> Cubin:
    return read_cubin((CUDA / file).read_bytes(), file)


def kernel_of(file: str, name: str) -> Kernel:
    return next(kernel for kernel in read(file).kernels if kernel.name == name)


# ---------------------------------------------------------------------------------------- cuobjdump
def attribute_values(block: str, name: str) -> list[str]:
    return re.findall(rf"EIATTR_{name}\n\s*Format:.*\n\s*Value:\s*(.*(?:\n(?!\s*<|\s*Attribute|\n).*)*)", block)


def numbers(text: str) -> list[int]:
    return [int(number, 16) for number in re.findall("0x[0-9a-f]+", text)]


def facts_by_cuobjdump(file: Path) -> dict[str, Any]:
    """kernel -> what cuobjdump prints of it, in the form of `facts_by_us`."""
    tool = oracle.find_tool("cuobjdump")
    assert tool is not None
    printed = subprocess.run([tool, "-elf", "-res-usage", file], capture_output=True, text=True, check=True).stdout
    blocks = {block.partition("\n")[0]: block for block in re.split(r"^\.nv\.info\.", printed, flags=re.MULTILINE)[1:]}
    symbols = {name: size for size, name in re.findall(r"(0x\w+)  FUNC .* (\S+)$", printed, re.MULTILINE)}
    facts = {}
    for name, usage in re.findall(r"^ Function (.*):\n(.*)$", printed, re.MULTILINE):
        found = re.findall(r"(\w+(?:\[\d+\])?):(\w+)", usage)
        sizes = {key: None if value == "UNKNOWN" else int(value) for key, value in found}
        block = blocks[name].partition("\n\n\n")[0]
        parameters = re.findall(r"KPARAM_INFO.*\n.*\n.*Ordinal : (\w+)\s+Offset  : (\w+)\s+Size    : (\w+)", block)
        facts[name] = {
            "registers": sizes["REG"],
            "stack": sizes["STACK"],
            "shared": sizes["SHARED"],
            "banks": {key[9:-1]: value for key, value in sorted(sizes.items()) if key.startswith("CONSTANT")},
            "parameters": sorted([int(part, 16) for part in row] for row in parameters),
            "placed": (numbers("".join(attribute_values(block, "PARAM_CBANK"))) or [0, PARAMETER_BASE])[1],
            "exits": numbers("".join(attribute_values(block, "EXIT_INSTR_OFFSETS"))),
            "barriers": numbers("".join(attribute_values(block, "NUM_BARRIERS"))),
            "max_threads": numbers("".join(attribute_values(block, "MAX_THREADS"))),
            "symbol_bytes": int(symbols[name], 16),
        }
    return facts


def facts_by_us(cubin: Cubin) -> dict[str, Any]:
    return {
        kernel.name: {
            "registers": kernel.registers,
            "stack": kernel.stack,
            "shared": kernel.shared,
            "banks": {str(bank.bank): len(bank.data) for bank in kernel.constants if bank.bank not in (3, 4)},
            "parameters": [[row.ordinal, row.offset, row.size] for row in kernel.parameters],
            "placed": kernel.parameter_bytes << 16 | kernel.parameter_base,
            "exits": list(kernel.exits),
            "barriers": [kernel.barriers] if kernel.barriers else [],
            "max_threads": list(kernel.max_threads or ()),
            "symbol_bytes": len(kernel.code),
        }
        for kernel in cubin.kernels
    }


@pytest.fixture(scope="module")
def expected(cuda_index: list[dict[str, Any]]) -> dict[str, Any]:
    """file -> kernel -> facts, by the tool itself or as recorded."""
    if oracle.find_tool("cuobjdump") is None:
        recorded: dict[str, Any] = json.loads(lzma.decompress(RECORD.read_bytes()))
        return recorded
    facts = {row["file"]: facts_by_cuobjdump(CUDA / row["file"]) for row in cuda_index}
    if oracle.RECORDING:
        RECORD.write_bytes(lzma.compress(json.dumps(facts, sort_keys=True).encode()))
    return facts


def test_facts_are_those_of_cuobjdump(cuda_index: list[dict[str, Any]], expected: dict[str, Any]) -> None:
    differences = []
    for row in cuda_index:
        ours, theirs = facts_by_us(read(row["file"])), expected[row["file"]]
        assert ours.keys() == theirs.keys(), row["file"]
        for name, facts in theirs.items():
            differences += [
                f"{row['file']} {name} {fact}: {ours[name][fact]}, cuobjdump {value}"
                for fact, value in facts.items()
                if ours[name][fact] != value
            ]
    assert differences == []
    assert sum(map(len, expected.values())) > 600


def test_the_record_is_what_the_tool_says(expected: dict[str, Any]) -> None:
    assert json.loads(lzma.decompress(RECORD.read_bytes())) == expected


def test_index_names_the_kernels(cuda_index: list[dict[str, Any]]) -> None:
    for row in cuda_index:
        assert sorted(kernel.name for kernel in read(row["file"]).kernels) == row["kernels"], row["file"]
        assert all(kernel.is_entry and kernel.instructions for kernel in read(row["file"]).kernels)


# ------------------------------------------------------------------------------------ single facts
def test_exits_are_exit_instructions(cuda_index: list[dict[str, Any]]) -> None:
    for row in cuda_index:
        for kernel in read(row["file"]).kernels:
            opcodes = {int.from_bytes(kernel.code[at : at + 2], "little") & 0xFFF for at in kernel.exits}
            assert opcodes <= {0x94D}, (row["file"], kernel.name)


def test_indirect_branches_are_brx_and_stay_inside(cuda_index: list[dict[str, Any]]) -> None:
    found = 0
    for row in cuda_index:
        for kernel in read(row["file"]).kernels:
            for branch in kernel.indirect_branches:
                found += 1
                assert int.from_bytes(kernel.code[branch.offset : branch.offset + 2], "little") & 0xFFF == 0x949
                assert all(0 <= target < len(kernel.code) and target % 16 == 0 for target in branch.targets)
    assert found > 5


def test_parameters_over_four_kibibytes() -> None:
    kernel = kernel_of("cubins/O3/elementwise.cubin", "large_parameter")
    assert [(row.offset, row.size) for row in kernel.parameters] == [(0, 8), (8, 12000), (12008, 4), (12012, 4)]
    assert (kernel.parameter_base, kernel.parameter_bytes) == (0x1A80, 12016)


def test_constant_banks() -> None:
    kernel = kernel_of("cubins/O3/memory.cubin", "constant_index")
    bank = kernel.constant(3)
    assert bank is not None
    assert b"the quick brown fox jumps over" in bank.data
    assert bytes([2, 0, 0, 0, 3, 0, 0, 0, 5, 0, 0, 0, 7, 0, 0, 0]) in bank.data
    assert kernel.constant(7) is None


def test_initialised_globals() -> None:
    brought = {data.name: data for data in read("cubins/O3/memory.cubin").globals}
    held = brought[".nv.global.init"]
    at = {symbol.name: symbol for symbol in held.symbols}
    counters = at["counters"]
    assert held.data[counters.value : counters.value + counters.size] == bytes.fromhex(
        "0a00000014000000 1e00000028000000"
    )
    assert brought[".nv.global"].data == b""
    assert [(s.name, s.size) for s in brought[".nv.global"].symbols] == [("untouched", 400)]


def test_addresses_are_relocated_into_bank_4() -> None:
    bank = kernel_of("cubins/O3/control.cubin", "virtual_calls").constant(4)
    assert bank is not None
    rows = {(row.offset, row.symbol, row.name) for row in bank.relocations}
    assert (8, "_ZTV6Square", "R_CUDA_64") in rows


def test_device_functions_inside_a_kernel() -> None:
    kernel = kernel_of("cubins/O3/control.cubin", "calls")
    assert {row.name for row in kernel.functions} == {"$calls$_Z3mixii", "$calls$_Z5blendfff"}
    assert all(row.offset > 0 and row.offset + row.size <= len(kernel.code) for row in kernel.functions)


def test_relocatable_cubin() -> None:
    cubin = read("relocatable/linkage.cubin")
    assert not cubin.is_linked
    assert [(kernel.name, kernel.is_entry) for kernel in cubin.kernels] == [
        ("_Z6insidei", False),
        ("linked_calls", True),
    ]
    rows = {(row.symbol, row.name) for row in cubin.kernels[0].relocations}
    assert ("table", "R_CUDA_ABS32_LO_32") in rows
    assert ("_Z7outsidei", "R_CUDA_ABS47_34") in rows


def test_every_attribute_is_kept() -> None:
    kernel = kernel_of("cubins/O3/pipeline.cubin", "gemm_bf16_pipelined")
    names = [record.name for record in kernel.attributes]
    assert {"CUDA_API_VERSION", "SW2861232_WAR", "MAX_THREADS", "MAXREG_COUNT"} <= set(names)
    assert kernel.max_threads == (128, 1, 1)
    assert next(r.value for r in kernel.attributes if r.name == "MAXREG_COUNT") == 128


@pytest.mark.slow
def test_corpus_read_whole(corpus: Path) -> None:
    """Each kernel of the corpus's index: name, instructions, entry, in the order of the file."""
    rows = json.loads((corpus / "index.json").read_text())["kernels"]
    ours = {}
    for file in {row["cubin"] for row in rows}:
        kernels = read_cubin((corpus / "cubins" / file).read_bytes(), file).kernels
        assert {kernel.architecture for kernel in kernels} == {86}
        ours[file] = [(kernel.name, kernel.instructions, kernel.is_entry) for kernel in kernels]
    wanted = {(row["cubin"], row["section"], row["kernel"], row["instructions"], row["entry"]) for row in rows}
    assert {(file, i, *kernel) for file, kernels in ours.items() for i, kernel in enumerate(kernels)} == wanted


@pytest.mark.slow
def test_corpus_facts_are_those_of_cuobjdump(corpus: Path) -> None:
    """Also in the older container (ABI 7), where the barriers lie in the section's flags, unseen by cuobjdump."""
    if oracle.find_tool("cuobjdump") is None:
        pytest.skip("asks cuobjdump itself")
    differences, kernels = [], 0
    for file in sorted((corpus / "cubins").glob("*.cubin")):
        ours = facts_by_us(read_cubin(file.read_bytes(), file.name))
        for name, facts in facts_by_cuobjdump(file).items():
            kernels += 1
            facts["barriers"] = facts["barriers"] or ours[name]["barriers"]
            differences += [(file.name, name, key) for key in facts if facts[key] != ours[name][key]]
    assert differences == []
    assert kernels == len(json.loads((corpus / "index.json").read_text())["kernels"])
