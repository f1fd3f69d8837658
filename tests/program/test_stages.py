"""Stages as data: what comes before what, and how many values are alive."""

from __future__ import annotations

import itertools
import random

import pytest

from coppelius.program.stages import Stages, in_turn


def drawn(seed: int) -> Stages:
    dice = random.Random(seed)
    count = dice.randrange(1, 7)
    stage = [dice.randrange(4) for _ in range(count)]
    least = min(stage)
    return Stages(tuple(dice.sample(range(count), count)), tuple(s - least for s in stage))


def places(stages: Stages, iterations: int) -> dict[tuple[int, int], int]:
    """The twin: every phase written out; (iteration, instruction) -> place."""
    issued = [
        (phase - stages.stage[i], i)
        for phase in range(iterations + stages.count)
        for i in stages.order
        if 0 <= phase - stages.stage[i] < iterations
    ]
    return {what: place for place, what in enumerate(issued)}


@pytest.mark.parametrize("seed", range(40))
def test_between_is_what_the_phases_written_out_say(seed: int) -> None:
    stages = drawn(seed)
    count, base = len(stages.order), 5
    place = places(stages, 14)
    for a, b in itertools.product(range(count), repeat=2):
        later = [d for d in range(-4, 6) if place[base, a] < place[base + d, b]]
        assert stages.between(a, b) == min(later)


@pytest.mark.parametrize("seed", range(40))
def test_copies_keep_every_value_until_it_is_read(seed: int) -> None:
    stages, dice = drawn(seed), random.Random(seed)
    touches = [(i, dice.random() < 0.5) for i in range(len(stages.order))]
    copies = stages.copies(touches)
    place = places(stages, 14)

    def kept(turns: int) -> bool:
        pairs = [(a, b) for a, w in touches for b, v in touches if w or v]
        return all(place[4, a] < place[4 + turns, b] for a, b in pairs)

    assert kept(copies)
    assert copies == 1 or not kept(copies - 1)


def test_in_turn_is_one_stage() -> None:
    assert in_turn(3) == Stages((0, 1, 2), (0, 0, 0))
    assert in_turn(3).count == 1
