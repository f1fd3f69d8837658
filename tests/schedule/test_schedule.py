"""Control words against a slow twin that walks paths and compares every pair of instructions by the grid."""

import random
from collections.abc import Iterator

import pytest

from coppelius.builder.assemble import assemble
from coppelius.builder.kernel import Kernel
from coppelius.isa.control import NO_BARRIER
from coppelius.isa.latency import (
    SET_TO_WAIT,
    is_variable,
    raw_cycles,
    reads_late,
    war_cycles,
    waw_cycles,
)
from coppelius.isa.operands import PT, RZ, Address, P, R
from coppelius.program.flow import blocks, stem
from coppelius.program.program import Instruction, Program
from coppelius.schedule.schedule import schedule


def scheduled(k: Kernel) -> list[Instruction]:
    """The kernel's instructions under assigned control words, its closing EXIT and BRA left out."""
    k.finish()
    built = assemble(k.draft, k.table, registers=200)
    return list(schedule(built.program, built.pins)[0])[:-2]


def paths(program: Program, length: int) -> Iterator[list[int]]:
    """Ways through the program, loops walked again, each at most `length` instructions."""
    flow = {b.start: b for b in blocks(program)}
    stack: list[tuple[int, list[int]]] = [(0, [])]
    while stack:
        start, path = stack.pop()
        block = flow[start]
        path = path + list(range(block.start, block.end))
        if not block.following or len(path) >= length:
            yield path
        for target in block.following if len(path) < length else ():
            stack.append((target, path))


def objections(rows: list[Instruction], path: list[int]) -> list[str]:
    """The twin: every pair along one path that is too close, or that a scoreboard should keep apart and does not."""
    found = []
    issue, now = [], 0
    for i in path:
        issue.append(now)
        now += rows[i]["stall"] or 40
    steps = [rows[i] for i in path]
    for later, b in enumerate(steps):
        for earlier in range(max(0, later - 40), later):
            need = _needed(steps[earlier : later + 1])
            distance = issue[later] - issue[earlier]
            if distance < need:
                names = f"{path[earlier]} {stem(steps[earlier])} -> {path[later]} {stem(b)}"
                found.append(f"{names}: {distance} of {need}")
        if later:
            a = steps[later - 1]
            set_now = {a["write_barrier"], a["read_barrier"]}
            if any(b["wait"] >> s & 1 for s in set_now if s < 6) and a["stall"] < SET_TO_WAIT:
                found.append(f"{path[later]}: waits {a['stall']} cycles after the set")
    return found


# whose results come back in order, whose operands are read in order (facts 0.13)
RESULT_QUEUES = {"SHFL": 1, "LDS": 1, "LDSM": 1, "MUFU": 2}
OPERAND_QUEUES = {"SHFL": 1, "LDS": 1, "LDSM": 1, "STS": 1, "LDG": 1, "STG": 1, "MUFU": 2}


def _done(steps: list[Instruction], queues: dict[str, int], barriers: tuple[str, ...]) -> bool:
    """Whether the last step comes after a wait for the first, or for a later one of its queue."""
    queue = queues.get(stem(steps[0]))
    for n, a in enumerate(steps[:-1]):
        if n == 0 or (queue and queues.get(stem(a)) == queue):
            for name in barriers:
                if a[name] != NO_BARRIER and any(b["wait"] >> a[name] & 1 for b in steps[n + 1 :]):
                    return True
    return False


def _needed(steps: list[Instruction]) -> int:
    """Cycles that the last step must stand behind the first; 99 for a scoreboard that is not waited on."""
    a, b = steps[0], steps[-1]
    op_a, op_b = (a.encoding, a.values), (b.encoding, b.values)
    arrived = _done(steps, RESULT_QUEUES, ("write_barrier",))
    # a result of the same queue that overwrites comes later by itself
    ordered = stem(a) in RESULT_QUEUES and RESULT_QUEUES[stem(a)] == RESULT_QUEUES.get(stem(b))
    was_read = (
        arrived
        or _done(steps, OPERAND_QUEUES, ("write_barrier", "read_barrier"))
        or any(stem(s) == "BAR" for s in steps[1:])
        or OPERAND_QUEUES.get(stem(a), 0) == OPERAND_QUEUES.get(stem(b), -1)
    )
    need = 0
    for w in a.writes:
        for r in b.reads:
            if (w.space, w.number) == (r.space, r.number):
                need = max(need, (0 if arrived else 99) if is_variable(*op_a) else raw_cycles(op_a, w, op_b, r))
        for v in b.writes:
            if (w.space, w.number) == (v.space, v.number):
                slow = 0 if arrived or ordered else 99
                need = max(need, slow if is_variable(*op_a) else waw_cycles(op_a, w, op_b, v))
    for r in a.reads:
        for v in b.writes:
            if (r.space, r.number) == (v.space, v.number):
                late = reads_late(*op_a, r)
                need = max(need, (0 if was_read else 99) if late else war_cycles(op_a, r, op_b, v))
    return need


def random_kernel(seed: int, *, loops: bool) -> Kernel:
    """Instructions of every kind of latency on few registers, so that they collide."""
    pick = random.Random(seed)
    k = Kernel({})
    pool = [R(n) for n in range(8)]
    predicates = [P(n) for n in range(2)]
    labels: list[tuple[str, int]] = []
    for n in range(24):
        a, b, c = pick.choice(pool), pick.choice(pool), pick.choice(pool)
        guard = pick.choice([None, None, None, pick.choice(predicates)])
        what = pick.randrange(13)
        if what == 0:
            k.MUFU_RCP(a, b, guard=guard)
        elif what == 1:
            k.LDS(a, Address(b), guard=guard)
        elif what == 2:
            k.STS(Address(b), a, guard=guard)
        elif what == 3:
            k.ISETP_LT_AND(pick.choice(predicates), PT, a, b)
        elif what == 4:
            k.IMAD_WIDE_U32(R(2 * pick.randrange(4)), a, b, RZ, guard=guard)
        elif what == 5:
            k.SEL(a, b, c, pick.choice(predicates))
        elif what == 6:
            k.SHFL_BFLY(PT, a, b, 1, 0x1F)
        elif what == 7:
            k.LDS_64(R(2 * pick.randrange(4)), Address(c))
        elif what == 8 and loops:
            label = k.label(f"l{n}")
            if pick.random() < 0.4:
                k.place(label)
            else:
                labels.append((label, n + pick.randrange(1, 5)))
            k.BRA(label, guard=pick.choice(predicates))
        elif what == 9:
            k.HADD2(a, b, c)
        else:
            k.emit(pick.choice(["FADD", "FMUL"]), (a, b, c), guard=guard)
        for label, at in [p for p in labels if p[1] <= n]:
            k.place(label)
            labels.remove((label, at))
    for label, _ in labels:
        k.place(label)
    k.finish()
    return k


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("loops", [False, True])
def test_random_programs_keep_every_distance_on_every_path(seed: int, loops: bool) -> None:
    k = random_kernel(seed, loops=loops)
    built = assemble(k.draft, k.table, registers=200)
    program, _ = schedule(built.program, built.pins)
    rows = list(program)
    for path, _ in zip(paths(program, 70), range(40), strict=False):
        assert not objections(rows, path)


@pytest.mark.parametrize("seed", range(20))
def test_what_depends_on_each_other_keeps_its_order(seed: int) -> None:
    k = random_kernel(seed, loops=True)
    built = assemble(k.draft, k.table, registers=200)
    program, origin = schedule(built.program, built.pins)
    assert sorted(set(origin)) == list(range(len(built.program)))
    rows = list(program)
    for j in range(len(rows)):
        for i in range(j):
            a, b = rows[i], rows[j]
            touched_a, touched_b = ({(t.space, t.number) for t in r.writes} for r in (a, b))
            read_a, read_b = ({(t.space, t.number) for t in r.reads} for r in (a, b))
            if touched_a & (touched_b | read_b) or read_a & touched_b:
                assert origin[i] <= origin[j]


def test_the_twin_objects_to_one_cycle_less() -> None:
    k = Kernel({})
    k.FADD(R(0), R(1), R(2))
    k.FADD(R(3), R(0), R(2))
    rows = scheduled(k)
    assert not objections(rows, [0, 1])
    rows[0] = rows[0].with_fields({"stall": 3})
    assert objections(rows, [0, 1]) == ["0 FADD -> 1 FADD: 3 of 4"]


@pytest.mark.parametrize(
    ("first", "second", "cycles"),
    [
        (("FADD", (R(0), R(1), R(2))), ("FADD", (R(3), R(0), R(2))), 4),
        (("IADD3", (R(0), R(1), R(2), RZ)), ("FADD", (R(3), R(0), R(2))), 5),
        (("FADD", (R(0), R(1), R(2))), ("IADD3", (R(3), R(0), R(2), RZ)), 5),
        (("IMAD.WIDE.U32", (R(0), R(2), R(3), RZ)), ("IMAD.WIDE.U32", (R(4), R(0), R(3), RZ)), 6),
        (("FADD", (R(0), R(1), R(2))), ("STS", (Address(R(0)), R(2))), 5),
        (("FADD", (R(0), R(1), R(2))), ("MUFU.RCP", (R(3), R(0))), 4),
        (("ISETP.LT.AND", (P(0), PT, R(1), R(2))), ("SEL", (R(3), R(1), R(2), P(0))), 4),
        (("FADD", (R(0), R(1), R(2))), ("FADD", (R(4), R(1), R(2))), 1),
    ],
)
def test_a_neighbour_stands_as_far_as_the_grid_says(
    first: tuple[str, tuple[object, ...]], second: tuple[str, tuple[object, ...]], cycles: int
) -> None:
    k = Kernel({})
    for mnemonic, operands in (first, second):
        k.emit(mnemonic, operands)
    assert scheduled(k)[0]["stall"] == cycles


def test_a_guard_waits_thirteen_cycles_for_its_predicate() -> None:
    k = Kernel({})
    k.ISETP_LT_AND(P(0), PT, R(1), R(2))
    k.FADD(R(0), R(1), R(2), guard=P(0))
    (compare, _) = scheduled(k)
    assert (compare["stall"], compare["keep"]) == (13, 0)


def test_a_slow_result_is_waited_for_by_its_first_reader_only() -> None:
    k = Kernel({})
    k.MUFU_RCP(R(0), R(1))
    k.FADD(R(4), R(0), R(2))
    k.FADD(R(5), R(0), R(2))
    slow, first, second = scheduled(k)
    assert slow["write_barrier"] != NO_BARRIER
    assert slow["stall"] >= SET_TO_WAIT
    assert first["wait"] == 1 << slow["write_barrier"]
    assert second["wait"] == 0


def test_a_late_read_is_guarded_where_its_operand_is_overwritten_and_nowhere_else() -> None:
    k = Kernel({})
    k.STS(Address(R(0)), R(1))
    k.STS(Address(R(0), 4), R(2))
    k.MOV(R(1), 5)
    first, second, move = scheduled(k)
    raised = [row["read_barrier"] for row in (first, second) if row["read_barrier"] != NO_BARRIER]
    assert len(raised) == 1  # the second store's covers the first, too: operands leave the queue in order
    assert move["wait"] == 1 << raised[0]


def test_a_result_nobody_reads_raises_nothing() -> None:
    k = Kernel({})
    k.MUFU_RCP(R(0), R(1))
    k.FADD(R(4), R(3), R(2))
    assert all(row["write_barrier"] == NO_BARRIER and row["wait"] == 0 for row in scheduled(k))


def test_both_sides_of_a_branch_wait() -> None:
    k = Kernel({})
    other = k.label("other")
    k.MUFU_RCP(R(0), R(1))
    k.BRA(other, guard=P(0))
    k.FADD(R(2), R(0), R(3))
    k.place(other)
    k.FADD(R(4), R(0), R(3))
    slow, _, side, joined = scheduled(k)
    assert side["wait"] == joined["wait"] == 1 << slow["write_barrier"]


def test_a_distance_reaches_around_a_loop() -> None:
    k = Kernel({})
    again = k.label("again")
    k.place(again)
    k.FADD(R(1), R(0), R(2))
    k.FADD(R(3), R(3), R(2))
    k.MUFU_RCP(R(4), R(3))
    k.IADD3(R(0), R(0), 1, RZ)
    k.BRA(again, guard=P(0))
    built_rows = scheduled(k)
    assert built_rows[-2]["stall"] + built_rows[-1]["stall"] >= 5  # IADD3 to the FADD at the loop's head


def test_more_results_than_scoreboards_share() -> None:
    k = Kernel({})
    for n in range(9):
        k.MUFU_RCP(R(n), R(20))
    for n in range(9):
        k.FADD(R(30 + n), R(n), R(20))
    rows = scheduled(k)
    assert not objections(rows, list(range(len(rows))))
    assert {row["write_barrier"] for row in rows[:9]} - {NO_BARRIER} <= set(range(6))


def test_loads_read_by_one_instruction_share_one_scoreboard() -> None:
    k = Kernel({})
    k.LDG_E(R(0), Address(R(10), wide=True))
    k.LDG_E(R(1), Address(R(10), 4, wide=True))
    k.FADD(R(2), R(0), R(1))
    rows = scheduled(k)
    assert rows[0]["write_barrier"] == rows[1]["write_barrier"]


def test_more_than_fifteen_cycles_take_a_nop() -> None:
    k = Kernel({})
    k.HMMA_16816_F32(R(0), R(8), R(12), RZ)
    k.FADD(R(20), R(0), R(21))
    rows = scheduled(k)
    assert [stem(row) for row in rows] == ["HMMA", "NOP", "FADD"]
    assert rows[0]["stall"] + rows[1]["stall"] == 24
    assert all(row["stall"] <= 15 for row in rows)


def test_a_pinned_stall_stays_right_or_wrong() -> None:
    k = Kernel({})
    k.FADD(R(0), R(1), R(2), stall=1)
    k.FADD(R(3), R(0), R(2), stall=9)
    first, second = scheduled(k)
    assert (first["stall"], second["stall"]) == (1, 9)


def test_pinned_barriers_and_waits_stay() -> None:
    k = Kernel({})
    k.MUFU_RCP(R(0), R(1), write_barrier=4)
    k.FADD(R(3), R(2), R(2), wait=0b10000)
    k.FADD(R(4), R(0), R(2))
    slow, wait, reader = scheduled(k)
    assert slow["write_barrier"] == 4
    assert wait["wait"] == 0b10000
    assert reader["wait"] == 0
