"""Every image lowered: the target's words give the same memory as SM86's, and its schedule is its own.

Strict mode by the target's latencies lands each result as late as the target's schedule permits.  Where SM86's stalls
are left as they were, the target's check or strict mode must object.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import harness
import numpy as np
import pytest
from numpy.typing import NDArray
from oracle import disassemble_kernel
from row_words import normal
from test_strict import memory_after

from coppelius import catalog
from coppelius.check.verdict import judge
from coppelius.isa.table import table_of
from coppelius.lowering.lower import Lowered, lower, translate
from coppelius.program.listing import listing_lines, listing_text, parse_listing
from coppelius.program.program import Program

TARGETS = ("sm121", "sm90", "sm80")
HALF = "bf16"
# the other targets' words are these (sm120), or SM86's under another schedule (sm89)
IMAGES = [i for i in catalog.IMAGES if i.identity != "adamw"]
# together they have every kind of instruction that a target changes; the others are slow to run twice
SAMPLE = ("add", "softmax-forward", "layernorm-backward", "argmax", "rotary-table", "random-normal", "qk-rope")


def rest_slow(images: Iterable[catalog.Image]) -> list[Any]:
    """The images as parameters, those that are no sample left out of an ordinary run."""
    return [pytest.param(i, id=i.identity, marks=() if i.identity in SAMPLE else pytest.mark.slow) for i in images]


@cache
def program(identity: str) -> Program:
    return parse_listing(harness.listing(identity, HALF))


@cache
def lowered(identity: str, target: str) -> Lowered:
    return lower(program(identity), target)


@cache
def reference(image: catalog.Image) -> dict[str, NDArray[np.uint8]]:
    return {name: array.copy() for name, array in memory_after(image, HALF, "fast").items()}


@pytest.mark.parametrize("image", rest_slow(catalog.IMAGES))
@pytest.mark.parametrize("target", TARGETS)
def test_the_target_accepts_the_words_and_prints_the_listing(image: catalog.Image, target: str) -> None:
    made = lowered(image.identity, target).program
    material = made.encode()
    assert parse_listing(listing_text(made)).encode() == material
    declared = {"half": HALF, "block_x": image.block_x}
    verdict = judge(material, declared, table=table_of(target))
    assert verdict["accepted"], verdict["hazards"]
    ours = [normal(line[22:]) for line in listing_lines(made)]
    theirs = [normal(text or "refused") for text in disassemble_kernel(material, target.upper())]
    assert ours == theirs


@pytest.mark.parametrize("image", rest_slow(IMAGES))
def test_sm121_gives_the_same_memory_with_its_schedule_honoured(image: catalog.Image) -> None:
    material = lowered(image.identity, "sm121").program.encode()
    after = memory_after(image, HALF, "strict", material=material, table=table_of("sm121"))
    for name, expected in reference(image).items():
        np.testing.assert_array_equal(after[name].view(np.uint8), expected.view(np.uint8), err_msg=name)


@pytest.mark.parametrize("target", TARGETS[1:])
@pytest.mark.parametrize("identity", SAMPLE[:4])
def test_other_targets_give_the_same_memory(identity: str, target: str) -> None:
    image = harness.image(identity)
    material = lowered(identity, target).program.encode()
    after = memory_after(image, HALF, "strict", material=material, table=table_of(target))
    for name, expected in reference(image).items():
        np.testing.assert_array_equal(after[name].view(np.uint8), expected.view(np.uint8), err_msg=name)


def test_stalls_left_as_sm86_has_them_are_caught() -> None:
    """The target's instructions under SM86's control words: too short for selects, and loads that nobody waits for."""
    refused = 0
    for identity in SAMPLE:
        native = program(identity)
        words, origin, _ = translate(native, "sm121")
        loads = len(words) - len(native)
        rows = [row.with_control(native[old].control) for row, old in zip(words, origin, strict=True)]
        # the loads themselves as SM86 would issue them, with no scoreboard
        rows[:loads] = [row.with_fields({"stall": 2, "keep": 1, "write_barrier": 7}) for row in rows[:loads]]
        rows = [r.with_fields({n: 0 for n in r.encoding.column if n.endswith(".reuse")}) for r in rows]
        verdict = judge(Program.of(rows, words.table).encode(), {}, table=words.table)
        refused += not verdict["accepted"]
    assert refused == len(SAMPLE)
