"""The verdict as data and as words: what a build keeps and what a reader sees."""

import json
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from coppelius.check.verdict import describe, judge
from coppelius.isa.codec import decode
from coppelius.isa.refusal import Refusal
from coppelius.isa.table import sm86
from coppelius.isa.word import to_bytes

Verdict = Callable[..., dict[str, Any]]

HAZARDOUS = """
    [B------:R-:W-:-:S02] FADD R4, R1, R2
    [B------:R-:W-:-:S02] FADD R5, R4, R2
    [B------:R-:W-:Y:S05] EXIT
"""
ACCEPTED = HAZARDOUS.replace("S02] FADD R4", "S04] FADD R4")


def test_an_accepted_verdict_in_full(verdict_of: Verdict) -> None:
    assert verdict_of(ACCEPTED, registers=8, shared_bytes=0, block_x=128, half="bf16") == {
        "accepted": True,
        "checks": dict.fromkeys(("scoreboard", "fixed_latency", "resources", "words"), "accepted"),
        "hazards": [],
        "notes": [],
        "registers": 6,
        "demand": {"general": 6, "uniform": 0, "predicates": 0, "uniform_predicates": 0, "barriers": 0},
        "instructions": 3,
        "shared_bytes": 0,
    }


def test_a_hazard_in_full(verdict_of: Verdict) -> None:
    verdict = verdict_of(HAZARDOUS)
    assert json.loads(json.dumps(verdict)) == verdict
    assert verdict["checks"] == {
        "scoreboard": "accepted", "fixed_latency": "refused", "resources": "accepted", "words": "accepted",
    }  # fmt: skip
    assert verdict["hazards"] == [
        {
            "ordinal": 1, "cause": 0, "offset": 16, "cause_offset": 0, "check": "fixed_latency",
            "rule": "read after write", "register": "R4", "needed": 4, "given": 2,
            "fact": "R4 of FADD needs 4 cycles (fma to fma), has 2",
            "remedy": "add 2 to the stalls between them",
            "instruction": "FADD R5, R4, R2", "cause_instruction": "FADD R4, R1, R2",
        }
    ]  # fmt: skip


def test_a_hazard_is_three_lines(verdict_of: Verdict) -> None:
    lines = json.dumps({"files": ["coppelius/kernels/add.py"], "lines": [[0, 30, ""], [0, 31, ""], [0, 40, "tail"]]})
    assert describe("add", verdict_of(HAZARDOUS), [1, 2, 2], lines) == [
        "add: 0x0010 FADD R5, R4, R2 (coppelius/kernels/add.py:40, tail)"
        " after 0x0000 FADD R4, R1, R2 (coppelius/kernels/add.py:31)",
        "  read after write: R4 of FADD needs 4 cycles (fma to fma), has 2",
        "  remedy: add 2 to the stalls between them",
    ]
    assert describe("add", verdict_of(HAZARDOUS))[0] == "add: 0x0010 FADD R5, R4, R2 after 0x0000 FADD R4, R1, R2"
    assert describe("add", verdict_of(ACCEPTED)) == []


def test_all_hazards_are_listed(verdict_of: Verdict) -> None:
    text = HAZARDOUS.replace("FADD R5, R4, R2", "MUFU.RCP R250, R4") + "[B------:R-:W-:-:S02] NOP"
    checks = verdict_of(text, registers=24)
    assert [(h["check"], h["rule"], h["ordinal"]) for h in checks["hazards"]] == [
        ("resources", "registers", 1),
        ("fixed_latency", "read after write", 1),
    ]


def test_a_word_that_does_not_decode_refuses_everything(assemble: Callable[[str], bytes]) -> None:
    material = assemble(ACCEPTED)
    verdict = judge(material[:16] + b"\xff" * 16 + material[32:], {})
    assert set(verdict["checks"].values()) == {"refused"}
    assert [(h["rule"], h["ordinal"]) for h in verdict["hazards"]] == [("undecodable", 1)]
    assert describe("x", verdict)[0].startswith("x: 0x0010")


def test_material_is_whole_words() -> None:
    with pytest.raises(Refusal, match="17 bytes"):
        judge(b"\0" * 17, {})
    assert [h["rule"] for h in judge(b"", {})["hazards"]] == ["empty"]


def test_any_words_that_decode_are_judged() -> None:
    """Nonsense of every encoding: a verdict, never an error, and the same one each time."""
    dice = random.Random(5)
    table = sm86()
    for _ in range(40):
        words = []
        for encoding in dice.choices(table.encodings, k=60):
            number = encoding.value | dice.getrandbits(128) & ~encoding.mask
            words.append([number & 0xFFFF_FFFF_FFFF_FFFF, number >> 64])
        made = np.array(words, dtype=np.uint64)
        kept = made[decode(table, made).uids >= 0]
        verdict = judge(to_bytes(kept), {"registers": 64, "shared_bytes": 1024, "block_x": 256, "half": "bf16"})
        assert verdict["checks"]["words"] == "accepted"
        assert verdict == judge(to_bytes(kept), {"registers": 64, "shared_bytes": 1024, "block_x": 256, "half": "bf16"})
        assert len(describe("x", verdict)) == 3 * len(verdict["hazards"])


# fmt: off
NOTES = {
    "idle wait": "[B-----5:R-:W-:-:S01] NOP",
    "in flight": "[B------:R-:W0:-:S02] MUFU.RCP R4, R1\n[B------:R-:W-:Y:S05] EXIT",
    "shared scoreboard": "[B------:R-:W0:-:S02] MUFU.RCP R4, R1\n[B------:R-:W0:-:S02] LDS R5, [R1]",
    "filler": "[B------:R0:W-:-:S02] STS [R1], R4\n[B------:R0:W-:-:S02] LDGSTS.E [R1+0x10], [R2.64]",
}
# fmt: on


@pytest.mark.parametrize("rule", NOTES)
def test_notes_are_no_hazards(rule: str, verdict_of: Verdict) -> None:
    verdict = verdict_of(NOTES[rule] + "\n[B012345:R-:W-:Y:S05] EXIT")
    assert verdict["accepted"]
    assert rule in [note["rule"] for note in verdict["notes"]]


def test_three_fillers_before_a_copy_are_enough(verdict_of: Verdict) -> None:
    store, copy = NOTES["filler"].split("\n")
    filler = "[B------:R-:W-:-:S01] @!PT LDS RZ, [RZ]"
    for count, expected in ((2, True), (3, False)):
        verdict = verdict_of("\n".join([store, *[filler] * count, copy, "[B------:R-:W-:Y:S05] EXIT"]))
        assert ("filler" in [note["rule"] for note in verdict["notes"]]) is expected
