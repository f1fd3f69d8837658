"""Software-pipelined loops: the memory that the loop leaves as it is written, for every count; what is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from vendor_schedule import hazards

from coppelius.builder.draft import Loop
from coppelius.builder.kernel import Kernel
from coppelius.builder.loops import LaidOut, lay_out, own_registers
from coppelius.builder.registers import Vector
from coppelius.emit import best_stages, body_of, path_cycles, scheduled
from coppelius.emulator.launch import launch
from coppelius.emulator.memory import Memory
from coppelius.emulator.parameters import pack_naturally
from coppelius.isa.operands import RZ, Address, P, R
from coppelius.isa.refusal import Refusal
from coppelius.program.program import Program
from coppelius.program.stages import Stages, in_turn
from coppelius.schedule.compaction import compact_stalls
from coppelius.schedule.pipeline import (
    MOST_STAGES,
    Body,
    Edge,
    candidates,
    edges,
    recurrence_interval,
    refusal,
    resource_interval,
    times,
)

LANES = 32
MOST = MOST_STAGES + 3  # iterations
PARAMETERS = {name: ("pointer", "f32", 0x160 + 8 * n) for n, name in enumerate(("out", "x", "place"))}
WIDE = 200  # registers enough for anything drawn

# (what, a value made before, another or a lane)
Step = tuple[str, int, int]


class Drawn:
    """A loop from drawn steps; block b runs it b times, or all `count` times, each thread on memory of its own."""

    def __init__(self, steps: Sequence[Step], count: int | None = None, **options: Any) -> None:
        self.k = k = Kernel(PARAMETERS)
        k.descriptor()
        thread, block = k.thread_index(), k.block_index()
        own = k.IMAD("own", block, LANES * MOST, thread)
        self.source, self.out = (k.element(f"{name}.at", name, own, 4) for name in ("x", "out"))
        self.place = k.element("place.at", "place", k.IMAD("own.place", block, LANES, thread), 4)
        self.slot = Address(k.SHF_L_U32("slot", thread, 2, RZ))
        k.STS(self.slot, RZ)
        self.sums = [k.move(f"sum{n}", float(n)) for n in range(2)]
        self.chain = k.move("chain", 0.5)
        with k.loop("rounds", block if count is None else count, **options):
            self.locals = [k.LDG_E("first", k.at(self.source))]
            for n, (kind, a, b) in enumerate(steps):
                STEPS[kind](self, n, self.locals[a % len(self.locals)], b)
            k.FADD(self.sums[0], self.sums[0], self.locals[-1])
            self.forward(self.source)
            self.forward(self.out)
        total = k.FADD("total", k.FADD("both", *self.sums), self.chain)
        k.STG_E(k.at(self.place), k.FADD("all", total, k.LDS("kept", self.slot)))
        k.finish()

    @property
    def loop(self) -> Loop:
        return self.k.draft.loops[0]

    def forward(self, pointer: Vector, places: int = 1) -> None:
        self.k.IADD3(pointer[0], pointer[0], 4 * LANES * places, RZ)

    def load(self, n: int, _: R, place: int) -> None:
        self.locals.append(self.k.LDG_E(f"load{n}", self.k.at(self.source)))
        if place % 2:
            # an address whose register moves on in the same iteration
            self.forward(self.source)
            self.forward(self.source, -1)

    def multiply(self, n: int, a: R, other: int) -> None:
        self.locals.append(self.k.FFMA(f"product{n}", a, self.locals[other % len(self.locals)], 0.25))

    def reciprocal(self, n: int, a: R, _: int) -> None:
        self.locals.append(self.k.MUFU_RCP(f"reciprocal{n}", a))

    def sum(self, n: int, a: R, which: int) -> None:
        guard = self.positive(n, a) if which > 3 else None
        self.k.FADD(self.sums[which % 2], self.sums[which % 2], a, guard=guard)

    def link(self, n: int, a: R, _: int) -> None:
        self.locals.append(self.k.FADD(f"link{n}", self.chain, a))
        self.k.FMUL(self.chain, self.locals[-1], 0.5)

    def guarded(self, n: int, a: R, which: int) -> None:
        guard, value = self.positive(n, a), self.k.register(f"guarded{n}")
        self.k.LDG_E(value, self.k.at(self.source), guard=guard)
        self.k.FADD(self.sums[which % 2], self.sums[which % 2], value, guard=guard)

    def positive(self, n: int, a: R) -> P:
        return self.k.compare_f32(f"positive{n}", "GT", a, RZ)

    def shuffle(self, n: int, a: R, lane: int) -> None:
        self.locals.append(self.k.shuffle_xor(f"other{n}", a, 1 << lane % 5))

    def shared(self, n: int, a: R, _: int) -> None:
        before = self.k.LDS(f"before{n}", self.slot)
        self.k.STS(self.slot, self.k.FFMA(f"after{n}", before, 0.5, a))

    def in_place(self, n: int, a: R, _: int) -> None:
        before = self.k.LDG_E(f"before{n}", self.k.at(self.place))
        self.k.STG_E(self.k.at(self.place), self.k.FFMA(f"after{n}", before, 0.5, a))

    def store(self, _: int, a: R, __: int) -> None:
        self.k.STG_E(self.k.at(self.out), a)


STEPS: dict[str, Callable[[Drawn, int, R, int], None]] = {
    "load": Drawn.load,
    "multiply": Drawn.multiply,
    "reciprocal": Drawn.reciprocal,
    "sum": Drawn.sum,
    "link": Drawn.link,
    "guarded": Drawn.guarded,
    "shuffle": Drawn.shuffle,
    "shared": Drawn.shared,
    "in place": Drawn.in_place,
    "store": Drawn.store,
}
DRAWN = st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 7), st.integers(0, 7)), max_size=8)
LOADS: list[Step] = [("load", 0, 0), ("multiply", 0, 1), ("multiply", 2, 0), ("sum", 3, 1)]


def apart_in(steps: Sequence[Step]) -> tuple[str, ...]:
    """The spaces in which this loop's iterations touch nothing of each other."""
    kinds = {kind for kind, *_ in steps}
    return tuple(space for space, kind in (("global", "in place"), ("shared", "shared")) if kind not in kinds)


def body(drawn: Drawn) -> Body:
    draft = drawn.k.draft
    return body_of(draft, own_registers(draft, drawn.loop, drawn.k.table))


def choices(drawn: Drawn) -> list[Stages]:
    """What the pass would try."""
    return candidates(body(drawn), drawn.loop.stages, drawn.loop.marks)


def laid(drawn: Drawn, stages: Stages) -> LaidOut:
    draft = drawn.k.draft
    return lay_out(draft, drawn.loop, stages, drawn.k.table, own_registers(draft, drawn.loop, drawn.k.table))


def program_of(drawn: Drawn, stages: Stages, *, reorder: bool = True) -> Program:
    """The kernel with its loop in these stages, as the emit step would have it."""
    return compact_stalls(scheduled(laid(drawn, stages).draft, drawn.k.table, WIDE, reorder).program)


def left_by(program: Program, mode: str = "strict") -> list[NDArray[Any]]:
    """All memory after blocks 0 to MOST, whose numbers are their counts."""
    memory, random = Memory(), np.random.default_rng(7)
    x = random.standard_normal((MOST + 1, MOST, LANES)).astype(np.float32)
    out, place = np.zeros_like(x), np.ones((MOST + 1, LANES), np.float32)
    launch(
        program.encode(),
        grid=(MOST + 1, 1, 1),
        block=(LANES, 1, 1),
        parameters=pack_naturally((out, x, place), memory),
        memory=memory,
        shared_bytes=4 * LANES,
        mode=mode,
    )
    return [out.view(np.uint32), place.view(np.uint32)]


def held(drawn: Drawn, stages: Stages) -> None:
    """No check objects, nothing is left to compact, and run strictly it leaves the memory of the loop as written."""
    try:
        program = program_of(drawn, stages)
    except Refusal as refusal:
        # iterations side by side may need more predicates than there are; the emit step takes fewer stages then
        if stages.count == 1 or "no place for 1 P among 7" not in str(refusal):
            raise
        reject()
    assert hazards(program) == []
    assert compact_stalls(program) == program
    plain = left_by(program_of(drawn, in_turn(len(stages.order)), reorder=False), "fast")
    for found, expected in zip(left_by(program), plain, strict=True):
        np.testing.assert_array_equal(found, expected)


@settings(max_examples=30, deadline=None)
@given(DRAWN, st.booleans(), st.data())
def test_every_count_leaves_the_memory_of_the_loop_as_written(
    steps: list[Step], apart: bool, data: st.DataObject
) -> None:
    drawn = Drawn(steps, apart=apart_in(steps) if apart else ())
    held(drawn, data.draw(st.sampled_from(choices(drawn))))


@settings(max_examples=15, deadline=None)
@given(DRAWN, st.integers(0, MOST), st.integers(2, MOST_STAGES))
def test_every_constant_count(steps: list[Step], count: int, stages: int) -> None:
    drawn = Drawn(steps, count=count, stages=stages, apart=apart_in(steps))
    for made in choices(drawn)[:1]:
        held(drawn, made)


@settings(max_examples=12, deadline=None)
@given(DRAWN)
def test_chosen_stages_take_no_longer_than_the_loop_as_written(steps: list[Step]) -> None:
    drawn = Drawn(steps, apart=apart_in(steps))
    draft, table = drawn.k.draft, drawn.k.table
    own = own_registers(draft, drawn.loop, table)
    chosen, _ = best_stages(draft, own, table, WIDE, reorder=False)
    cycles = []
    for stages in (chosen, in_turn(len(chosen.order))):
        one = laid(drawn, stages)
        cycles.append(path_cycles(scheduled(one.draft, table, WIDE, reorder=False), one, drawn.loop))
    assert all(a <= b for a, b in zip(*cycles, strict=True))


def test_loads_of_later_iterations_are_under_way() -> None:
    drawn = Drawn(LOADS, apart=("global",))
    draft, table = drawn.k.draft, drawn.k.table
    chosen, _ = best_stages(draft, own_registers(draft, drawn.loop, table), table, WIDE, reorder=True)
    plain, one = (laid(drawn, stages) for stages in (in_turn(len(chosen.order)), chosen))
    near, far = (path_cycles(scheduled(x.draft, table, WIDE, True), x, drawn.loop) for x in (plain, one))
    assert chosen.count == MOST_STAGES
    # eight iterations with loads of 32 and 400 cycles, then 32
    assert far[1] < 0.4 * near[1]
    assert far[3] < 0.4 * near[3]


def test_a_value_has_a_register_for_each_iteration_that_it_lives_in() -> None:
    drawn = Drawn(LOADS, stages=3, apart=("global",))
    names = [v.name for v in own_registers(drawn.k.draft, drawn.loop, drawn.k.table)]
    assert {"first", "load0", "product1"} <= set(names)
    assert not {"sum0", "x.at", "chain"} & set(names)
    made = next(one for one in choices(drawn) if one.stage[0] == 0 and one.stage[-3] == 2)
    copies = {v.name for v in laid(drawn, made).draft.names.virtuals} - {v.name for v in drawn.k.draft.names.virtuals}
    assert {"first.1", "load0.1"} <= copies
    assert not any(name.startswith("sum") for name in copies)


def test_no_value_is_moved_and_each_instruction_issues_once_an_iteration() -> None:
    drawn = Drawn(LOADS, apart=("global",))
    for stages in choices(drawn):
        one = laid(drawn, stages)
        items = drawn.k.draft.items[drawn.loop.first : drawn.loop.end]
        for count in range(MOST + 1):
            before, behind = one.before, one.behind
            spans = one.path(count)
            path = [i for first, end in spans for i in range(first, end) if before[1] <= i < behind[0]]
            issued = [one.draft.items[i].encoding.mnemonic for i in path]
            for mnemonic in ("LDG.E", "FFMA", "FADD"):
                own = [item for item in items if item.encoding.mnemonic == mnemonic]
                assert issued.count(mnemonic) == count * len(own)


def test_intervals() -> None:
    drawn = Drawn([("link", 0, 0), ("reciprocal", 1, 0)])
    known = body(drawn)
    operations = known.operations
    assert resource_interval(operations) == max(len(operations), 8)  # MUFU takes its pipe for 8 cycles
    # chain = (chain + a) / 2: FADD and FMUL, four cycles each; LDG reads an address late that then moves on
    chain = [
        e
        for e in edges(known, 32)
        if {known.rows[e.first].encoding.pipe, known.rows[e.second].encoding.pipe} == {"fma"}
    ]
    assert recurrence_interval(len(operations), chain) == 8
    assert recurrence_interval(2, [Edge(0, 1, 7, 0), Edge(1, 0, 6, 2)]) == 7
    assert recurrence_interval(2, [Edge(0, 1, 7, 0)]) == 1


@settings(max_examples=40, deadline=None)
@given(DRAWN, st.sampled_from([1, 32, 400]))
def test_times_keep_every_distance_and_share_no_slot(steps: list[Step], memory: int) -> None:
    known = body(Drawn(steps))
    operations, found = known.operations, edges(known, memory)
    interval = max(resource_interval(operations), recurrence_interval(len(operations), found)) + 4
    issued = times(operations, found, interval)
    if issued is None:
        return
    for first, second, cycles, distance in found:
        assert issued[second] + interval * distance - issued[first] >= cycles
    assert len({time % interval for time in issued}) == len(issued)


def test_memory_keeps_its_order_unless_it_is_declared_apart() -> None:
    steps: list[Step] = [("store", 0, 0)]
    drawn, apart = Drawn(steps), Drawn(steps, apart=("global",))
    split = Stages(tuple(range(5)), (0, 1, 1, 0, 1))
    assert refusal(body(drawn), split) == (
        "STG (instruction 1, stage 1) would come after the next iteration's LDG (instruction 0, stage 0), "
        "which must follow it"
    )
    assert refusal(body(apart), split) == ""


# fmt: off
REFUSED: dict[str, tuple[Callable[[Kernel], object], str]] = {
    "a branch": (lambda k: k.BRA("x"), r"loop l: BRA in its body; it takes straight code"),
    "a barrier": (lambda k: k.BAR_SYNC_DEFER_BLOCKING(0), r"loop l: BAR\S* in its body; it takes straight code"),
    "a label": (lambda k: (k.place("x"), k.MOV("a", RZ)), r"loop l: a label in its body"),
    "nothing": (lambda _: None, r"loop l is empty"),
    "another loop": (lambda k: k.loop("m", 3).__enter__(), r"loop m stands in another; loops do not nest"),
    "what has no stage": (lambda k: (k.MOV("a", RZ), k.stage(0), k.MOV("b", RZ)), r"MOV stands before the first"),
}
# fmt: on


@pytest.mark.parametrize("what", REFUSED)
def test_bodies_that_are_refused(what: str) -> None:
    emits, message = REFUSED[what]
    k = Kernel({})
    with pytest.raises(Refusal, match=message), k.loop("l", 3):
        emits(k)


def test_counts_guards_and_places_that_are_refused() -> None:
    k = Kernel({})
    with pytest.raises(Refusal, match=r"loop l: 1 iterations are not 2 or more"), k.loop("l", 1, least=2):
        k.MOV("a", RZ)
    with pytest.raises(Refusal, match=r"loop l stands under a guard"), k.when(P(0)), k.loop("l", 3):
        k.MOV("a", RZ)
    with pytest.raises(Refusal, match=r"stage 1 stands outside of a loop"):
        k.stage(1)


def test_what_cannot_be_overlapped_is_refused() -> None:
    k = Kernel({})
    with k.loop("l", 3):
        k.MOV("a", RZ, stall=4)
    with pytest.raises(Refusal, match=r"MOV in a pipelined loop has stall pinned"):
        body_of(k.draft, ())
    k = Kernel({})
    with k.loop("l", 3):
        k.LDGDEPBAR()
    with pytest.raises(Refusal, match=r"LDGDEPBAR in a pipelined loop"):
        body_of(k.draft, ())
    k = Kernel({})
    with k.loop("l", 3, apart=("constant",)):
        k.MOV("a", RZ)
    with pytest.raises(Refusal, match=r"no space constant of memory; spaces: global, local, shared"):
        body_of(k.draft, ())
    with pytest.raises(Refusal, match=r"stages from 1 on: they are counted from 0"):
        Stages((0,), (1,))
    with pytest.raises(Refusal, match=r"the order \[0, 0\] is not one of 2 instructions"):
        Stages((0, 0), (0, 0))


def test_stages_that_do_not_fit_are_refused_by_name_and_others_taken() -> None:
    def chosen(registers: int, **options: Any) -> Stages:
        steps: list[Step] = [("load", 0, 0)] * 6
        drawn = Drawn([*steps, *(("sum", n, 0) for n in range(7))], apart=("global",), **options)
        draft, table = drawn.k.draft, drawn.k.table
        return best_stages(draft, own_registers(draft, drawn.loop, table), table, registers, reorder=False)[0]

    with pytest.raises(Refusal, match=r"test_pipeline\.py:\d+: loop rounds: .*no place for \d R among 22"):
        chosen(24, stages=4)
    assert chosen(60, stages=4).count == 4
    assert chosen(24).count < 4


def test_stages_that_the_kernel_marks() -> None:
    def marked(first: int, second: int) -> Kernel:
        k = Kernel(PARAMETERS)
        k.descriptor()
        at, total = k.element("at", "x", k.thread_index(), 4), k.zero("total")
        with k.loop("rounds", 6, apart=("global",)):
            k.stage(first)
            value = k.LDG_E("value", k.at(at))
            k.IADD3(at[0], at[0], 4, RZ)
            k.stage(second)
            k.FADD(total, total, value)
        k.STG_E(k.at(at), total)
        k.finish()
        return k

    k = marked(0, 3)
    loop, own = k.draft.loops[0], own_registers(k.draft, k.draft.loops[0], k.table)
    assert best_stages(k.draft, own, k.table, None, reorder=False)[0].stage == (0, 0, 3)
    assert loop.marks == (0, 0, 3)
    k = marked(1, 0)
    own = own_registers(k.draft, k.draft.loops[0], k.table)
    with pytest.raises(Refusal, match=r"loop rounds: LDG .*would come after FADD .*which must follow it"):
        best_stages(k.draft, own, k.table, None, reorder=False)
