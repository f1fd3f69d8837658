"""Registers by lifetime, against a slow twin: liveness by walking every path, then all pairs compared."""

import random

import pytest

from coppelius.builder.allocation import allocate
from coppelius.builder.assemble import assemble
from coppelius.builder.draft import Draft
from coppelius.builder.flow import Liveness, successors
from coppelius.builder.kernel import Kernel
from coppelius.builder.registers import FIRST_VIRTUAL, Vector
from coppelius.isa.operands import PT, RZ, P, R
from coppelius.isa.refusal import Refusal


def kernel() -> Kernel:
    return Kernel({})


def live_lanes(draft: Draft) -> dict[tuple[str, int], set[int]]:
    """The twin: lane -> points where it is live (2i before, 2i+1 after i), by walking back from each read.

    A guarded write stops the walk only where all reads of the lane stand under that guard.
    """
    follow = successors(draft)
    before: list[list[int]] = [[] for _ in draft.items]
    for i, after in enumerate(follow):
        for j in after:
            before[j].append(i)
    guards: dict[tuple[str, int], set[tuple[int, int]]] = {}
    for item in draft.items:
        for touch in item.reads:
            guards.setdefault((touch.space, touch.number), set()).add(item.guard)
    live: dict[tuple[str, int], set[int]] = {}
    for i, item in enumerate(draft.items):
        for touch in item.writes:
            if touch.number >= FIRST_VIRTUAL:
                live.setdefault((touch.space, touch.number), set()).add(2 * i + 1)
        for touch in item.reads:
            if touch.number < FIRST_VIRTUAL:
                continue
            lane = touch.space, touch.number
            points, queue = live.setdefault(lane, set()), [i]
            while queue:
                at = queue.pop()
                if 2 * at in points and at != i:
                    continue
                points.add(2 * at)
                for earlier in before[at]:
                    points.add(2 * earlier + 1)
                    writer = draft.items[earlier]
                    written = lane in {(t.space, t.number) for t in writer.writes}
                    stops = written and (not writer.guarded or guards[lane] <= {writer.guard})
                    if not stops and 2 * earlier not in points:
                        queue.append(earlier)
    return live


def conflicts(draft: Draft, live: dict[tuple[str, int], set[int]], placed: dict[str, tuple[str, int]]) -> list[str]:
    """Pairs of named registers that share a machine register at a point where both are live."""
    virtuals = [v for v in draft.names.virtuals if v.name in placed]
    points = {
        v.name: set().union(*(live.get((v.space, v.first + lane), set()) for lane in range(v.width))) for v in virtuals
    }
    found = []
    for n, a in enumerate(virtuals):
        for b in virtuals[n + 1 :]:
            (space, first), (other, second) = placed[a.name], placed[b.name]
            overlap = space == other and first < second + b.width and second < first + a.width
            if overlap and points[a.name] & points[b.name]:
                found.append(f"{a.name} and {b.name}")
    return found


def random_kernel(seed: int) -> Kernel:
    """Sums, wide products, comparisons, guarded writes and branches both ways."""
    pick = random.Random(seed)
    k = kernel()
    singles: list[R] = [k.move(f"start{n}", n) for n in range(3)]
    predicates: list[P] = [k.compare("start", "LT", singles[0], 3)]
    labels: list[tuple[str, int]] = []
    for n in range(30):
        a, b = pick.choice(singles), pick.choice(singles)
        guard = pick.choice([None, None, pick.choice(predicates), ~pick.choice(predicates)])
        what = pick.randrange(6)
        if what == 0:
            pair = k.IMAD_WIDE_U32(f"pair{n}", a, b, RZ)
            singles += [pair[0], pair[1]]
        elif what == 1:
            predicates.append(k.compare(f"p{n}", "LT", a, b))
        elif what == 2 and len(predicates) > 5:
            predicates.pop(0)
        elif what == 3:
            label = k.label(f"label{n}")
            labels.append((label, n + pick.randrange(1, 6)))
            if pick.random() < 0.3:
                k.place(label)
                labels.pop()
            k.BRA(label, guard=pick.choice(predicates))
        elif what == 4:
            k.IADD3(pick.choice(singles), a, b, RZ, guard=guard)
        else:
            singles.append(k.IADD3(f"s{n}", a, b, RZ))
        for label, at in [p for p in labels if p[1] <= n]:
            k.place(label)
            labels.remove((label, at))
        singles, predicates = singles[-12:], predicates[-4:]
    for label, _ in labels:
        k.place(label)
    k.finish()
    return k


@pytest.mark.parametrize("seed", range(40))
def test_no_two_live_registers_share_a_place(seed: int) -> None:
    k = random_kernel(seed)
    live = live_lanes(k.draft)
    placed = allocate(k.draft)
    assert not conflicts(k.draft, live, placed)
    for virtual in k.draft.names.virtuals:
        if virtual.name in placed:
            assert placed[virtual.name][1] % virtual.width == 0


@pytest.mark.parametrize("seed", range(40))
def test_liveness_is_the_twins(seed: int) -> None:
    draft = random_kernel(seed).draft
    live = live_lanes(draft)
    got = Liveness(draft).points
    for virtual, points in zip(draft.names.virtuals, got, strict=True):
        lanes = [live.get((virtual.space, virtual.first + lane), set()) for lane in range(virtual.width)]
        assert {n for n in range(2 * len(draft.items)) if points >> n & 1} == set().union(*lanes), virtual.name


def test_the_twin_objects_where_two_share() -> None:
    k = kernel()
    a = k.move("a", 1)
    b = k.move("b", 2)
    k.IADD3("c", a, b, RZ)
    k.finish()
    assert conflicts(k.draft, live_lanes(k.draft), {"a": ("R", 0), "b": ("R", 0)}) == ["a and b"]


def test_registers_that_are_never_live_together_share() -> None:
    k = kernel()
    for n in range(20):
        x = k.move(f"x{n}", n)
        k.IADD3(f"y{n}", x, 1, RZ)
    k.finish()
    placed = allocate(k.draft)
    assert {index for _, index in placed.values()} == {0}


def test_a_pin_is_kept_and_others_keep_off_it() -> None:
    k = kernel()
    pinned = k.register("pinned", at=0)
    k.MOV(pinned, 7)
    other = k.move("other", 8)
    k.IADD3("sum", pinned, other, RZ)
    k.finish()
    placed = allocate(k.draft)
    assert placed["pinned"] == ("R", 0)
    assert placed["other"] == ("R", 1)


def test_a_pin_on_a_taken_place_is_refused_by_name() -> None:
    k = kernel()
    for name in ("first", "second"):
        k.MOV(k.register(name, at=4), 1)
    k.IADD3("sum", R(FIRST_VIRTUAL), R(FIRST_VIRTUAL + 1), RZ)
    k.finish()
    with pytest.raises(Refusal, match="register second: no place for 1 R at 4"):
        allocate(k.draft)


def test_a_kernel_over_its_budget_is_refused_by_the_register_that_finds_no_place() -> None:
    k = kernel()
    values = [k.move(f"v{n}", n) for n in range(7)]
    total = values[0]
    for n, value in enumerate(values[1:]):
        total = k.IADD3(f"t{n}", total, value, RZ)
    k.finish()
    with pytest.raises(Refusal, match="register v6: no place for 1 R among 6"):
        assemble(k.draft, k.table, registers=6)


def test_the_budget_that_just_holds_is_enough() -> None:
    k = kernel()
    values = [k.move(f"v{n}", n) for n in range(7)]
    total = values[0]
    for n, value in enumerate(values[1:]):
        total = k.IADD3(f"t{n}", total, value, RZ)
    k.finish()
    assert max(t.number for i in assemble(k.draft, k.table, registers=7).program for t in i.writes) == 6


def test_a_register_read_and_never_written_is_refused_by_name() -> None:
    k = kernel()
    quad = k.vector("quad", 4)
    for lane in range(3):
        k.MOV(quad[lane], RZ)
    k.IADD3("sum", quad[0], quad[3], RZ)
    k.finish()
    with pytest.raises(Refusal, match="register quad, lane 3, is read and never written"):
        allocate(k.draft)


def test_a_guarded_write_keeps_the_earlier_value_alive() -> None:
    k = kernel()
    p = k.compare("p", "LT", RZ, 3)
    x = k.move("x", 1)
    y = k.move("y", 2)
    k.MOV(x, 5, guard=p)
    k.IADD3("sum", x, y, RZ)
    k.finish()
    placed = allocate(k.draft)
    assert placed["x"] != placed["y"]


def test_a_value_carried_around_a_loop_keeps_its_place() -> None:
    k = kernel()
    count = k.move("count", 4)
    total = k.move("total", 0)
    again = k.label("again")
    k.place(again)
    step = k.move("step", 3)
    k.IADD3(total, total, step, RZ)
    k.IADD3(count, count, -1, RZ)
    k.BRA(again, guard=k.compare("more", "NE", count, RZ))
    k.finish()
    placed = allocate(k.draft)
    assert len({placed[n] for n in ("count", "total", "step")}) == 3


def test_falling_off_the_end_and_a_label_never_placed_are_refused() -> None:
    k = kernel()
    k.move("x", 1)
    with pytest.raises(Refusal, match="runs off its end"):
        allocate(k.draft)
    k.BRA("nowhere")
    with pytest.raises(Refusal, match="label nowhere is never placed"):
        allocate(k.draft)


def test_a_vector_gives_its_lanes_and_pairs_and_no_others() -> None:
    quad = Vector(1000, width=4)
    assert (quad[3].index, quad.pair(2).index, len(quad)) == (1003, 1002, 4)
    with pytest.raises(IndexError, match="lane 4 of 4"):
        quad[4]
    with pytest.raises(IndexError, match="even lane"):
        quad.pair(1)


def test_guards_and_predicates_have_a_file_of_their_own() -> None:
    k = kernel()
    p = k.compare("p", "LT", RZ, 3)
    k.MOV("x", 1, guard=p)
    k.PLOP3_LUT("q", PT, p, PT, PT, 0xE0, 0)
    k.finish()
    assert allocate(k.draft)["p"] == ("P", 0)
