"""Every image lowered: the target's words give the same memory as SM86's, and its schedule is its own.

Strict mode by the target's latencies lands each result as late as the target's schedule permits.  Where SM86's stalls
are left as they were, the target's check and strict mode must object, both or neither.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import harness
import numpy as np
import pytest
from native_stalls import native_stalls
from numpy.typing import NDArray
from oracle import disassemble_kernel
from row_words import normal
from test_strict import memory_after

from coppelius import catalog
from coppelius.check.verdict import judge
from coppelius.emulator.faults import Fault
from coppelius.isa.table import table_of
from coppelius.lowering.lower import Lowered, lower
from coppelius.program.listing import listing_lines, listing_text, parse_listing
from coppelius.program.program import Program

TARGETS = ("sm121", "sm90", "sm80")
# whose words and latencies are sm121's, and SM86's under two other names
TWINS = ("sm120", "sm89")
HALF = "bf16"
# together they have every kind of instruction that a target changes; the others are slow to run twice
SAMPLE = ("add", "softmax-forward", "layernorm-backward", "argmax", "rotary-table", "random-normal", "qk-rope")


def rest_slow(images: Iterable[catalog.Image]) -> list[Any]:
    """The images as parameters, those that are no sample left out of an ordinary run."""
    return [pytest.param(i, id=i.identity, marks=() if i.identity in SAMPLE else pytest.mark.slow) for i in images]


def runs() -> list[Any]:
    """(target, image, format): an ordinary run has each image on sm121 in one format, and some on other targets."""
    out = []
    for target in (*TARGETS, *TWINS):
        for number, image in enumerate(catalog.IMAGES):
            for half in harness.HALVES:
                kept = half == harness.HALVES[number % 2] and (target == "sm121" or image.identity in SAMPLE[:4])
                marks = () if kept and target in TARGETS else pytest.mark.slow
                out.append(pytest.param(target, image, half, id=f"{target}-{image.identity}-{half}", marks=marks))
    return out


@cache
def program(identity: str, half: str = HALF) -> Program:
    return parse_listing(harness.listing(identity, half))


@cache
def lowered(identity: str, target: str, half: str = HALF) -> Lowered:
    return lower(program(identity, half), target)


@cache
def reference(image: catalog.Image, half: str) -> dict[str, NDArray[np.uint8]]:
    return {name: array.copy() for name, array in memory_after(image, half, "fast").items()}


@pytest.mark.parametrize("image", rest_slow(catalog.IMAGES))
@pytest.mark.parametrize("target", [*TARGETS, *(pytest.param(t, marks=pytest.mark.slow) for t in TWINS)])
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


@pytest.mark.parametrize(("target", "image", "half"), runs())
def test_the_memory_is_the_same_with_the_schedule_honoured(target: str, image: catalog.Image, half: str) -> None:
    material = lowered(image.identity, target, half).program.encode()
    if target == "sm120":
        assert material == lowered(image.identity, "sm121", half).program.encode()
        return
    after = memory_after(image, half, "strict", material=material, table=table_of(target))
    for name, expected in reference(image, half).items():
        np.testing.assert_array_equal(after[name].view(np.uint8), expected.view(np.uint8), err_msg=name)


def under_native_stalls(identity: str, target: str) -> Program:
    return native_stalls(program(identity), lowered(identity, target))


def fixed_rules(material: bytes, target: str) -> set[str]:
    """The rules by which the target's check of distances objects."""
    verdict = judge(material, {}, table=table_of(target))
    return {h["rule"] for h in verdict["hazards"] if h["check"] == "fixed_latency"}


@pytest.mark.parametrize("image", rest_slow(catalog.IMAGES))
def test_native_stalls_are_named_where_they_are_too_short(image: catalog.Image) -> None:
    material = under_native_stalls(image.identity, "sm121").encode()
    if not fixed_rules(material, "sm121"):
        memory_after(image, HALF, "strict", material=material, table=table_of("sm121"), blocks=[0])
        return
    with pytest.raises(Fault, match="stale read"):
        memory_after(image, HALF, "strict", material=material, table=table_of("sm121"), blocks=[0])


def test_native_stalls_are_too_short_in_most_images() -> None:
    found = {i: fixed_rules(under_native_stalls(i, "sm121").encode(), "sm121") for i in SAMPLE}
    assert sum("read after write" in rules for rules in found.values()) > len(SAMPLE) / 2, found


# SM80's multiplications are two cycles further from its conversions and special functions
@pytest.mark.parametrize("identity", ["random-normal", "embedding-scatter"])
def test_native_stalls_are_named_on_sm80(identity: str) -> None:
    material = under_native_stalls(identity, "sm80").encode()
    assert fixed_rules(material, "sm80")
    with pytest.raises(Fault, match=r"stale read|early overwrite"):
        memory_after(harness.image(identity), HALF, "strict", material=material, table=table_of("sm80"), blocks=[0])
