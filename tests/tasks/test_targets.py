"""Other targets beside the native one, or alone: which steps there are, and which of them an edit runs."""

import json

import pytest

from coppelius.isa.refusal import Refusal
from tasks.graph import TARGETS, build_graph
from tasks.plan import Plan, read_plan

BOTH = '["sm86", "sm121"]'


def of_sm121(steps):
    return [name for name in steps if "_sm121" in name]


def test_a_build_publishes_a_release_a_target(mini):
    mini.plan(targets=BOTH)
    outcome = mini.build()
    assert outcome.status == 0, outcome.output
    stages = "lower_sm121 encode_sm121 check_sm121 place_sm121"
    assert of_sm121(outcome.ran) == mini.steps(stages, also=["arena_sm121", "cubin_sm121"])
    manifest = json.loads((mini.root / "build/sm121/manifest.json").read_text())
    assert manifest["target"] == "sm121"
    assert [image["identity"] for image in manifest["images"]] == ["first", "second", "third", "fourth", "fifth"]


def test_an_edit_lowers_its_image_alone(mini):
    mini.plan(targets=BOTH)
    mini.built()
    mini.edit("coppelius/kernels/halves.py", "half", "other half")
    ran = mini.build().ran
    lowered = [name for name in ran if name.startswith("lower_sm121")]
    assert lowered == [name.replace("emit", "lower_sm121") for name in ran if name.startswith("emit")] != []


def test_a_target_alone_builds_the_native_listings_and_no_more(mini):
    mini.plan(targets='["sm121"]')
    ran = mini.build().ran
    assert not [name for name in ran if name.startswith(("encode:", "check:", "place:"))]
    assert mini.steps("emit halve guard") == [name for name in ran if "_" not in name]
    assert not (mini.root / "build/sm86/arena.bin").exists()
    assert (mini.root / "build/sm121/arena.bin").exists()


def test_a_refused_word_of_a_target_refuses_both_releases(mini):
    mini.plan(targets=BOTH)
    mini.edit("coppelius/kernels/halves.py", "move half", "hazard")
    outcome = mini.build()
    assert outcome.status == 1
    assert "is a hazard" in outcome.output
    assert not (mini.root / "build/sm121/arena.bin").exists()


def test_every_target_has_a_graph():
    row = {"identity": "a", "kernel": "coppelius.kernels.k:k", "options": {}, "arguments": [], "registers": 24,
           "block_x": 32, "shared_bytes": 0, "declaration": {}}  # fmt: skip
    graph = build_graph([row], Plan(targets=tuple(TARGETS)))
    assert graph.steps["lower_sm90:a"].inputs == (("build/sm86/a/guard.sass", "content"),)
    assert list(graph.steps)[-2:] == ["arena_sm80", "cubin_sm80"]


def test_an_unknown_target_is_refused_by_name(tmp_path):
    with pytest.raises(Refusal, match="target 'sm75': not one we build; known: sm86, sm121"):
        read_plan(tmp_path, {"targets": "sm75"}, tuple(TARGETS))
