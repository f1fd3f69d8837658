"""Loops laid out: prologue, kernel and epilogues instruction by instruction, and the paths through them."""

from __future__ import annotations

import pytest

from coppelius.builder.assemble import assemble
from coppelius.builder.draft import Draft
from coppelius.builder.kernel import Kernel
from coppelius.builder.loops import LaidOut, lay_out, lay_out_all, own_registers
from coppelius.isa.operands import RZ, Address, R
from coppelius.program.stages import Stages, in_turn

TWO = Stages((0, 1), (0, 1))


def kernel(count: int | None, least: int = 0) -> Kernel:
    """`count` times: a value, doubled into a total."""
    k = Kernel({})
    number = k.MOV("number", 5)
    total = k.zero("total")
    with k.loop("l", number if count is None else count, least=least):
        value = k.POPC("value", number)
        k.FADD(total, total, value)
    k.STS(place(k), total)
    k.finish()
    return k


def place(k: Kernel) -> Address:
    """Somewhere to store."""
    return Address(k.MOV("place", RZ))


def laid(k: Kernel, stages: Stages) -> LaidOut:
    loop = k.draft.loops[0]
    return lay_out(k.draft, loop, stages, k.table, own_registers(k.draft, loop, k.table))


def texts(draft: Draft, first: int = 0, end: int | None = None) -> list[str]:
    """Each instruction's stem and, of POPC and FADD, the copy of `value` it touches; labels before what they name."""
    found = []
    values = {v.first: v.name for v in draft.names.virtuals if v.name.startswith("value")}
    for i, item in enumerate(draft.items):
        touched = [values[t.number] for t in (*item.writes, *item.reads) if t.number in values and t.space == "R"]
        where = [f"{label.split(':')[1]}:" for label, at in draft.labels.items() if at == i and ":" in label]
        target = [item.target.split(":")[1]] if item.target and ":" in item.target else []
        words = [*where, item.encoding.mnemonic.split(".")[0], *touched, *target]
        found.append(" ".join(words))
    return found[first:end]


def test_two_stages_of_a_count_in_a_register() -> None:
    one = laid(kernel(None), TWO)
    assert texts(one.draft, 2, one.behind[0] + 1) == [
        "IADD3", "ISETP", "BRA done",
        "ISETP", "POPC value", "BRA after1",
        "top: ISETP", "POPC value.1", "FADD value", "BRA after2",
        "ISETP", "IADD3", "POPC value", "FADD value.1", "BRA top",
        "after1: FADD value", "BRA done",
        "after2: FADD value.1",
        "done: MOV",
    ]  # fmt: skip


def test_the_loop_as_it_is_written() -> None:
    one = laid(kernel(None), in_turn(2))
    assert texts(one.draft, 2, one.behind[0]) == [
        "MOV", "ISETP", "BRA done", "top: ISETP", "IADD3", "POPC value", "FADD value", "BRA top",
    ]  # fmt: skip


@pytest.mark.parametrize(("least", "checks"), [(0, 2), (1, 1), (2, 0)])
def test_a_count_that_is_surely_there_is_not_asked_for(least: int, checks: int) -> None:
    one = laid(kernel(None, least), TWO)
    before_the_kernel = texts(one.draft, 2, one.kernel[0][0])
    assert sum(text.startswith("BRA") for text in before_the_kernel) == checks


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (0, []),
        (1, ["POPC value", "FADD value"]),
        (2, ["POPC value", "POPC value.1", "FADD value", "FADD value.1"]),
        (4, [
            "POPC value", "POPC value.1", "FADD value", "POPC value", "FADD value.1", "POPC value.1", "FADD value",
            "FADD value.1",
        ]),
        (6, [
            "MOV", "POPC value",
            "top: IADD3", "ISETP", "POPC value.1", "FADD value", "POPC value", "FADD value.1", "BRA top",
            "POPC value.1", "FADD value", "FADD value.1",
        ]),
    ],
)  # fmt: skip
def test_a_constant_count(count: int, expected: list[str]) -> None:
    one = laid(kernel(count), TWO)
    assert texts(one.draft, 2, one.behind[0]) == expected


def test_paths() -> None:
    counted, constant = laid(kernel(None), TWO), laid(kernel(6), TWO)
    for count in range(8):
        path = [texts(counted.draft)[i] for first, end in counted.path(count) for i in range(first, end)]
        assert sum("POPC" in text for text in path) == sum("FADD" in text for text in path) == count
    path = [texts(constant.draft)[i] for first, end in constant.path(6) for i in range(first, end)]
    assert sum("POPC" in text for text in path) == sum("FADD" in text for text in path) == 6


def test_several_loops_are_laid_out_wherever_they_stand() -> None:
    k = Kernel({})
    total = k.zero("total")
    for n in range(3):
        with k.loop(f"l{n}", 4):
            k.FADD(total, total, total)
    k.STS(place(k), total)
    k.finish()
    assert len(k.draft.loops) == 3
    inner = lay_out_all(k.draft, k.table, but=1)
    assert [loop.name for loop in inner.loops] == ["l1"]
    loop = inner.loops[0]
    assert texts(inner, loop.first, loop.end) == ["FADD"]
    program = assemble(k.draft, k.table, registers=20).program
    assert len(program) == 1 + 3 * 5 + 4


def test_what_the_next_iteration_or_the_rest_reads_is_not_copied() -> None:
    k = kernel(None)
    assert [v.name for v in own_registers(k.draft, k.draft.loops[0], k.table)] == ["value"]
    k = Kernel({})
    with k.loop("l", 3):
        last = k.MOV("last", 3)
        k.MOV("pinned", 3)
    k.STS(place(k), last)
    k.finish()
    assert [v.name for v in own_registers(k.draft, k.draft.loops[0], k.table)] == ["pinned"]
    assert isinstance(last, R)
