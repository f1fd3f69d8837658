"""Compiles kernels for the comparison of our cubins with the vendor's: what ptxas writes around the same code.

Some have the declaration of an image of the catalogue (parameters, threads, shared bytes) and a body that needs what
the image needs: barriers, shared memory, meetings of a warp.  Others have what no image has: dynamic shared memory,
named barriers, divergence, two kernels in one file.  `cubins.tar.xz` holds them for every target, from both toolkits.

`python tests/data/structure/build.py` where ptxas is found; tools named by environment: PTXAS, NEWER_PTXAS.
"""

from __future__ import annotations

import io
import lzma
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
ARCHIVE = HERE / "cubins.tar.xz"
TARGETS = ("sm80", "sm86", "sm89", "sm90", "sm120", "sm121")
TOOLS = {
    "13.0": os.environ.get("PTXAS", "/usr/local/cuda/bin/ptxas"),
    "13.5": os.environ.get("NEWER_PTXAS", "ptxas"),
}
HEADER = ".version 9.0\n.target {target}\n.address_size 64\n{outside}"
ENTRY = """
.visible .entry {name}({parameters})
.maxntid {threads}, 1, 1
{{
    .reg .b32 %r<12>; .reg .b64 %d<4>; .reg .pred %p<4>;
    {shared}
    ld.param.u64 %d1, [{first}];
    mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; add.s64 %d1, %d1, %d2;
    {body}
    st.global.u32 [%d1], %r1;
    ret;
}}
"""
THROUGH_SHARED = """mov.u32 %r2, box; shl.b32 %r3, %r1, 2; or.b32 %r2, %r2, %r3;
    st.shared.u32 [%r2], %r1; bar.sync 0; xor.b32 %r3, %r3, 4; mov.u32 %r4, box; or.b32 %r4, %r4, %r3;
    ld.shared.u32 %r1, [%r4];"""
SHUFFLE = "shfl.sync.bfly.b32 %r1, %r1, 1, 31, 0xffffffff;"
REDUCE = "redux.sync.max.u32 %r5, %r1, 0xffffffff; xor.b32 %r1, %r1, %r5;"
VOTES = """and.b32 %r6, %r1, 1; setp.eq.u32 %p1, %r6, 0; vote.sync.ballot.b32 %r7, %p1, 0xffffffff;
    activemask.b32 %r8; xor.b32 %r7, %r7, %r8; match.any.sync.b32 %r8, %r7, 0xffffffff; xor.b32 %r1, %r7, %r8;"""
LEAVES = "mov.u32 %r9, %ctaid.z; setp.gt.u32 %p2, %r1, %r9; @%p2 ret;"
NAMED = "bar.sync 3;"
DIVERGES = """setp.gt.u32 %p3, %r1, 5; @%p3 bra MEET;
AGAIN: ld.volatile.global.u32 %r10, [%d1]; setp.ne.u32 %p2, %r10, 0; @%p2 bra AGAIN;
MEET:  bar.sync 0;"""
POINTERS = {"out": "pointer"}


def entry(name: str, threads: int, parameters: dict[str, str], body: str, shared: int = 0) -> str:
    """One kernel; `parameters` are pointers and PTX's types by name."""
    spelled = {"pointer": ".u64 .ptr .align 1"}
    listed = ", ".join(f".param {spelled.get(kind, f'.{kind}')} {name}" for name, kind in parameters.items())
    box = f".shared .align 16 .b8 box[{shared}];" if shared else ""
    first = next(iter(parameters))
    return ENTRY.format(name=name, parameters=listed, threads=threads, shared=box, first=first, body=body)


def like(identity: str, body: str) -> str:
    """A kernel with an image's declaration."""
    from coppelius import catalog

    declared = catalog.declaration(next(image for image in catalog.IMAGES if image.identity == identity))
    parameters = {p["name"]: "pointer" if p["kind"] == "pointer" else p["type"] for p in declared["parameters"]}
    return entry(identity.replace("-", "_"), declared["block_x"], parameters, body, declared["shared_bytes"])


def modules() -> dict[str, tuple[str, str]]:
    """Name -> what stands outside of kernels, and the kernels."""
    return {
        "add": ("", like("add", "")),
        "layernorm-forward": ("", like("layernorm-forward", THROUGH_SHARED + SHUFFLE)),
        "argmax": ("", like("argmax", THROUGH_SHARED + SHUFFLE + REDUCE)),
        "tiled-rc-m1024-n512-k512": ("", like("tiled-rc-m1024-n512-k512", THROUGH_SHARED)),
        "dynamic": (".extern .shared .align 16 .b8 box[];", entry("dynamic", 128, POINTERS, THROUGH_SHARED)),
        "meetings": ("", entry("meetings", 64, POINTERS, SHUFFLE + VOTES + LEAVES + NAMED)),
        "divergent": ("", entry("divergent", 64, POINTERS, DIVERGES)),
        "two": ("", entry("first", 64, POINTERS, "") + entry("second", 64, POINTERS, THROUGH_SHARED, 256)),
    }


def compiled(tool: str, target: str, outside: str, kernels: str) -> bytes:
    """What a ptxas makes of it."""
    architecture = target.replace("sm", "sm_")
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        source.write_text(HEADER.format(target=architecture, outside=outside) + kernels)
        subprocess.run([tool, "-arch", architecture, source, "-o", made], check=True)
        return made.read_bytes()


def main() -> None:
    sys.path.insert(0, str(HERE.parents[2]))
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, (outside, kernels) in modules().items():
            for target in TARGETS:
                for toolkit, tool in TOOLS.items():
                    content = compiled(tool, target, outside, kernels)
                    member = tarfile.TarInfo(f"{name}.{target}.{toolkit}.cubin")
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))
    ARCHIVE.write_bytes(lzma.compress(buffer.getvalue(), preset=9 | lzma.PRESET_EXTREME))
    print(f"{ARCHIVE.name}: {ARCHIVE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
