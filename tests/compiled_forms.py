"""Forms of instructions, and which of them ptxas writes for a target.

A form is a row of a target's table with whatever is no operand's value: modifiers, signs, half selects, scales.
Registers, immediates, offsets, labels and the control word are left out, so a form is what one needs to have seen
compiled once.  Printed: `FADD:7 B.negate=1`, fields at their defaults unsaid.

Sources: `data/probes/forms.ptx`, written for this, and `data/probes/compiled.ptx.xz`, nvcc's PTX of tests/data/cuda.
What ptxas writes of them is recorded (`data/probes/forms.xz`, a word a form and target), so that a form is judged where
there is no ptxas; `data/probes/build_forms.py` records, and a test compiles again and compares.
"""

from __future__ import annotations

import lzma
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import oracle

from coppelius.container.cubin import read_cubin
from coppelius.isa import codec
from coppelius.isa.control import CONTROL_FIELDS
from coppelius.isa.form import Encoding
from coppelius.isa.table import Table, table_of
from coppelius.isa.values import ConstantOperand, Immediate, Label_, Named, PackedHalves
from coppelius.isa.word import WORD_BYTES, from_bytes

PROBES = Path(__file__).resolve().parent / "data" / "probes"
PTX, COMPILED, RECORD = PROBES / "forms.ptx", PROBES / "compiled.ptx.xz", PROBES / "forms.xz"
MARK = "// source: "
TARGETS = ("sm80", "sm86", "sm89", "sm90", "sm120", "sm121")

_CONTROL = frozenset(f.name for f in CONTROL_FIELDS)
_VALUES = (Immediate, PackedHalves, Label_, Named, ConstantOperand)


@cache
def telling(encoding: Encoding) -> tuple[str, ...]:
    """The fields that make a form: all but the guard, the control word and the values of operands."""
    values = {s.name for s in encoding.operands if isinstance(s, _VALUES)}
    left = _CONTROL | values | {a.field for a in encoding.accesses} | {f.name for f in encoding.guard.fields}
    names = (f.name for f in encoding.fields if f.name not in left)
    return tuple(n for n in names if not n.endswith((".reuse", ".shown", ".offset", ".bank")))


def forms(code: bytes, table: Table) -> dict[str, bytes]:
    """Each form in the code, and one word that has it; words outside the table are passed over."""
    found: dict[str, bytes] = {}
    decoded = codec.decode(table, from_bytes(code))
    for encoding, where in decoded.groups():
        names = telling(encoding)
        block = decoded.values[where][:, [encoding.column[n] for n in names]]
        rows, first = np.unique(block, axis=0, return_index=True)
        for row, at in zip(rows.tolist(), where[first].tolist(), strict=True):
            pairs = zip(names, row, strict=True)
            said = [f"{n}={v}" for n, v in pairs if v != encoding.defaults[encoding.column[n]]]
            found[" ".join([encoding.name, *said])] = code[at * WORD_BYTES : (at + 1) * WORD_BYTES]
    return found


def sources() -> Iterator[tuple[str, tuple[str, ...], str]]:
    """(name, levels of optimisation, PTX)."""
    yield "forms", ("-O3", "-O0"), PTX.read_text(encoding="utf-8")
    for part in lzma.decompress(COMPILED.read_bytes()).decode().split(MARK)[1:]:
        head, _, text = part.partition("\n")
        name, *levels = head.split()
        yield name, tuple(levels), text


def written(target: str) -> dict[str, bytes]:
    """Each form that ptxas writes of the sources for that target, and one word of it."""
    tool = oracle.find_tool("ptxas")
    assert tool is not None, "no ptxas"
    table = table_of(target)
    found: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = Path(folder) / "source.ptx", Path(folder) / "made.cubin"
        for name, levels, text in sources():
            source.write_text(text, encoding="utf-8")
            for level in levels:
                arch = f"-arch={target.replace('sm', 'sm_')}"
                command = [tool, arch, level, "-suppress-stack-size-warning", "-o", cubin, source]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                assert done.returncode == 0, f"{name} {level} for {target}: {done.stderr}"
                for kernel in read_cubin(cubin.read_bytes()).kernels:
                    found = forms(kernel.code, table) | found
    return found


@cache
def recorded() -> dict[str, dict[str, bytes]]:
    """target -> form -> a word that ptxas wrote."""
    found: dict[str, dict[str, bytes]] = {target: {} for target in TARGETS}
    for line in lzma.decompress(RECORD.read_bytes()).decode().splitlines()[1:]:
        targets, form, word = line.split("\t")
        for target in targets.split():
            found[target][form] = bytes.fromhex(word)
    return found


def record() -> None:
    """Writes what the ptxas that is found makes of the sources: a line a form and word, with its targets."""
    lines: dict[tuple[str, str], list[str]] = {}
    for target in TARGETS:
        for form, word in written(target).items():
            lines.setdefault((form, word.hex()), []).append(target)
    body = [f"{' '.join(targets)}\t{form}\t{word}" for (form, word), targets in sorted(lines.items())]
    text = "\n".join([f"ptxas {oracle.tool_version('ptxas')}", *body])
    RECORD.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
