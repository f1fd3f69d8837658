"""Kernels with one fault each, by nvcc: every fault is found, named and placed, fast and strictly."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coppelius.emulator.faults import Finding
from coppelius.emulator.module import load
from coppelius.program.program import Program

FAULTY = Path(__file__).resolve().parents[1] / "data" / "cuda" / "faulty"
S32, F32 = np.int32, np.float32


def _arguments(*shapes: tuple[int, type] | np.generic | np.ndarray) -> list[Any]:
    return [np.zeros(*s) if isinstance(s, tuple) else s for s in shapes]


def _found(source: str, kernel: str, arguments: Sequence[Any], mode: str, **options: Any) -> list[Finding]:
    module = load(FAULTY / f"{source}.cubin")
    undefined = options.pop("undefined", None)
    if undefined is not None:
        module.memory.place(arguments[undefined], "scratch", undefined=True)
    report = module.launch(kernel, 1, options.pop("block", 128), *arguments, mode=mode, collect=True, **options)
    return report.findings


X = np.arange(128, dtype=np.int32)
# source, kernel, arguments, options, then of the first finding: rule, opcode, words of its detail, thread, address
# fmt: off
CASES: list[Any] = [
    ("memory",  "past_the_end", [(128, F32), (100, F32), S32(100)], {},
     "memcheck",  "LDG", "out of bounds: 4 bytes 0 bytes past the end of buffer", (100, 0, 0)),
    ("memory",  "odd_quad", [(512, F32), (512, F32)], {},
     "memcheck",  "LDG", "misaligned: 16 bytes must start at a multiple of 16", (1, 0, 0)),
    ("memory",  "past_shared", [(64, S32)], {"block": 64},
     "memcheck",  "STS", "out of bounds: 4 bytes of 256 bytes of shared memory", (63, 0, 0)),
    ("memory",  "unset_shared", [(128, S32)], {},
     "initcheck", "STG", "an undefined value reaches global memory", (100, 0, 0)),
    ("memory",  "unset_local", [(64, S32), np.zeros(64, S32)], {"block": 64},
     "initcheck", "STG", "an undefined value reaches global memory", (15, 0, 0)),
    ("memory",  "sums_what_it_was_given", [(64, F32), np.zeros(64, F32)], {"block": 64, "undefined": 1},
     "initcheck", "STG", "an undefined value reaches global memory", (0, 0, 0)),
    ("threads", "reverse_without_barrier", [(128, S32), X], {},
     "racecheck", "LDS", "read after write of the warp of thread (96, 0, 0)", (0, 0, 0)),
    ("threads", "reads_then_overwrites", [(128, S32), X], {},
     "racecheck", "STS", "write after read of the warp of thread (96, 0, 0)", (0, 0, 0)),
    ("threads", "all_write_one", [(128, S32)], {},
     "racecheck", "STS", "write after write: several threads write different values at once", (0, 0, 0)),
    ("threads", "race_within_a_warp", [(32, S32), np.arange(32, dtype=S32)], {"block": 32},
     "racecheck", "LDS", "read after write of thread (1, 0, 0)", (0, 0, 0)),
    ("threads", "half_a_warp_waits", [(192, S32)], {"block": 64},
     "synccheck", "BAR", "barrier of the whole block, of which 32 threads have left", (0, 0, 0)),
    ("threads", "some_leave_first", [(128, S32), S32(64)], {},
     "synccheck", "BAR", "barrier of the whole block, of which 64 threads have left", (0, 0, 0)),
    ("threads", "wrong_count", [(128, S32)], {},
     "deadlock",  "BAR", "nobody can go on: 64 threads at", (0, 0, 0)),
    ("threads", "each_waits_for_the_other", [(64, S32)], {"block": 64},
     "deadlock",  "BAR", "nobody can go on: 32 threads at", (32, 0, 0)),
    ("threads", "never_ends", [(2, S32)], {"limit": 5000},
     "endless",   "", "no end after 5000 steps", (0, 0, 0)),
]
# fmt: on


@pytest.mark.parametrize("mode", ["fast", "strict"])
@pytest.mark.parametrize("case", CASES, ids=[c[1] for c in CASES])
def test_each_fault_is_found(case: Any, mode: str) -> None:
    source, kernel, shapes, options, rule, opcode, detail, thread = case
    arguments = _arguments(*shapes)
    found = _found(source, kernel, arguments, mode, **options)
    assert found
    first = found[0]
    assert (first.rule, first.thread) == (rule, thread), first
    assert first.instruction.removeprefix("@P0 ").removeprefix("@!P0 ").startswith(opcode), first
    assert detail in first.detail, first
    assert first.kernel == kernel
    assert first.block == (0, 0, 0)


def test_every_faulty_kernel_has_a_case() -> None:
    names = [name for source in ("memory", "threads") for name in load(FAULTY / f"{source}.cubin").kernels]
    assert sorted(names) == sorted(case[1] for case in CASES)


def test_placed_at_the_instruction() -> None:
    """The offset of a finding is the instruction's, in the kernel's own code."""
    module = load(FAULTY / "threads.cubin")
    kernel = module.kernel("reverse_without_barrier")
    found = _found("threads", kernel.name, _arguments((128, S32), X), "fast")
    program = Program.decode(kernel.code)
    loads = [i for i, instruction in enumerate(program) if instruction.encoding.mnemonic == "LDS"]
    assert [f.offset for f in found] == [16 * i for i in loads]
    assert found[0].address == 127 * 4
