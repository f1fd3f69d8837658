"""A day of an engineer in one piece: foretell an edit, build it, read why, see it, switch branches, share the store."""

import json
import re
import shutil
import subprocess

KERNEL = "coppelius/kernels/halves.py"
EDIT = (KERNEL, "move half", "copy half")
PLAIN = ("coppelius/kernels/plain.py", '"plain"', '"plume"')


def git(folder, *arguments):
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def page_of(checkout, file, *arguments):
    """The steps of the page by name."""
    made = checkout.command("graph", "--format", "html", "-o", str(file), *arguments)
    assert (made.status, made.output) == (0, "")
    data = re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', file.read_text(), re.DOTALL)
    return {step["name"]: step for step in json.loads(data[1])["steps"]}


def build(checkout, *arguments):
    made = checkout.command("build", "-v", "2", *arguments)
    assert made.status == 0, made.output
    return made


def test_a_day_of_an_engineer(mini, tmp_path):
    (mini.root / ".gitignore").write_text("__pycache__/\nbuild/\ncache/objects/\ncache/state*\n")
    git(mini.root, "init", "-q", "-b", "main")
    git(mini.root, "add", "-A")
    git(mini.root, "commit", "-qm", "first")
    assert build(mini).ran == mini.steps(also=["arena", "cubin"])
    first = mini.outputs()

    # what will an edit of this kernel rebuild, and where does that lie in the graph?
    foretold = json.loads(mini.command("affected", KERNEL, "--json").output)
    assert foretold["runs"] == ["emit:third"]
    cone = page_of(mini, tmp_path / "cone.html", "--affected", KERNEL)
    assert [name for name, step in cone.items() if step["look"] == "runs"] == foretold["runs"]
    assert [name for name, step in cone.items() if step["look"] == "may run"] == foretold["may_run"]

    # edit it on a branch, and build
    git(mini.root, "checkout", "-qb", "faster")
    mini.edit(*EDIT)
    waiting = json.loads(mini.command("explain", "third", "--json").output)["steps"]
    assert [step["state"] for step in waiting] == ["stale", *["waiting"] * (len(waiting) - 1)]
    ran = build(mini).ran
    assert ran == mini.steps("emit halve guard encode check", "third", also=["arena", "cubin"])
    assert set(ran) <= {*foretold["runs"], *foretold["may_run"]}
    second = mini.outputs()

    # why did each step run, and which were they?
    causes = {
        step["name"]: step["last"]["causes"]
        for step in json.loads(mini.command("explain", "third", "--json").output)["steps"]
    }
    folder = "build/sm86/third"
    assert causes == {
        "emit:third": [f"its code changed ({KERNEL})"],
        "halve:third": [f"{folder}/emit.sass changed"],
        "guard:third": [f"{folder}/halve.sass changed"],
        "encode:third": [f"{folder}/guard.sass changed"],
        "check:third": [f"{folder}/material.bin changed"],
        "place:third": ["never built here"],
    }
    state = page_of(mini, tmp_path / "state.html")
    assert sorted(name for name, step in state.items() if step["look"] == "run") == ran

    # switch the branch and back: nothing is computed
    git(mini.root, "commit", "-qam", "faster")
    for branch, outputs in (("main", first), ("faster", second), ("main", first)):
        git(mini.root, "checkout", "-q", branch)
        assert (build(mini).ran, mini.outputs()) == ([], outputs), branch
    assert build(mini).made == []

    # a second checkout of the same history shares the store, in both directions
    other = mini.copy(tmp_path / "unused")
    shutil.rmtree(other.root)
    other.root = tmp_path / "second"
    git(tmp_path, "clone", "-q", "-b", "faster", str(mini.root), str(other.root))
    other.environment = {"COPPELIUS_STORE": str(mini.root / "cache/objects")}
    made = build(other)
    assert (made.ran, made.restored, other.outputs()) == ([], mini.steps(also=["arena", "cubin"]), second)
    other.edit(*PLAIN)
    assert "emit:first" in build(other).ran
    mini.edit(*EDIT)
    mini.edit(*PLAIN)
    made = build(mini)
    assert (made.ran, mini.outputs()) == ([], other.outputs())
    assert "emit:first" in made.restored
