"""Compiles probes of the tensor cores: what distance does ptxas leave after each shape of MMA, by kind of consumer?

A probe loads fragments, runs one MMA and gives the result to one consumer:

    chain     another MMA adds to it                 alu, fma    arithmetic reads it
    operand   another MMA multiplies by it           store       a store's data
    queue     a conversion or MUFU reads it          half        16-bit arithmetic reads it

`tests/bench/derive_grid.py` reads the distances out of the two cubins, which are kept in git, compressed.  Run
`python tests/data/probes/build.py` where ptxas is found; tools named by environment: PTXAS, NEWER_PTXAS.
"""

import lzma
import os
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
TOOLS = {
    "13.0": os.environ.get("PTXAS", "/usr/local/cuda/bin/ptxas"),
    "13.5": os.environ.get("NEWER_PTXAS", "ptxas"),
}


class Shape(NamedTuple):
    """One mma.sync: its PTX name behind `mma.`, registers of D and C, A, B; sparse ones take metadata."""

    name: str
    d: int
    a: int
    b: int
    kind: str  # of an accumulator register: f32, f16 (packed) or s32
    sparse: bool = False


def _float(size: str, types: str, a: int, b: int, **more: bool) -> list[Shape]:
    """Accumulating in f32, and in f16 where the type has that."""
    found = [Shape(f"{size}.row.col.f32.{types}.{types}.f32", 4, a, b, "f32", **more)]
    if types == "f16":
        found.append(Shape(f"{size}.row.col.f16.f16.f16.f16", 2, a, b, "f16", **more))
    return found


SHAPES = [
    *_float("m16n8k8", "f16", 2, 1), *_float("m16n8k16", "f16", 4, 2),
    *_float("m16n8k8", "bf16", 2, 1), *_float("m16n8k16", "bf16", 4, 2),
    *_float("m16n8k4", "tf32", 2, 1), *_float("m16n8k8", "tf32", 4, 2),
    *_float("m16n8k16", "f16", 2, 2, sparse=True), *_float("m16n8k32", "f16", 4, 4, sparse=True),
    *_float("m16n8k16", "bf16", 2, 2, sparse=True), *_float("m16n8k32", "bf16", 4, 4, sparse=True),
    *_float("m16n8k8", "tf32", 2, 2, sparse=True), *_float("m16n8k16", "tf32", 4, 4, sparse=True),
    *(Shape(f"m8n8k16.row.col.s32.{t}.{t}.s32", 2, 1, 1, "s32") for t in ("s8", "u8")),
    *(Shape(f"m16n8k16.row.col.s32.{t}.{t}.s32", 4, 2, 1, "s32") for t in ("s8", "u8")),
    *(Shape(f"m16n8k32.row.col.s32.{t}.{t}.s32", 4, 4, 2, "s32") for t in ("s8", "u8")),
    *(Shape(f"m8n8k32.row.col.s32.{t}.{t}.s32", 2, 1, 1, "s32") for t in ("s4", "u4")),
    *(Shape(f"m16n8k32.row.col.s32.{t}.{t}.s32", 4, 2, 1, "s32") for t in ("s4", "u4")),
    *(Shape(f"m16n8k64.row.col.s32.{t}.{t}.s32", 4, 4, 2, "s32") for t in ("s4", "u4")),
    *(Shape(f"m16n8k32.row.col.s32.{t}.{t}.s32", 4, 2, 2, "s32", True) for t in ("s8", "u8")),
    *(Shape(f"m16n8k64.row.col.s32.{t}.{t}.s32", 4, 4, 4, "s32", True) for t in ("s8", "u8")),
    *(Shape(f"m16n8k64.row.col.s32.{t}.{t}.s32", 4, 2, 2, "s32", True) for t in ("s4", "u4")),
    *(Shape(f"m16n8k128.row.col.s32.{t}.{t}.s32", 4, 4, 4, "s32", True) for t in ("s4", "u4")),
    *(Shape(f"m8n8k128.row.col.s32.b1.b1.s32.{o}.popc", 2, 1, 1, "s32") for o in ("xor", "and")),
    *(Shape(f"m16n8k128.row.col.s32.b1.b1.s32.{o}.popc", 4, 2, 1, "s32") for o in ("xor", "and")),
    *(Shape(f"m16n8k256.row.col.s32.b1.b1.s32.{o}.popc", 4, 4, 2, "s32") for o in ("xor", "and")),
]  # fmt: skip

# consumer -> one instruction a result register: {d} becomes {o}
CONSUMERS = {
    "f32": {
        "alu": "max.f32 {o}, {d}, {s};",
        "fma": "add.f32 {o}, {d}, {s};",
        "half": "cvt.rn.f16x2.f32 {o}, {d}, {s};",
        "queue": "ex2.approx.ftz.f32 {o}, {d};",
    },
    "f16": {
        "alu": "xor.b32 {o}, {d}, {s};",
        "fma": "mad.lo.u32 {o}, {d}, {s}, {s};",
        "half": "add.rn.f16x2 {o}, {d}, {s};",
        "queue": "popc.b32 {o}, {d};",
    },
    "s32": {
        "alu": "xor.b32 {o}, {d}, {s};",
        "fma": "mad.lo.s32 {o}, {d}, {s}, {s};",
        "half": "add.rn.f16x2 {o}, {d}, {s};",
        "queue": "popc.b32 {o}, {d};",
    },
}


def _list(prefix: str, count: int) -> str:
    return "{" + ", ".join(f"%{prefix}{i}" for i in range(count)) + "}"


def _mma(shape: Shape, d: str, a: str) -> str:
    """d += a * b."""
    registers = f"{d}, {a}, {_list('b', shape.b)}, {d}"
    if not shape.sparse:
        return f"mma.sync.aligned.{shape.name} {registers};"
    return f"mma.sp::ordered_metadata.sync.aligned.{shape.name} {registers}, %m, 0x0;"


def _kernel(shape: Shape, name: str, consumer: str) -> str:
    """Loads, one MMA, what the consumer does, stores."""
    kind = "f32" if shape.kind == "f32" else "b32"
    registers = {"d": shape.d, "e": shape.d, "a": shape.a, "b": shape.b, "o": shape.d}
    out = "b32" if consumer == "half" else kind
    lines = [f".visible .entry {name}_{consumer}(.param .u64 p)", "{", ".reg .b64 %p;", ".reg .b32 %m, %t;"]
    for prefix, count in registers.items():
        lines.append(f".reg .{out if prefix == 'o' else kind if prefix in 'de' else 'b32'} %{prefix}<{count}>;")
    lines += [f".reg .{kind} %s;", "ld.param.u64 %p, [p];"]
    wanted = [f"%{p}{i}" for p in "deab" for i in range(registers[p])] + ["%m", "%s"]
    for at, register in enumerate(wanted):
        width = kind if register[1] in "des" else "b32"
        lines.append(f"ld.global.{width} {register}, [%p+{4 * at}];")
    d = _list("d", shape.d)
    lines.append(_mma(shape, d, _list("a", shape.a)))
    stored, width = "d", kind
    if consumer == "chain":
        lines.append(_mma(shape, d, _list("a", shape.a)))
    elif consumer == "operand":
        used = [f"%t{i}" for i in range(shape.a)]
        lines += [f".reg .b32 %t{i}; mov.b32 %t{i}, %d{i % shape.d};" for i in range(shape.a)]
        lines.append(_mma(shape, _list("e", shape.d), "{" + ", ".join(used) + "}"))
        stored = "e"
    elif consumer != "store":
        lines += [CONSUMERS[shape.kind][consumer].format(o=f"%o{i}", d=f"%d{i}", s="%s") for i in range(shape.d)]
        stored, width = "o", out
    lines += [f"st.global.{width} [%p+{512 + 4 * i}], %{stored}{i};" for i in range(shape.d)]
    return "\n".join([*lines, "ret;", "}", ""])


def ptx() -> str:
    """All probes."""
    text = [".version 8.7", ".target sm_86", ".address_size 64", ""]
    for shape in SHAPES:
        name = ("sp_" if shape.sparse else "") + shape.name.replace(".", "_")
        for consumer in ("chain", "operand", "store", *CONSUMERS[shape.kind]):
            text.append(_kernel(shape, name, consumer))
    return "\n".join(text)


def main() -> None:
    """Writes a cubin a toolkit."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "probes.ptx"
        source.write_text(ptx(), encoding="utf-8")
        for toolkit, tool in TOOLS.items():
            made = Path(folder) / f"tensor-{toolkit}.cubin"
            subprocess.run([tool, "-arch=sm_86", "-O3", "-o", made, source], check=True)
            out = HERE / f"{made.name}.xz"
            out.write_bytes(lzma.compress(made.read_bytes(), preset=9))
            print(f"{out.name}: {out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
