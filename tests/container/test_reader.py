"""One call for every kind of file, and what it says of files that hold no kernel."""

from pathlib import Path

import pytest

from coppelius.container.reader import read_kernels
from coppelius.isa.refusal import Refusal

CUDA = Path(__file__).resolve().parents[1] / "data" / "cuda"
TEXTURE = ["texture_query", "surface_atomics", "surface_copy", "texture_reads"]


def refusal_of(path: Path, **options: int) -> str:
    with pytest.raises(Refusal) as caught:
        read_kernels(path, **options)
    return str(caught.value)


def test_cubin_and_fatbin_and_library(tmp_path: Path) -> None:
    library = tmp_path / "lib.so"
    library.write_bytes(bytes(1000) + (CUDA / "fatbins" / "plain.fatbin").read_bytes() + bytes(1000))
    for path in (CUDA / "cubins" / "O3" / "texture.cubin", CUDA / "fatbins" / "plain.fatbin", library):
        kernels = read_kernels(path)
        assert [kernel.name for kernel in kernels] == TEXTURE
        assert {kernel.architecture for kernel in kernels} == {86}
    assert read_kernels(library)[0].origin.startswith("lib.so@0x")


def test_other_architecture() -> None:
    assert {kernel.architecture for kernel in read_kernels(CUDA / "fatbins" / "plain.fatbin", 80)} == {80}


def test_raw_words(tmp_path: Path) -> None:
    code = read_kernels(CUDA / "cubins" / "O3" / "texture.cubin")[0].code
    file = tmp_path / "material.bin"
    file.write_bytes(code)
    (kernel,) = read_kernels(file, raw=True)
    assert (kernel.name, kernel.code, kernel.registers) == ("material", code, 0)
    assert refusal_of(
        file
    ) == "material.bin: holds no cubin for sm_86; it is no cubin and no fatbin lies in it".replace(
        "fatbin lies", "fat binary lies"
    )
    file.write_bytes(code[:-1])
    assert (
        refusal_of(file, raw=True) == f"material.bin: {len(code) - 1} bytes are no whole number of 16-byte instructions"
    )


def test_what_is_there_instead(tmp_path: Path) -> None:
    message = "plain.fatbin: holds no cubin for sm_90; it holds cubin sm_80, cubin sm_86, ptx sm_86"
    assert refusal_of(CUDA / "fatbins" / "plain.fatbin", arch=90) == message
    assert refusal_of(CUDA / "cubins" / "O3" / "half.cubin", arch=80) == "half.cubin: is for sm_86, not for sm_80"
    empty = tmp_path / "nothing"
    empty.touch()
    assert refusal_of(empty) == "nothing: holds no cubin for sm_86; it is empty"
