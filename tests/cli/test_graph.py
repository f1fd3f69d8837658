"""`coppelius graph`: every step in its state, as a picture and as data."""

import json
from collections import Counter
from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"


def states(checkout, *arguments):
    outcome = checkout.command("graph", "--json", *arguments)
    assert outcome.status == 0, outcome.output
    return {step["name"]: step["state"] for step in json.loads(outcome.output)["steps"]}


def test_states_before_and_after_a_build(mini):
    assert set(states(mini).values()) == {"stale"}
    mini.built()
    assert Counter(states(mini).values()) == {"up to date": 31}


def test_an_edit_makes_its_steps_stale_and_those_after_wait(built):
    built.edit("coppelius/kernels/plain.py", '"plain"', '"Plain"')
    found = states(built)
    assert [name for name, state in found.items() if state == "stale"] == ["emit:first", "emit:second"]
    waiting = [name for name, state in found.items() if state == "waiting"]
    assert sorted(waiting) == built.steps(
        "halve guard encode check", "first", "second", also=[*built.steps("place"), "arena"]
    )


def test_a_refused_image_is_shown(built):
    built.edit("coppelius/kernels/halves.py", "move half", "hazard")
    built.doit()
    found = states(built)
    assert [name for name, state in found.items() if state != "up to date"] == ["check:third", "arena"]
    assert (found["check:third"], found["arena"]) == ("refused", "stale")


def test_data_names_what_comes_before_and_why(built):
    built.edit("coppelius/program/encoding.py", "FILL =", "UNUSED = FILL =")
    steps = {step["name"]: step for step in json.loads(built.command("graph", "--json").output)["steps"]}
    assert steps["place:second"]["before"] == ["encode:second", "place:first"]
    assert steps["encode:second"]["causes"] == ["its code changed (coppelius/program/encoding.py)"]
    assert steps["check:second"]["causes"] == ["after encode:second"]


def test_the_picture_has_a_cell_for_every_step(built, tmp_path):
    built.edit("coppelius/kernels/halves.py", "move half", "copy half")
    picture = built.command("graph").output
    root = ElementTree.fromstring(picture)
    titles = [title.text for title in root.iter(f"{SVG}title")]
    assert len(titles) == 31
    assert "emit:third: stale\nits code changed (coppelius/kernels/halves.py)" in titles
    words = Counter(text.text for text in root.iter(f"{SVG}text"))
    assert (words["stale"], words["after stale"], words["1 stale"], words["third"]) == (1, 8, 1, 1)
    assert built.command("graph").output == picture
    file = tmp_path / "graph.svg"
    assert built.command("graph", "-o", str(file)).output == ""
    assert file.read_text() == picture


def test_the_picture_of_an_edit(mini):
    found = states(mini, "--affected", "coppelius/kernels/plain.py")
    assert [name for name, state in found.items() if state == "runs"] == ["emit:first", "emit:second"]
    assert found["emit:third"] == "untouched"
    picture = mini.command("graph", "--affected", "coppelius/kernels/plain.py").output
    assert "an edit of coppelius/kernels/plain.py" in picture
