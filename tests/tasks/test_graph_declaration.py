"""The declared graph: one row a stage gives every step, and the same graph answers questions."""

import networkx
import pytest

from coppelius.isa.refusal import Refusal
from tasks.graph import SM86, TARGETS, build_graph
from tasks.plan import Plan


def rows(*identities):
    whole = {"kernel": "coppelius.kernels.k:k", "options": {}, "arguments": [], "registers": 8, "block_x": 32,
             "shared_bytes": 0, "declaration": {}}  # fmt: skip
    return [{"identity": identity, **whole} for identity in identities]


@pytest.fixture(params=sorted(TARGETS))
def graph(request):
    return build_graph(rows("a", "b", "c"), Plan(targets=(request.param,)))


def test_steps_come_after_what_they_read(graph):
    seen = set()
    for step in graph.steps.values():
        assert set(graph.before(step)) <= seen
        seen.add(step.name)


def test_every_input_is_made_by_a_step(graph):
    for step in graph.steps.values():
        assert [path for path, _ in step.inputs if path not in graph.producer] == []


def test_the_digraph_is_the_graph(graph):
    digraph = graph.as_digraph()
    assert networkx.is_directed_acyclic_graph(digraph)
    assert set(digraph.nodes) == set(graph.steps)
    assert all(set(digraph.predecessors(name)) == set(graph.before(step)) for name, step in graph.steps.items())


def test_placement_is_a_chain_and_the_arena_reads_all():
    graph = build_graph(rows("a", "b"), Plan())
    assert graph.before(graph.steps["place:a"]) == ["encode:a"]
    assert graph.before(graph.steps["place:b"]) == ["encode:b", "place:a"]
    assert dict(graph.steps["place:b"].inputs) == {
        "build/sm86/b/material.bin": "length",
        "build/sm86/a/place.json": "content",
    }
    made = [f"{stage}:{image}" for stage in ("encode", "place", "check") for image in "ab"]
    assert graph.before(graph.steps["arena"]) == made
    assert graph.after(["check:a"]) == ["arena", "cubin"]
    assert graph.after(["encode:b"]) == ["check:b", "place:b", "arena", "cubin"]


def test_parameters_are_what_the_stage_reads():
    steps = build_graph(rows("a"), Plan(half="f16")).steps
    assert steps["halve:a"].parameters == {"half": "f16", "target": "sm86"}
    assert steps["guard:a"].parameters == {"target": "sm86"}
    assert set(steps["emit:a"].parameters) == {"target", "kernel", "options", "arguments", "registers", "block_x"}
    assert steps["emit:a"].code == ("tasks.emit", "coppelius.emit", "coppelius.kernels.k")


def test_a_stage_is_a_row(monkeypatch):
    """Another target's own stages: names carry the target, nothing else changes."""
    monkeypatch.setitem(TARGETS, "sm121", SM86)
    graph = build_graph(rows("a"), Plan(targets=("sm86", "sm121")))
    assert graph.before(graph.steps["encode_sm121:a"]) == ["guard_sm121:a"]
    assert graph.steps["encode_sm121:a"].outputs == ("build/sm121/a/material.bin",)
    assert graph.steps["arena_sm121"].parameters["target"] == "sm121"


@pytest.mark.parametrize("identity", ["", "a/b", "a=b", "a:b", ".a", "-a", "a b", "*"])
def test_an_identity_that_names_no_folder_is_refused(identity):
    with pytest.raises(Refusal, match="cannot name a folder and a step"):
        build_graph(rows(identity), Plan())


def test_no_image_is_a_graph_too():
    assert list(build_graph([], Plan()).steps) == ["arena"]


def test_choices_are_an_input_of_the_tiled_products_and_of_the_arena():
    made = rows("a", "b")
    made[1]["kernel"] = "coppelius.kernels.tiled.product:tiled_product"
    graph = build_graph(made, Plan())
    assert [name for name, step in graph.steps.items() if "choices" in graph.before(step)] == ["emit:b", "arena"]
    assert graph.steps["choices"].outputs == ("build/sm86/choices.json",)
    assert graph.steps["arena"].inputs[-1] == ("build/sm86/choices.json", "content")
    assert "choices" not in build_graph(rows("a"), Plan()).steps
