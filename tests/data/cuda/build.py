"""Compiles the CUDA sources beside this file to sm_86 cubins, and writes index.json.

Each source becomes PTX once (nvcc) and is assembled four ways, because each exercises other words:

    O3       ptxas -O3: the vendor's schedule
    O0       ptxas -O0: nothing kept in registers, calls and barriers everywhere
    spill    ptxas -O3 -maxrregcount 24: spills to local memory
    newer    ptxas -O3 of the newest toolkit found: another scheduler, other container records

Beside those: `relocatable/`, a cubin that a linker still has to join; `modules/`, code addresses in tables, one source
alone and two that nvlink joins; `images/`, the device images in plain CUDA; `products/`, tiled products in plain CUDA;
`faulty/`, kernels with one fault each;
`fatbins/`, one source for two architectures and as PTX, plain and compressed in both ways.

Run `python tests/data/cuda/build.py` where nvcc is found (PATH or NVCC); the cubins are kept in git, so
that nobody else needs a toolkit. Tools named by environment: NVCC, PTXAS, NEWER_PTXAS.
"""

import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from elftools.elf.elffile import ELFFile

HERE = Path(__file__).resolve().parent
CUBINS = HERE / "cubins"
FUNCTION = 2  # STT_FUNC, the low half of a symbol's st_info
ENTRY = 0x10  # STO_CUDA_ENTRY in a symbol's st_other
VARIANTS = {"O3": ["-O3"], "O0": ["-O0"], "spill": ["-O3"], "newer": ["-O3"]}
FATBINS = {
    "plain": ["-compress-mode=none"],
    "lz4": ["-compress-mode=speed", "-Xfatbin=-compress-all"],
    "zstd": ["-compress-mode=size"],
}
REGISTER_BOUND = {"tensor": 32}  # for `spill`; 24 where not named (a sparse MMA needs 30 at least)


def find_tool(name: str, variable: str, package: bool = False) -> Path | None:
    """The tool named by the environment, the one of the Python packages, or the one on PATH."""
    if variable in os.environ:
        return Path(os.environ[variable])
    if package:
        found = [p for root in sys.path for p in Path(root).glob(f"nvidia/cu1*/bin/{name}")]
        return found[0] if found else None
    on_path = shutil.which(name) or f"/usr/local/cuda/bin/{name}"
    return Path(on_path) if Path(on_path).exists() else None


def toolkit_of(ptxas: Path) -> str:
    """The version that ptxas prints, such as 13.0.88."""
    said = subprocess.run([ptxas, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"V(\d+\.\d+\.\d+)", said)
    if found is None:
        raise SystemExit(f"{ptxas}: prints no version")
    return found[1]


def entries_of(cubin: Path) -> list[str]:
    """The kernels' names, sorted; st_other is read raw, because pyelftools drops its bit 4."""
    with cubin.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".symtab")
        raw, names = table.data(), ELFFile(file).get_section(table["sh_link"])
        return sorted(
            names.get_string(name)
            for name, info, other in (struct.unpack_from("<IBB", raw, at) for at in range(0, len(raw), 24))
            if info & 15 == FUNCTION and other & ENTRY
        )


def build_relocatable(nvcc: Path) -> None:
    """The cubin that still needs a linker."""
    folder = HERE / "relocatable"
    for source in sorted(folder.glob("*.cu")):
        command = [nvcc, "-O3", "-rdc=true", "-cubin", "-arch=sm_86", "-o", source.with_suffix(".cubin"), source.name]
        subprocess.run(command, cwd=folder, check=True)


def build_modules(nvcc: Path) -> None:
    """Single cubins, and one that the toolkit's linker joins."""
    for folder in (HERE / "modules", HERE / "faulty"):
        for source in sorted(folder.glob("*.cu")):
            joined = ["-rdc=true"] if source.stem.startswith("linked") else []
            command = [nvcc, "-O3", *joined, "-cubin", "-arch=sm_86", "-o", source.with_suffix(".cubin"), source.name]
            subprocess.run(command, cwd=folder, check=True)
    parts = sorted((HERE / "modules").glob("linked_*.cubin"))
    subprocess.run([nvcc.parent / "nvlink", "-arch=sm_86", *parts, "-o", HERE / "modules" / "linked.cubin"], check=True)
    for part in parts:
        part.unlink()


def build_images(nvcc: Path) -> None:
    """The device images' algorithms in plain CUDA, by nvcc -O3 alone: what our images are compared with."""
    for source in sorted([*(HERE / "images").glob("*.cu"), *(HERE / "products").glob("*.cu")]):
        folder = source.parent
        command = [nvcc, "-O3", "-cubin", "-arch=sm_86", "-o", source.with_suffix(".cubin"), source.name]
        subprocess.run(command, cwd=folder, check=True)


def build_fatbins(nvcc: Path) -> None:
    """texture.cu for sm_80 and sm_86, and as PTX."""
    (HERE / "fatbins").mkdir(exist_ok=True)
    targets = ["-gencode=arch=compute_80,code=sm_80", "-gencode=arch=compute_86,code=[sm_86,compute_86]"]
    for name, options in FATBINS.items():
        command = [nvcc, "-O3", "-fatbin", *targets, *options, "-o", f"fatbins/{name}.fatbin", "texture.cu"]
        subprocess.run(command, cwd=HERE, check=True)


def main() -> None:
    """Compiles everything; stops at the first tool that complains."""
    nvcc, ptxas = find_tool("nvcc", "NVCC"), find_tool("ptxas", "PTXAS")
    newer = find_tool("ptxas", "NEWER_PTXAS", package=True)
    if nvcc is None or ptxas is None:
        raise SystemExit("nvcc and ptxas not found: set NVCC and PTXAS, or put a CUDA toolkit on PATH")
    rows = []
    for source in sorted(HERE.glob("*.cu")):
        with tempfile.TemporaryDirectory() as scratch:
            ptx = Path(scratch) / f"{source.stem}.ptx"
            subprocess.run([nvcc, "-O3", "-ptx", "-arch=compute_86", "-o", ptx, source.name], cwd=HERE, check=True)
            for variant, options in VARIANTS.items():
                if variant == "spill":
                    options = [*options, f"-maxrregcount={REGISTER_BOUND.get(source.stem, 24)}"]
                tool = newer if variant == "newer" else ptxas
                if tool is None:
                    raise SystemExit("no second ptxas: pip install nvidia-cuda-nvcc, or set NEWER_PTXAS")
                cubin = CUBINS / variant / f"{source.stem}.cubin"
                cubin.parent.mkdir(parents=True, exist_ok=True)
                subprocess.run(
                    [tool, "-arch=sm_86", "-suppress-stack-size-warning", *options, "-o", cubin, ptx], check=True
                )
                rows.append(
                    {
                        "file": str(cubin.relative_to(HERE)),
                        "source": source.name,
                        "variant": variant,
                        "toolkit": toolkit_of(tool),
                        "kernels": entries_of(cubin),
                    }
                )
    build_relocatable(nvcc)
    build_modules(nvcc)
    build_images(nvcc)
    build_fatbins(nvcc)
    (HERE / "index.json").write_text(json.dumps(rows, indent=1) + "\n")
    print(f"{len(rows)} cubins, {sum(len(row['kernels']) for row in rows)} kernels")


if __name__ == "__main__":
    main()
