"""`coppelius kernels`: a table, one JSON document, one line and status 2 for bad files."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from coppelius.cli.kernels import kernels_command

CUDA = Path(__file__).resolve().parents[1] / "data" / "cuda"
BARRIERS = CUDA / "cubins" / "O3" / "memory.cubin"


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(kernels_command, [str(argument) for argument in arguments])


def test_table() -> None:
    result = invoke(BARRIERS)
    assert result.exit_code == 0
    heading, *rows = result.output.splitlines()
    assert heading.split("  ")[0] == "kernel"
    assert "shared_widths             896            56         18    1024      0          16            368" in rows
    assert len(rows) == 13


def test_json() -> None:
    result = invoke(BARRIERS, "--json")
    data = json.loads(result.output)
    assert (data["version"], data["architecture"], len(data["kernels"])) == (1, 86, 13)
    sort = next(kernel for kernel in data["kernels"] if kernel["name"] == "local_sort")
    assert (sort["local_bytes"], sort["parameter_bytes"], sort["parameter_base"]) == (48, 20, 0x160)
    assert sort["parameters"] == [{"offset": 0, "size": 8}, {"offset": 8, "size": 8}, {"offset": 16, "size": 4}]


def test_device_functions_are_marked() -> None:
    result = invoke(CUDA / "relocatable" / "linkage.cubin", "--relocatable")
    assert "_Z6insidei (device function)" in result.output


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", "holds no cubin for sm_86; it is empty"),
        (b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00\xbe\x00" + bytes(60), "section table of 0 entries"),
        (b"PNG" * 100, "it is no cubin and no fat binary lies in it"),
    ],
)
def test_bad_file(tmp_path: Path, content: bytes, line: str) -> None:
    file = tmp_path / "bad"
    file.write_bytes(content)
    result = invoke(file)
    assert result.exit_code == 2
    assert line in result.output
    assert len(result.output.splitlines()) == 1


def test_bad_architecture() -> None:
    assert "is no architecture; write sm_86" in invoke(BARRIERS, "--arch", "ampere").output


def test_raw(tmp_path: Path) -> None:
    file = tmp_path / "words.bin"
    file.write_bytes(bytes(32))
    assert invoke(file, "--raw").output.splitlines()[1].split()[:3] == ["words", "32", "2"]
