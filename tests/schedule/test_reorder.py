"""Order within blocks: dependences as a twin sees them, and the same memory in the emulator."""

from __future__ import annotations

from collections.abc import Callable

import harness
import numpy as np
import pytest
from vendor_schedule import cycles, hazards, stripped

from coppelius.program.flow import blocks, stem
from coppelius.program.listing import listing_lines, parse_listing
from coppelius.program.program import Instruction, Program
from coppelius.schedule.schedule import schedule

MEMORY = ("LDG", "STG", "LDS", "STS", "BAR")


def conflict(a: Instruction, b: Instruction) -> bool:
    """The twin: whether two instructions may not change places."""
    touched = [({(t.space, t.number) for t in r.reads}, {(t.space, t.number) for t in r.writes}) for r in (a, b)]
    (reads_a, writes_a), (reads_b, writes_b) = touched
    if writes_a & (reads_b | writes_b) or reads_a & writes_b:
        return True
    kinds = stem(a), stem(b)
    if "BAR" in kinds:
        return all(k in (*MEMORY, "SHFL", "BRA", "EXIT") or k.startswith("U") for k in kinds)
    stores = [k in ("STG", "STS") for k in kinds]
    same_space = kinds[0][2:] == kinds[1][2:] and kinds[0] in MEMORY and kinds[1] in MEMORY
    return (any(stores) and same_space) or "BRA" in kinds or "EXIT" in kinds


@pytest.mark.parametrize("seed", range(60))
def test_what_depends_on_each_other_keeps_its_order(seed: int, random_program: Callable[..., Program]) -> None:
    program = random_program(3000 + seed, 50)
    done, origin = schedule(program, [{}] * len(program), reorder=True)
    assert hazards(done) == []
    place = {old: new for new, old in enumerate(origin)}
    rows = list(program)
    for block in blocks(program):
        for i in range(block.start, block.end):
            assert done[place[i]].encoding is rows[i].encoding
            for j in range(i + 1, block.end):
                assert place[i] < place[j] or not conflict(rows[i], rows[j]), (listing_lines(program)[i], i, j)


def test_loads_go_first_and_their_readers_last(scheduled_lines: Callable[..., list[str]]) -> None:
    text = """
        LDG.E R0, [R8.64]
        FADD R1, R0, R0
        LDG.E R2, [R10.64]
        FADD R3, R2, R2
        IADD3 R4, R5, R6, RZ
        EXIT"""
    texts = [line.split("] ", 1)[1].split(",")[0] for line in scheduled_lines(text, reorder=True)]
    assert texts == ["LDG.E R0", "LDG.E R2", "IADD3 R4", "FADD R1", "FADD R3", "EXIT"]


# fmt: off
FENCED = {
    "a store and a load that may meet": "STG.E [R8.64], R0\nLDG.E R1, [R10.64]",
    "a load before BAR": "LDS R1, [R9]\nBAR.SYNC.DEFER_BLOCKING 0x0",
    "an access after BAR": "BAR.SYNC.DEFER_BLOCKING 0x0\nLDG.E R1, [R10.64]",
    "clocks": "CS2R R0, SR_CLOCKLO\nLDG.E R3, [R10.64]",
    "what the warp does together": "WARPSYNC 0xffffffff\nSHFL.BFLY PT, R0, R1, 0x1, 0x1f",
    "uniform registers": "WARPSYNC 0xffffffff\nULDC UR4, c[0x0][0x160]",
}
# fmt: on


@pytest.mark.parametrize("name", FENCED)
def test_fences(name: str, program_of: Callable[[str], Program]) -> None:
    # much before the pair that would be worth passing, much after it that waits for its second
    first = "MUFU.RCP R20, R21\nFADD R20, R20, R20\nFADD R20, R20, R20"
    program = program_of(f"{first}\n{FENCED[name]}\nFADD R30, R1, R3\nFADD R30, R30, R0\nEXIT")
    _, origin = schedule(program, [{}] * len(program), reorder=True)
    assert origin.index(3) < origin.index(4)


def test_never_slower_than_the_given_order(random_program: Callable[..., Program]) -> None:
    quicker = 0
    for seed in range(30):
        program = random_program(4000 + seed, 60)
        plain, moved = (schedule(program, [{}] * len(program), reorder=r)[0] for r in (False, True))
        pairs = list(zip(cycles(moved), cycles(plain), strict=True))
        assert all(a <= b for a, b in pairs)
        quicker += any(a < b for a, b in pairs)
    assert quicker > 20


def test_the_same_order_every_time(random_program: Callable[..., Program]) -> None:
    program = random_program(9, 200)
    found = [schedule(program, [{}] * len(program), reorder=True) for _ in range(2)]
    assert found[0] == found[1]


@pytest.mark.parametrize("reorder", [False, True])
@pytest.mark.parametrize("half", harness.HALVES)
def test_images_compute_the_same_with_their_schedule_honoured(
    half: str, reorder: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(5)
    scores = random.standard_normal((1, 1024, 1024)).astype(np.float32)
    given = {"scores": scores, "scale": 0.125, "blocks": [0, 7, 100]}
    expected = harness.run("softmax-forward", half, probs=(1, 1024, 1024), **given)["probs"]
    program = stripped(parse_listing(harness.listing("softmax-forward", half)))
    anew, _ = schedule(program, [{}] * len(program), reorder=reorder)
    monkeypatch.setattr(harness, "material", lambda *_: anew.encode())
    found = harness.run("softmax-forward", half, probs=(1, 1024, 1024), mode="strict", **given)["probs"]
    np.testing.assert_array_equal(found, expected)
