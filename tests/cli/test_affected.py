"""`coppelius affected` foretells what a build then does."""

import json

import pytest


def foretold(checkout, *paths, folder="."):
    outcome = checkout.command("affected", *paths, "--json", folder=folder)
    assert outcome.status == 0, outcome.output
    return json.loads(outcome.output)


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("coppelius/kernels/plain.py", "* count", "* (count + 16)"),
        ("coppelius/kernels/common.py", "[word] * count", "[word] * count * 20"),
        ("coppelius/program/encoding.py", 'b"."', 'b"-"'),
        ("coppelius/check/verdict.py", '"registers": 7', '"registers": 8'),
        ("coppelius/arena/placement.py", "BASE_UNIT = 256", "BASE_UNIT = 128"),
        ("tasks/guard.py", "return (late_reads", "return (*[], late_reads"),
    ],
)
def test_what_runs_is_what_was_foretold(built, path, old, new):
    said = foretold(built, path)
    built.edit(path, old, new)
    ran = built.build().ran
    assert set(said["runs"]) <= set(ran) <= {*said["runs"], *said["may_run"]}
    assert not set(said["runs"]) & set(said["may_run"])


def test_the_plan_the_catalogue_and_outputs(mini):
    steps = mini.steps
    assert sorted(foretold(mini, "pyproject.toml")["runs"]) == steps("halve check place", also=["arena"])
    assert sorted(foretold(mini, "coppelius/catalog.py")["runs"]) == steps("emit check", also=["arena"])
    assert foretold(mini, "build/sm86/first/guard.sass")["runs"] == ["guard:first"]
    assert sorted(foretold(mini, "tasks/graph.py")["runs"]) == steps(also=["arena", "cubin"])


def test_paths_are_relative_to_the_working_folder(mini):
    said = foretold(mini, "halves.py", "../program/encoding.py", folder="coppelius/kernels")
    assert said["paths"] == ["coppelius/kernels/halves.py", "coppelius/program/encoding.py"]
    assert sorted(said["runs"]) == mini.steps("encode", also=["emit:third"])


def test_as_a_table(mini):
    output = mini.command("affected", "coppelius/kernels/halves.py").output
    assert output.startswith("step          when\nemit:third    runs\nhalve:third   if its inputs change\n")
    assert output.endswith("1 of 32 steps run, 9 more if their inputs change\n")


def test_what_nothing_reads_and_what_is_not_there(mini, tmp_path):
    (mini.root / "README.md").touch()
    outcome = mini.command("affected", "README.md")
    assert (outcome.status, outcome.output) == (0, "no step reads README.md\n")
    outcome = mini.command("affected", "no-such-file.py")
    assert outcome.status == 2
    assert "no-such-file.py: no such file" in outcome.output
    outcome = mini.command("affected", str(tmp_path / "elsewhere"))
    assert outcome.status == 2
    assert "outside of the checkout" in outcome.output
