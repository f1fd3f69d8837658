"""Kernels that nvcc compiled for sm_86, lowered to sm_121: the same memory, by the target's schedule honoured.

The launches are those of tests/emulator, whose tests judge what comes out; each is done twice, in the compiled words
and in the lowered ones.  What cannot be lowered is listed with the refusal that it meets.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from coppelius.check.verdict import judge
from coppelius.container.cubin import read_cubin
from coppelius.emulator.launch import Report, launch
from coppelius.emulator.module import Module, packed, three
from coppelius.isa.refusal import Refusal
from coppelius.isa.table import table_of
from coppelius.lowering.lower import lower
from coppelius.program.program import Program

TESTS = Path(__file__).resolve().parents[1]
CUBINS = TESTS / "data" / "cuda" / "cubins" / "O3"
TARGET = "sm121"


def _launching() -> Iterator[tuple[str, Callable[..., None]]]:
    """The emulator's tests that launch compiled kernels and need nothing else."""
    sys.path.insert(0, str(TESTS / "emulator"))
    for path in sorted((TESTS / "emulator").glob("test_cuda_*.py")):
        spec = importlib.util.spec_from_file_location(f"launching_{path.stem}", path)
        assert spec is not None
        assert spec.loader is not None
        module: ModuleType = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name, test in vars(module).items():
            if name.startswith("test_") and set(inspect.signature(test).parameters) <= {"run", "random"}:
                yield f"{path.stem}:{name}", test


# what it stores is the time
CLOCKS = "test_cuda_warp:test_clocks_move_forward"
LAUNCHING = {name: test for name, test in _launching() if name != CLOCKS}

FUNCTION = "CALL goes where only the whole module knows"
TABLE = "BRX goes where only the whole module knows"
WINDOW = "keeps no local window in constant bank 0"
# kernel -> why it is refused: what sm_121 has not, and jumps that the listing of one kernel cannot follow
# fmt: off
REFUSED = {
    "cas_loop_max_f32": "WARPSYNC: sm121 has no", "arithmetic_f64": "WARPSYNC: sm121 has no",
    "argmax_f32": "WARPSYNC: sm121 has no", "producer_consumer": "WARPSYNC: sm121 has no",
    "warp_exchange": "BRA.CONV: sm121 has no", "votes": "BRA.DIV: sm121 has no",
    "shared_atomics": "ATOMS.POPC.INC.32: sm121 has no", "histogram_u8": "ATOMS.POPC.INC.32: sm121 has no",
    "narrow_int": "I2IP.S16.S32.SAT: sm121 has no", "half2_functions": "MUFU.EX2.F16: sm121 has no",
    "byte_lanes_u32": "VABSDIFF4.U8: sm121 has no", "arithmetic_s32": "VABSDIFF: sm121 has no",
    "mma_168256_b1_xor": "BMMA.168256.XOR.POPC: sm121 has no", "mma_16832_u4": "IMMA.16832.U4.U4: sm121 has no",
    "mma_16864_s4": "IMMA.16864.S4.S4: sm121 has no", "texture_query": "TXQ: sm121 has no",
    "texture_reads": "TEX.SCR.LL: sm121 has no", "surface_atomics": "SURED.D.BA.2D.ADD.STRONG.SYS: sm121 has no",
    "surface_copy": "SULD.D.BA.2D.128.STRONG.SM.TRAP: sm121 has no",
    "functions_f64": "92 constants need more uniform registers than the 1 that are free",
    "virtual_calls": WINDOW, "generic_pointers": WINDOW,
    "generic_widths": "keeps no shared window in constant bank 0",
    "switch_table": TABLE, "switch_uniform": TABLE, "uniform_switch": TABLE, "uniform_switch_parameter": TABLE,
    **dict.fromkeys((
        "function_table", "calls", "recursion", "mandelbrot", "functions_more_f32", "functions_f32", "exact_f32",
        "arithmetic_s64", "adam_f32", "cross_entropy_f32", "rotary_f32", "rmsnorm_bf16", "layernorm_f16",
        "softmax_rows_f32", "attention_f16", "gemm_bf16_pipelined", "gemm_f16_pipelined",
    ), FUNCTION),
}
# fmt: on


@cache
def lowered(code: bytes) -> bytes:
    return lower(Program.decode(code), TARGET).program.encode()


def modules() -> Iterator[tuple[str, Module]]:
    for path in sorted(CUBINS.glob("*.cubin")):
        yield path.stem, Module(read_cubin(path.read_bytes()))


def both(launched: Counter[str]) -> Callable[..., Report]:
    """A launch in the compiled words, and one in the lowered words on copies of the arrays; both end alike."""

    def run(source: str, name: str, grid: Any, block: Any, *values: Any, **options: Any) -> Report:
        module, other = (Module(read_cubin((CUBINS / f"{source}.cubin").read_bytes())) for _ in range(2))
        copies = [v.copy() if isinstance(v, np.ndarray) else v for v in values]
        report = module.launch(name, grid, block, *values, **options)
        if name in REFUSED:
            return report
        shared, stack = options.pop("shared", 0), options.pop("stack", 1024)
        kernel = other.kernel(name)
        static = -(-kernel.shared // 16) * 16 if shared else kernel.shared
        launch(
            lowered(other._relocated(kernel)), table=table_of(TARGET), mode="strict", grid=three(grid),
            block=three(block), parameters=bytes(kernel.parameter_base - 0x160) + packed(kernel, copies, other.memory),
            memory=other.memory, shared_bytes=static + shared, local_bytes=other.local_bytes(kernel, stack),
            constants=other.constants(kernel), kernel=name, **options,
        )  # fmt: skip
        for mine, theirs in zip(values, copies, strict=True):
            if isinstance(mine, np.ndarray):
                np.testing.assert_array_equal(mine.view(np.uint8), theirs.view(np.uint8), err_msg=name)
        launched[name] += 1
        return report

    return run


def test_what_is_lowered_and_what_is_refused() -> None:
    done, refused = 0, {}
    for source, module in modules():
        for name, kernel in module.kernels.items():
            try:
                verdict = judge(lowered(module._relocated(kernel)), {}, table=table_of(TARGET))
            except Refusal as refusal:
                refused[name] = str(refusal)
                continue
            assert verdict["accepted"], f"{source} {name}: {verdict['hazards'][:2]}"
            done += 1
    wrong = [f"{name}: {refused.get(name)}" for name in refused.keys() | REFUSED.keys()
             if REFUSED.get(name, " ") not in refused.get(name, "")]  # fmt: skip
    assert not wrong, "\n".join(wrong)
    assert (done, len(refused)) == (122, 44)


@pytest.mark.parametrize("name", LAUNCHING)
def test_the_lowered_kernel_gives_the_same_memory(name: str) -> None:
    test, launched = LAUNCHING[name], Counter[str]()
    wanted = inspect.signature(test).parameters
    given = {"run": both(launched), "random": np.random.default_rng(86)}
    test(**{parameter: given[parameter] for parameter in wanted})
