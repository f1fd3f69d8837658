"""Registers live at once: counted as a twin counts them, and bounded while blocks are ordered."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from coppelius.builder.draft import Draft, Item, Source
from coppelius.builder.kernel import Kernel
from coppelius.emit import ordered_draft
from coppelius.isa.operands import Address, R
from coppelius.program.flow import Block
from coppelius.program.program import Instruction, Program
from coppelius.schedule.operation import SPACES, operation_of
from coppelius.schedule.pressure import Budget, Pressure
from coppelius.schedule.reorder import ordered


def straight(program: Program) -> list[Instruction]:
    """The longest run without control flow."""
    runs: list[list[Instruction]] = [[]]
    for row in program:
        if row.encoding.pipe == "control" or row["guard"] != 7:
            runs.append([])
        else:
            runs[-1].append(row)
    return max(runs, key=len)


def widest(rows: list[Instruction], after: set[int]) -> int:
    """The twin, back to front: live before = read, or live after and not written."""
    live, most = set(after), 0
    for row in reversed(rows):
        writes = {t.number for t in row.writes if t.space == "R"}
        most = max(most, len(live | writes))
        live = (live - writes) | {t.number for t in row.reads if t.space == "R"}
        most = max(most, len(live))
    return most


@pytest.mark.parametrize("seed", range(40))
def test_no_wider_than_the_budget_or_the_own_order(seed: int, random_program: Callable[..., Program]) -> None:
    rows = straight(random_program(6000 + seed, 120))
    operations = [operation_of(r.encoding, r.values) for r in rows]
    reads = {t.number for r in rows for t in r.reads if t.space == "R"}
    for after in (set[int](), {0, 1, 2}):
        live = set(after)
        for row in reversed(rows):
            live = (live - {t.number for t in row.writes if t.space == "R"}) | {
                t.number for t in row.reads if t.space == "R"
            }
        for registers in (4, len(reads)):
            budget = Budget(registers, {0: frozenset(live)}, {0: frozenset(after)})
            block = Block(0, len(rows), ())
            order = ordered(rows, operations, [block], [{}] * len(rows), budget)
            assert sorted(order) == list(range(len(rows)))
            assert widest([rows[i] for i in order], after) <= max(registers, widest(rows, after))


def test_counted_while_they_issue() -> None:
    k = Kernel({})
    k.FADD(R(2), R(0), R(1))
    k.FADD(R(3), R(2), R(1))
    k.FADD(R(4), R(3), R(3))
    rows = [operation_of(i.encoding, i.values) for i in k.draft.items]
    pressure = Pressure(rows, Block(0, 3, ()), Budget(3, {0: frozenset((0, 1))}, {0: frozenset((4,))}))
    assert pressure.over(0) == 0
    assert [pressure.issue(i) for i in range(3)] == [3, 3, 2]
    assert pressure.live == {4}


def loads_and_sums(count: int) -> Draft:
    """Loads, each summed at once: all of them first would need a register each."""
    k = Kernel({})
    base = k.vector("base", 2)
    k.MOV(base[0], 0)
    k.MOV(base[1], 0)
    total = k.register("total")
    k.MOV(total, 0)
    for n in range(count):
        value = k.LDG_E(f"v{n}", Address(base, 4 * n, wide=True))
        k.FADD(total, total, value)
    k.STG_E(Address(base, 0, wide=True), total)
    k.finish()
    return k.draft


def loads_in_front(draft: Draft) -> int:
    """Loads before the first sum."""
    kinds = [item.encoding.mnemonic.split(".")[0] for item in draft.items]
    return kinds[: kinds.index("FADD")].count("LDG")


def test_a_wide_budget_loads_ahead_and_a_narrow_one_does_not() -> None:
    assert SPACES["R"] == 0
    assert loads_in_front(ordered_draft(loads_and_sums(16), 64)) == 16
    assert loads_in_front(ordered_draft(loads_and_sums(16), 8)) <= 5
    assert loads_in_front(ordered_draft(loads_and_sums(16), None)) == 1


def test_sources_and_labels_move_along() -> None:
    draft = loads_and_sums(4)
    for n, item in enumerate(draft.items):
        draft.items[n] = Item(item.encoding, item.values, Source("here.py", n), item.target, item.pins)
    moved = ordered_draft(draft, 64)
    for item in moved.items:
        assert item.encoding is draft.items[item.source.line].encoding
    assert moved.labels == draft.labels
