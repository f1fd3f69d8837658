"""Our main loops beside nvcc's for the same tile: the same bits, and in the cycle model never more than nvcc's."""

from itertools import product

import main_loops
import pytest

from coppelius.products.admission import REGISTER_UNIT
from coppelius.program.cycles import MEMORY_CYCLES
from coppelius.reference import bounds

# each tile and layout once; `tests/bench/bench_products.py` has them all
SOME = {(0, "rc"), (2, "rr"), (4, "cc"), (6, "rr")}
PAIRS = [
    pytest.param(*pair, id="{}-{}".format(*pair), marks=[] if pair in SOME else [pytest.mark.slow])
    for pair in product(main_loops.COMPILED, main_loops.LAYOUTS)
]
LARGE, DENSE = (0, 6), 8.5  # candidates, and the modelled cycles an HMMA that their loops reach


@pytest.mark.parametrize(("candidate", "layouts"), PAIRS)
def test_both_leave_the_same_bits(candidate: int, layouts: str) -> None:
    case = main_loops.case_of(candidate, layouts)
    last = 3  # of four blocks
    ours, theirs = (
        main_loops.run(main_loops.version(candidate, layouts, compiled=compiled).code, case, blocks=[last])
        for compiled in (False, True)
    )
    assert bounds.exact_bits(ours, theirs)
    assert (ours[case.tile.rows :, case.tile.columns :] != ours[0, 0]).all()  # [0, 0] is not of the block


@pytest.mark.parametrize(("candidate", "layouts"), PAIRS)
def test_ours_asks_for_no_more(candidate: int, layouts: str) -> None:
    case = main_loops.case_of(candidate, layouts)
    ours, theirs = (main_loops.version(candidate, layouts, compiled=compiled) for compiled in (False, True))
    assert (ours.loop.products, ours.loop.loads, ours.loop.groups) == theirs.loop[2:]
    assert ours.loop.share > theirs.loop.share
    assert ours.loop.flying == theirs.loop.flying == (case.tile.stages - 2, case.tile.stages - 1)
    assert ours.registers <= -(-theirs.registers // REGISTER_UNIT) * REGISTER_UNIT
    for mine, other in zip(ours.cycles(), theirs.cycles(), strict=True):
        for memory, a, b in zip(MEMORY_CYCLES, mine, other, strict=True):
            assert a <= b, f"loads of {memory} cycles"
            assert a <= DENSE or candidate not in LARGE or memory > min(MEMORY_CYCLES)


@pytest.mark.parametrize(("candidate", "layouts"), PAIRS)
def test_neither_meets_a_bank_twice(candidate: int, layouts: str) -> None:
    case = main_loops.case_of(candidate, layouts)
    for compiled in (False, True):
        taken, fewest = main_loops.conflicts(main_loops.version(candidate, layouts, compiled=compiled), case)
        assert taken == fewest > 0
