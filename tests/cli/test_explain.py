"""`coppelius explain` and `coppelius diff`: why, and what is different."""

import json
import shutil
import subprocess

import pytest

STUBS = {
    "coppelius/program/program.py": (
        "class Program:\n    @staticmethod\n    def decode(code, table=None):\n"
        "        return [code[n:n + 16].rstrip(b'.').decode() for n in range(0, len(code), 16)]\n"
    ),
    "coppelius/isa/table.py": "def table_of(target):\n    return target\n",
    "coppelius/program/listing.py": "def listing_lines(program):\n    return program\n",
}


def explained(checkout, identity="third"):
    outcome = checkout.command("explain", identity, "--json")
    assert outcome.status == 0, outcome.output
    return {step["name"]: step for step in json.loads(outcome.output)["steps"]}


def test_the_first_cause_is_up_the_chain(built):
    built.edit("coppelius/kernels/halves.py", "move half", "copy half")
    steps = explained(built)
    assert steps["emit:third"]["causes"] == ["its code changed (coppelius/kernels/halves.py)"]
    assert steps["check:third"]["chain"] == ["check:third", "encode:third", "guard:third", "halve:third", "emit:third"]
    said = built.command("explain", "third").output
    assert said.endswith("first cause: emit:third: its code changed (coppelius/kernels/halves.py)\n")
    assert "encode:third  waiting" in said


def test_why_each_step_last_ran(built):
    built.edit("coppelius/kernels/halves.py", "move half", "copy half")
    built.doit()
    last = explained(built)["halve:third"]["last"]
    assert (last["causes"], last["restored"]) == (["build/sm86/third/emit.sass changed"], False)
    built.edit("coppelius/kernels/halves.py", "copy half", "move half")
    built.doit()
    said = built.command("explain", "third").output
    assert "restored, " in said
    assert said.endswith("third: nothing to do\n")


# fmt: off
CAUSES = {
    "parameter": (lambda c: c.plan(half='"f16"'), "halve:third", "half changed"),
    "output":    (lambda c: (c.root / "build/sm86/third/guard.sass").write_text("x"), "guard:third",
                  "build/sm86/third/guard.sass is not what the step wrote"),
    "missing":   (lambda c: (c.root / "build/sm86/third/guard.sass").unlink(), "guard:third",
                  "build/sm86/third/guard.sass is missing"),
    "new":       (lambda c: (c.root / "cache/state.sqlite3").unlink(), "emit:third", "never built here"),
    "forgotten": (lambda c: c.doit("forget", "guard:third"), "guard:third", "it was to be forgotten"),
    "code":      (lambda c: c.edit("coppelius/program/encoding.py", "FILL =", "UNUSED = FILL ="), "encode:third",
                  "its code changed (coppelius/program/encoding.py)"),
}
# fmt: on


@pytest.mark.parametrize("kind", CAUSES)
def test_every_cause_has_its_words(built, kind):
    change, name, words = CAUSES[kind]
    change(built)
    assert explained(built)[name]["causes"] == [words]


def test_an_unknown_image_is_named_with_the_nearest(mini):
    outcome = mini.command("explain", "thrid")
    assert (outcome.status, outcome.output) == (2, "coppelius explain: no image 'thrid'; nearest: third\n")


@pytest.fixture
def listed(mini):
    """A checkout under git whose listings have control words, and whose words can be read."""
    for path, text in STUBS.items():
        (mini.root / path).write_text(text)
    mini.edit("coppelius/emit.py", '"\\n".join(instructions)', '"\\n".join(f"[] {i}" for i in instructions)')
    (mini.root / ".gitignore").write_text("__pycache__/\nbuild/\ncache/objects/\ncache/state*\n")
    mini.built()
    git(mini, "init", "-q")
    git(mini, "add", "-A")
    git(mini, "commit", "-qm", "first")
    return mini


def git(checkout, *arguments):
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, *arguments], cwd=checkout.root, check=True, capture_output=True)


def test_two_stages(listed):
    outcome = listed.command("diff", "third", "emit", "halve")
    assert outcome.status == 1
    assert outcome.output.splitlines()[:2] == ["--- emit", "+++ halve"]
    assert {"-[] move half", "+[] move bf16"} <= set(outcome.output.splitlines())
    outcome = listed.command("diff", "first", "emit", "halve")
    assert (outcome.status, outcome.output) == (0, "first: emit and halve are equal (4 lines)\n")


def test_two_revisions_are_built_from_their_own_sources(listed):
    listed.edit("coppelius/kernels/halves.py", "move half", "copy half")
    listed.doit()
    git(listed, "commit", "-qam", "second")
    shutil.rmtree(listed.root / "build")
    outcome = listed.command("diff", "third", "HEAD~1", "HEAD")
    assert {"-[] move bf16", "+[] copy bf16"} <= set(outcome.output.splitlines()), outcome.output
    assert not (listed.root / "build").exists()
    listed.doit()
    assert listed.command("diff", "third", "HEAD", ".").status == 0
    made = json.loads(listed.command("diff", "third", "HEAD~1", ".", "--json").output)
    assert (made["equal"], "-[] move bf16" in made["diff"]) == (False, True)


def test_another_target_at_two_revisions_and_beside_the_native_one(listed):
    """The revision's own plan does not name that target."""
    listed.edit("coppelius/kernels/halves.py", "move half", "copy half")
    git(listed, "commit", "-qam", "second")
    outcome = listed.command("diff", "third", "HEAD~1", "HEAD", "--target", "sm121")
    assert {"-[] move bf16", "+[] copy bf16"} <= set(outcome.output.splitlines()), outcome.output
    assert listed.command("diff", "third", "HEAD", ".", "--target", "sm121").status == 1  # not built here
    listed.plan(targets='["sm86", "sm121"]')
    listed.doit()
    assert listed.command("diff", "third", "HEAD", ".", "--target", "sm121").status == 0
    assert listed.command("diff", "third", "guard", "lower_sm121").status == 0
    assert listed.command("diff", "third", "encode", "sm121").status == 0
    assert "-[] copy half" in listed.command("diff", "third", "emit", "sm121").output.splitlines()
    refused = listed.command("diff", "third", "HEAD", ".", "--target", "sm12")
    assert (refused.status, refused.output.count("\n")) == (1, 1)
    assert "target 'sm12': not one we build; known: sm80, sm86" in refused.output


def test_two_manifests(listed, tmp_path):
    manifest = listed.root / "build/sm86/manifest.json"
    shutil.copy(manifest, tmp_path / "old.json")
    listed.edit("coppelius/kernels/halves.py", "* count", "* (count + 1)")
    listed.doit()
    said = listed.command("diff", "third", str(tmp_path / "old.json"), str(manifest)).output.splitlines()
    assert {"-bytes: 48", "+bytes: 64"} <= set(said)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("third", "emit", "HEAD"), "a stage is compared with a stage"),
        (("third", "nothing", "HEAD"), "'nothing': neither a stage"),
        (("thrid", "emit", "halve"), "no image 'thrid'; nearest: third"),
        (("third", "--help-me", "halve"), "No such option"),
    ],
)
def test_what_cannot_be_compared(listed, arguments, says):
    outcome = listed.command("diff", *arguments)
    assert outcome.status == 2
    assert says in outcome.output
    assert outcome.output.count("\n") == 1


def test_a_revision_that_does_not_build_says_so(listed):
    listed.edit("coppelius/kernels/halves.py", "return", "return return")
    git(listed, "commit", "-qam", "broken")
    outcome = listed.command("diff", "third", "HEAD", "HEAD~1")
    assert outcome.status == 1
    assert "HEAD: encode:third does not build there" in outcome.output
    assert "invalid syntax" in outcome.output
