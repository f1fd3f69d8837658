"""Our schedules against the vendor's on the compiled kernels of tests/data; the whole corpus is a bench."""

from __future__ import annotations

from pathlib import Path

import pytest
from cuda_launches import launches
from vendor_schedule import Comparison, compare, run_launches

from coppelius.container.reader import read_kernels

CUBINS = Path(__file__).resolve().parents[1] / "data" / "cuda" / "cubins"
MOST = 300  # instructions a kernel: the longer ones are the bench's
ABOVE = 1.10


@pytest.mark.parametrize("reorder", [False, True])
def test_not_slower_than_the_vendor(reorder: bool) -> None:
    kernels = [k for path in sorted((CUBINS / "O3").glob("*.cubin")) for k in read_kernels(path)]
    found: Comparison = compare([k for k in kernels if k.instructions <= MOST], reorder=reorder)
    assert found.refused == []
    assert found.median() <= 1.0
    assert [pair for pair in found.ratios if pair[0] > ABOVE] == []
    assert found.kernels > 120
    assert set(found.left_out) <= {"CALL", "BRX", "words outside the table"}


@pytest.mark.parametrize("reorder", [False, True])
def test_the_same_memory_in_the_strict_emulator(reorder: bool) -> None:
    # elementwise, memory, norm: the rest is the bench's
    found = run_launches(launches("[emn][leo][emr]*"), "O3", reorder=reorder)
    assert found.different == []
    assert found.kernels > 20
