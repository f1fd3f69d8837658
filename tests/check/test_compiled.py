"""No alarm on compiled code: a compiler's schedule is right, so each alarm is an error of a checker or of the grid.

Our own CUDA kernels of many kinds, compiled optimised, unoptimised, under register pressure and by another toolkit.
"""

from pathlib import Path
from typing import Any

import pytest

from coppelius.check.verdict import describe, judge
from coppelius.container.reader import read_kernels

CUDA = Path(__file__).resolve().parents[1] / "data" / "cuda"


@pytest.mark.parametrize("variant", ["O0", "O3", "newer", "spill"])
def test_compiled_code_is_accepted(variant: str, cuda_index: list[dict[str, Any]]) -> None:
    alarms = []
    judged = 0
    for row in cuda_index:
        if row["variant"] != variant:
            continue
        for kernel in read_kernels(CUDA / row["file"]):
            targets = {branch.offset: branch.targets for branch in kernel.indirect_branches}
            verdict = judge(kernel.code, {"registers": kernel.registers or None}, targets=targets)
            alarms += describe(f"{row['file']} {kernel.name}", verdict)
            judged += 1
    assert not alarms, f"{len(alarms) // 3} alarms:\n" + "\n".join(alarms[:30])
    assert judged >= 5, "no kernels of this variant"
