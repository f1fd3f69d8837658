"""Records which forms of instructions ptxas writes for each target (see tests/compiled_forms.py).

    python tests/data/probes/build_forms.py          compiled.ptx.xz and forms.ptx -> forms.xz
    python tests/data/probes/build_forms.py --ptx    first tests/data/cuda -> compiled.ptx.xz, by nvcc

Sources are those whose kernels have a form that the images use and no other source has.  They are compiled for
compute_80, so that one PTX serves all targets.  Tools named by environment: NVCC, PTXAS (13.5.37 is pinned).
"""

import lzma
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import compiled_forms
import oracle

CUDA = Path(__file__).resolve().parents[1] / "cuda"
NVCC = os.environ.get("NVCC", "nvcc")
# source -> the levels that ptxas compiles it at
SOURCES = {
    "norm.cu": "-O3", "floating.cu": "-O3 -O0", "pipeline.cu": "-O3", "atomics.cu": "-O3", "reduce.cu": "-O3",
    "integer.cu": "-O3", "texture.cu": "-O0", "images/updates.cu": "-O3", "images/elementwise.cu": "-O3",
    "images/generated.cu": "-O3", "images/layouts.cu": "-O3", "images/rows.cu": "-O3",
}  # fmt: skip


def compiled() -> str:
    """The PTX of all sources, each behind a line with its name and levels."""
    parts = []
    with tempfile.TemporaryDirectory() as folder:
        for name, levels in SOURCES.items():
            source, out = CUDA / name, Path(folder) / "made.ptx"
            text = source.read_text(encoding="utf-8")
            # one function needs sm_86
            kept = Path(folder) / source.name
            kept.write_text("".join(row for row in text.splitlines(keepends=True) if "xorsign" not in row))
            command = [NVCC, "-O3", "-ptx", "-arch=compute_80", f"-I{source.parent}", "-o", out, kept]
            subprocess.run(command, check=True)
            parts.append(f"{compiled_forms.MARK}{name} {levels}\n{out.read_text(encoding='utf-8')}")
    return "".join(parts)


def main() -> None:
    """Writes the record."""
    if "--ptx" in sys.argv[1:]:
        compiled_forms.COMPILED.write_bytes(lzma.compress(compiled().encode(), preset=9 | lzma.PRESET_EXTREME))
    found = oracle.tool_version("ptxas")
    if found != oracle.PINNED:
        raise SystemExit(f"recording needs ptxas {oracle.PINNED}, not {found}")
    compiled_forms.record()
    for target, known in compiled_forms.recorded().items():
        print(f"{target}: {len(known)} forms")


if __name__ == "__main__":
    main()
