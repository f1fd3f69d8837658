"""`coppelius graph`: every step in its state, as a picture and as data."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

REPOSITORY = Path(__file__).resolve().parents[2]
SVG = "{http://www.w3.org/2000/svg}"


def states(checkout, *arguments):
    outcome = checkout.command("graph", "--json", *arguments)
    assert outcome.status == 0, outcome.output
    return {step["name"]: step["state"] for step in json.loads(outcome.output)["steps"]}


def test_states_before_and_after_a_build(mini):
    assert set(states(mini).values()) == {"stale"}
    mini.built()
    assert Counter(states(mini).values()) == {"up to date": 32}


def test_an_edit_makes_its_steps_stale_and_those_after_wait(built):
    built.edit("coppelius/kernels/plain.py", '"plain"', '"Plain"')
    found = states(built)
    assert [name for name, state in found.items() if state == "stale"] == ["emit:first", "emit:second"]
    waiting = [name for name, state in found.items() if state == "waiting"]
    assert sorted(waiting) == built.steps(
        "halve guard encode check", "first", "second", also=[*built.steps("place"), "arena", "cubin"]
    )


def test_a_refused_image_is_shown(built):
    built.edit("coppelius/kernels/halves.py", "move half", "hazard")
    built.doit()
    found = states(built)
    assert [name for name, state in found.items() if state != "up to date"] == ["check:third", "arena", "cubin"]
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
    assert len(titles) == 32
    assert "emit:third: stale\nits code changed (coppelius/kernels/halves.py)" in titles
    words = Counter(text.text for text in root.iter(f"{SVG}text"))
    assert (words["stale"], words["after stale"], words["1 stale"], words["third"]) == (1, 9, 1, 1)
    assert built.command("graph").output == picture
    file = tmp_path / "graph.svg"
    assert built.command("graph", "-o", str(file)).output == ""
    assert file.read_text() == picture


def test_data_goes_where_it_is_told(built, tmp_path):
    file = tmp_path / "graph.json"
    assert built.command("graph", "--format", "json", "-o", str(file)).output == ""
    assert file.read_text() == built.command("graph", "--json").output


def test_the_guides_picture_is_todays():
    command = [sys.executable, "-m", "coppelius", "graph", "--affected", "coppelius/kernels/layernorm.py"]
    made = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert made.stdout == (REPOSITORY / "tasks/affected.svg").read_text(), "write tasks/affected.svg anew"


def test_the_picture_of_an_edit(mini):
    found = states(mini, "--affected", "coppelius/kernels/plain.py")
    assert [name for name, state in found.items() if state == "runs"] == ["emit:first", "emit:second"]
    assert found["emit:third"] == "untouched"
    picture = mini.command("graph", "--affected", "coppelius/kernels/plain.py").output
    assert "an edit of coppelius/kernels/plain.py" in picture


def test_the_latest_build_colours_what_it_ran_and_restored(built):
    built.edit("coppelius/kernels/halves.py", "move half", "copy half")
    built.doit()
    titles = [title.text for title in ElementTree.fromstring(built.command("graph").output).iter(f"{SVG}title")]
    assert ("emit:third: run" in titles, "emit:first: up to date" in titles) == (True, True)
    built.edit("coppelius/kernels/halves.py", "copy half", "move half")
    built.doit()
    titles = [title.text for title in ElementTree.fromstring(built.command("graph").output).iter(f"{SVG}title")]
    assert sum(title.endswith(": restored") for title in titles) == 7


def test_one_image_with_what_it_reads_and_what_reads_it(built):
    found = states(built, "--of", "second")
    near = ["place:first", "place:third", "arena"]
    assert sorted(found) == built.steps("emit halve guard encode check place", "second", also=near)
    outcome = built.command("graph", "--of", "secnd", "--json")
    assert (outcome.status, outcome.output) == (2, "coppelius graph: no image 'secnd'; nearest: second\n")


def test_as_dot_and_as_mermaid(built):
    built.edit("coppelius/kernels/plain.py", '"plain"', '"Plain"')
    dot = built.command("graph", "--format", "dot").output
    assert dot.startswith("digraph build {")
    assert '  "emit:second" -> "halve:second";' in dot.splitlines()
    assert '  "place:first" -> "place:second";' in dot.splitlines()
    assert '"emit:second" [label="emit:second\\nstale"' in dot
    lines = built.command("graph", "--format", "mermaid", "--of", "second").output.splitlines()
    assert lines[0] == "flowchart LR"
    number = next(line.split("[")[0].strip() for line in lines if "emit:second" in line)
    assert any(line.strip().startswith(f"{number} --> ") for line in lines)


def test_one_image_is_laid_out_where_graphviz_is(built):
    outcome = built.command("graph", "--of", "second")
    try:
        import pygraphviz  # noqa: F401
    except ImportError:
        assert outcome.status == 1
        assert "pip install 'coppelius[graph]', or use --format dot" in outcome.output
        assert outcome.output.count("\n") == 1
    else:
        text = outcome.output[outcome.output.index("<?xml") :]
        titles = [title.text for title in ElementTree.fromstring(text).iter(f"{SVG}title")]
        assert {"emit:second", "emit:second->halve:second"} <= set(titles)


def test_the_shell_completes_commands_and_images(mini):
    mini.environment = {"_COPPELIUS_COMPLETE": "bash_complete", "COMP_WORDS": "coppelius ex", "COMP_CWORD": "1"}
    assert mini.command().output == "plain,explain\n"
    mini.environment |= {"COMP_WORDS": "coppelius explain f", "COMP_CWORD": "2"}
    assert mini.command().output == "plain,first\nplain,fourth\nplain,fifth\n"
