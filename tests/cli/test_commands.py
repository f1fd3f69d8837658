"""The command line as a user meets it: output, exit status, one line an error, and what it costs to load."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from click.shell_completion import ShellComplete

from coppelius.arena.release import Plan, Record, make_release
from coppelius.catalog import IMAGES, declaration
from coppelius.cli import checkout, commands, output
from coppelius.cli.commands import COMMANDS, run
from coppelius.isa.refusal import Refusal

ROOT = Path(__file__).resolve().parents[2]
FADD = bytes.fromhex("21720001020000000000000000e80f00")  # nvdisasm: FADD R0, R1, R2
FADD_CONSTANT = bytes.fromhex("21760001005800000000000000e80f00")  # nvdisasm: FADD R0, R1, c[0x0][0x160]
ACCEPTED = {"scoreboard": "accepted"}
PLACE = {image.identity: number for number, image in enumerate(IMAGES)}


class Outcome(NamedTuple):
    status: int
    out: str
    err: str


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    def outcome(*arguments: str) -> Outcome:
        status = run(arguments)
        return Outcome(status, *capsys.readouterr())

    return outcome


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with nothing built, and the working folder below its root."""
    (tmp_path / "dodo.py").touch()
    (tmp_path / "coppelius").mkdir()
    (tmp_path / "coppelius" / "catalog.py").touch()
    monkeypatch.chdir(tmp_path / "coppelius")
    return tmp_path


@pytest.fixture
def released(tree: Path) -> Path:
    """The same with a release of every image, one instruction each."""
    records = [Record(i.identity, FADD, 256 * n, 12, declaration(i), ACCEPTED) for n, i in enumerate(IMAGES)]
    folder = tree / "build" / "sm86"
    folder.mkdir(parents=True)
    made = make_release(Plan("sm86", "bf16", 0x100000000, 256), records)
    (folder / "manifest.json").write_bytes(made.manifest_bytes)
    return tree


@pytest.mark.usefixtures("tree")
def test_images_before_any_release(call: Callable[..., Outcome]) -> None:
    made = call("images")
    lines = made.out.splitlines()
    assert (made.status, made.err, len(lines)) == (0, "", 1 + len(IMAGES))
    assert lines[0].split() == ["#", "image", "regs", "block", "shared", "grid", "bytes", "address"]
    at = PLACE["fill"]
    assert lines[1 + at].split() == [str(at), "fill", "16", "256", "0", "ceil_div(count,", "1024)", "-", "-"]
    assert "demand" in lines[1 + PLACE["loss-target-gather"]]


@pytest.mark.usefixtures("released")
def test_images_after_a_release(call: Callable[..., Outcome]) -> None:
    lines = call("images").out.splitlines()
    assert lines[2].split()[-2:] == ["16", "0x100000100"]
    assert lines[1 + PLACE["loss-target-gather"]].split()[2] == "12"  # demand, resolved by the release


def test_images_of_a_target_are_what_its_release_needs(released: Path, call: Callable[..., Outcome]) -> None:
    manifest = json.loads((released / "build/sm86/manifest.json").read_text())
    row = manifest["images"][PLACE["argmax"]]
    needed = row | {"registers": row["registers"] + 2, "shared_bytes": row["shared_bytes"] + 1024}
    manifest["images"][PLACE["argmax"]] = needed
    (released / "build/sm121").mkdir()
    (released / "build/sm121/manifest.json").write_text(json.dumps(manifest | {"target": "sm121"}))
    (line,) = [x.split() for x in call("images", "--target", "sm121").out.splitlines() if x.split()[1] == "argmax"]
    assert line[2:5] == [str(needed["registers"]), str(needed["block_x"]), str(needed["shared_bytes"])]
    made = json.loads(call("images", "--target", "sm121", "--json").out)["images"][PLACE["argmax"]]["released"]
    assert (made["registers"], made["shared_bytes"]) == (needed["registers"], needed["shared_bytes"])


@pytest.mark.usefixtures("released")
def test_images_as_json(call: Callable[..., Outcome]) -> None:
    made = json.loads(call("images", "--json").out)
    assert made["version"] == 1
    assert [image["identity"] for image in made["images"]] == [image.identity for image in IMAGES]
    row = made["images"][PLACE["scale"]]
    assert (row["identity"], row["grid"]) == ("scale", ["ceil_div(count, 1024)", 1, 1])
    assert row["parameters"][2] == {"name": "factor", "kind": "scalar", "type": "f32", "offset": 0x170}
    assert row["released"]["address"] == 0x100000000 + 0x100 * PLACE["scale"]


@pytest.mark.usefixtures("released")
def test_address(call: Callable[..., Outcome]) -> None:
    address = 0x100000000 + 0x100 * PLACE["cast-down"]
    assert call("address", "cast-down") == Outcome(0, f"{address:#x}\n", "")
    made = json.loads(call("address", "cast-down", "--json").out)
    assert made == {"version": 1, "identity": "cast-down", "target": "sm86", "address": address}


# fmt: off
ERRORS = [
    (("address", "gahter"),               2, "coppelius address: no image 'gahter'; nearest: gather\n"),
    (("address", "zzz"),                  2, "coppelius address: no image 'zzz'; known: random-normal, rotary-table, "),
    (("address", "fill", "--target", "sm121"), 1,
     "coppelius: no release for sm121 yet, run doit targets=sm121; built: sm86\n"),
    (("address",),                        2, "coppelius address: Missing argument 'IDENTITY'.\n"),
    (("show", "fil"),                     2, "coppelius show: no image 'fil'; nearest: fill\n"),
    (("show", "fill", "--stage", "x"),    2, "coppelius show: Invalid value for '--stage': 'x' is not one of"),
    (("show", "fill", "--stage", "guard"), 1,
     "coppelius: fill: not built as far as guard; run doit guard:fill\n"),
    (("imagse",),                         2, "coppelius: no command 'imagse'; nearest: images\n"),
    (("images", "--jsno"),                2, "coppelius images: No such option"),
]
# fmt: on


@pytest.mark.usefixtures("released")
@pytest.mark.parametrize(("arguments", "status", "says"), ERRORS)
def test_an_error_is_one_line_and_a_status(
    call: Callable[..., Outcome], arguments: tuple[str, ...], status: int, says: str
) -> None:
    made = call(*arguments)
    assert (made.status, made.out) == (status, "")
    assert made.err.startswith(says)
    assert made.err.count("\n") == 1


def test_outside_a_checkout(call: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = call("address", "fill")
    assert made.status == 2
    assert made.err.startswith(f"coppelius: {tmp_path}: no checkout here or above")
    assert made.err.count("\n") == 1


def test_a_damaged_manifest_is_unusable_input(call: Callable[..., Outcome], released: Path) -> None:
    for text, says in (("{", "Expecting property name"), ("[]", "not a manifest")):
        (released / "build" / "sm86" / "manifest.json").write_text(text)
        made = call("address", "fill")
        assert made.status == 2
        assert says in made.err


def test_an_unreadable_file_is_unusable_input(call: Callable[..., Outcome], tree: Path) -> None:
    folder = tree / "build" / "sm86" / "fill"
    folder.mkdir(parents=True)
    (folder / "emit.sass").write_bytes(b"\xff\xfe")
    made = call("show", "fill", "--stage", "emit")
    assert made.status == 2
    assert made.err.startswith("coppelius: input is not text")


EMITTED = (
    ".target sm86\n"
    "[B------:R-:W0:-:S02] S2R R0, SR_TID.X\n"
    "[B0-----:R-:W-:Y:S05] EXIT {hidden=1}\n"
)  # fmt: skip

LINES = {"files": ["kernels/fill.py"], "lines": [[0, 12, ""], [0, 30, "tail"]]}


@pytest.fixture
def built(tree: Path) -> Path:
    folder = tree / "build" / "sm86" / "fill"
    folder.mkdir(parents=True)
    (folder / "emit.sass").write_text(EMITTED)
    (folder / "halve.sass").write_text(EMITTED)
    (folder / "material.bin").write_bytes(FADD)
    (folder / "lines.json").write_text(json.dumps(LINES))
    (folder / "origin.json").write_text("[1, null]")
    return folder


@pytest.mark.usefixtures("built")
def test_show_with_source_lines(call: Callable[..., Outcome]) -> None:
    assert call("show", "fill", "--stage", "emit").out == (
        "0000  [B------:R-:W0:-:S02] S2R R0, SR_TID.X  kernels/fill.py:12\n"
        "0010  [B0-----:R-:W-:Y:S05] EXIT {hidden=1}   kernels/fill.py:30\n"
    )
    # what halving made anew has no line of its own
    assert [line.split()[-1] for line in call("show", "fill", "--stage", "halve").out.splitlines()] == [
        "kernels/fill.py:30", "{hidden=1}",
    ]  # fmt: skip


@pytest.mark.usefixtures("built")
def test_show_as_json(call: Callable[..., Outcome]) -> None:
    made = json.loads(call("show", "fill", "--stage", "emit", "--json").out)
    assert made["instructions"][1] == {
        "offset": 16, "control": "[B0-----:R-:W-:Y:S05]", "text": "EXIT {hidden=1}", "source": "kernels/fill.py:30",
    }  # fmt: skip
    assert {key: made[key] for key in ("version", "identity", "target", "stage")} == {
        "version": 1, "identity": "fill", "target": "sm86", "stage": "emit",
    }  # fmt: skip


def test_show_what_was_lowered_for_another_target(call: Callable[..., Outcome], built: Path) -> None:
    """Two instructions for the emitted second one, and one that has no line; the words are the target's own."""
    lowered = built.parents[1] / "sm121" / "fill"
    lowered.mkdir(parents=True)
    (lowered / "lower.sass").write_text(EMITTED.replace("sm86", "sm121"))
    (lowered / "lower.json").write_text("[0, 1]")
    (lowered / "material.bin").write_bytes(FADD * 2)
    assert [line.split()[-1] for line in call("show", "fill", "--stage", "lower_sm121").out.splitlines()] == [
        "kernels/fill.py:30", "{hidden=1}",
    ]  # fmt: skip
    made = json.loads(call("show", "fill", "--stage", "sm121", "--json").out)
    assert (made["target"], made["stage"]) == ("sm121", "sm121")
    assert [(row["text"], row["source"]) for row in made["instructions"]] == [
        ("FADD R0, R1, R2", "kernels/fill.py:30"), ("FADD R0, R1, R2", ""),
    ]  # fmt: skip
    # a word of SM86 alone: constants are no operands of an addition there
    (lowered / "material.bin").write_bytes(FADD_CONSTANT * 2)
    refused = call("show", "fill", "--stage", "sm121")
    assert (refused.status, refused.out) == (1, "")
    assert "sm121" in refused.err


@pytest.mark.usefixtures("built")
def test_show_of_a_target_that_is_not_built(call: Callable[..., Outcome]) -> None:
    assert call("show", "fill", "--stage", "sm89") == Outcome(
        1, "", "coppelius: fill: not built as far as sm89; run doit targets=sm89 encode_sm89:fill\n"
    )
    assert call("show", "fill", "--stage", "sm121", "--stats").status == 2


def test_show_decodes_the_machine_words(call: Callable[..., Outcome], built: Path) -> None:
    (built / "origin.json").write_text("[1]")
    assert call("show", "fill").out == "0000  [B------:R-:W-:-:S04] FADD R0, R1, R2  kernels/fill.py:30\n"


def test_show_objects_to_a_table_of_another_length(call: Callable[..., Outcome], built: Path) -> None:
    (built / "origin.json").write_text("[0]")
    made = call("show", "fill", "--stage", "halve")
    assert made.status == 2
    assert "1 lines for 2 instructions" in made.err


def test_find_checkout_looks_upwards(tree: Path) -> None:
    assert checkout.find_checkout(tree / "coppelius") == tree.resolve()
    with pytest.raises(Refusal, match="no checkout here or above"):
        checkout.find_checkout(tree.parent)


def test_a_table_on_a_terminal_keeps_brackets_and_obeys_no_color(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "is_plain", lambda: False)
    monkeypatch.setenv("NO_COLOR", "1")
    output.print_table(("image", "size"), [("[red]fill[/red]", 16)], right=("size",))
    made = capsys.readouterr().out
    assert "[red]fill[/red]" in made
    assert "\x1b" not in made


def test_ci_and_pipes_are_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.delenv("CI", raising=False)
    assert not output.is_plain()
    monkeypatch.setenv("CI", "true")
    assert output.is_plain()


def process(*arguments: str, cwd: Path = ROOT) -> Outcome:
    made = subprocess.run(
        [sys.executable, "-m", "coppelius", *arguments], capture_output=True, text=True, cwd=cwd, check=False
    )
    return Outcome(made.returncode, made.stdout, made.stderr)


def test_help_names_every_command_and_the_module_runs() -> None:
    made = process("--help")
    assert (made.status, made.err) == (0, "")
    assert all(f"  {name} " in made.out for name in COMMANDS)
    assert process("nonsense").status == 2


def test_help_loads_no_command() -> None:
    code = "import sys; from coppelius.cli.main import main; main(['--help']); print(*sys.modules, file=sys.stderr)"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    loaded = set(made.stderr.split())
    assert not loaded & {"numpy", "rich", "networkx", "doit", "coppelius.catalog", "coppelius.cli.images"}


def test_another_checkout_runs_its_own_code(tree: Path) -> None:
    (tree / "coppelius" / "__init__.py").touch()
    (tree / "coppelius" / "__main__.py").write_text("import sys; print('theirs', *sys.argv[1:])")
    code = "from coppelius.cli.main import main; main()"
    environment = {"PYTHONPATH": str(ROOT), "PATH": ""}

    def out(argument: str) -> str:
        command = [sys.executable, "-P", "-c", code, argument]
        return subprocess.run(
            command, capture_output=True, text=True, cwd=tree / "coppelius", env=environment, check=True
        ).stdout

    assert out("images") == "theirs images\n"
    assert out("--help").startswith("Usage: coppelius")  # asks nothing of a checkout, so runs none of its code


def test_every_command_of_the_table_that_exists_has_its_name() -> None:
    for name, row in COMMANDS.items():
        if (ROOT / "coppelius" / "cli" / f"{row.module}.py").is_file():
            command = commands.group.get_command(None, name)  # type: ignore[arg-type]
            assert command is not None
            assert command.name == name


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_told_how_to_complete(shell: str) -> None:
    environment = {**os.environ, "_COPPELIUS_COMPLETE": f"{shell}_source"}
    command = [sys.executable, "-m", "coppelius"]
    made = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, check=False)
    assert (made.returncode, made.stderr) == (0, "")
    assert f"_COPPELIUS_COMPLETE={shell}_complete" in made.stdout


# fmt: off
COMPLETIONS = [
    ("",                           "expl",        ["explain"]),
    ("explain",                    "gath",        ["gather"]),
    ("show",                       "gath",        ["gather"]),
    ("show gather --stage",        "lower_sm12",  ["lower_sm120", "lower_sm121"]),
    ("diff",                       "gath",        ["gather"]),
    ("address",                    "gath",        ["gather"]),
    ("emulate",                    "gath",        ["gather"]),
    ("cubin fill",                 "gath",        ["gather"]),
    ("graph --of",                 "gath",        ["gather"]),
    ("graph --format",             "m",           ["mermaid"]),
    ("build",                      "check:gath",  ["check:gather"]),
    ("build -n 2",                 "choi",        ["choices"]),
]
# fmt: on


@pytest.mark.parametrize(("words", "incomplete", "found"), COMPLETIONS)
def test_names_are_completed(words: str, incomplete: str, found: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    shell = ShellComplete(commands.group, {}, "coppelius", "_COPPELIUS_COMPLETE")
    assert [item.value for item in shell.get_completions(words.split(), incomplete)] == found


def test_outside_a_checkout_no_step_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shell = ShellComplete(commands.group, {}, "coppelius", "_COPPELIUS_COMPLETE")
    assert shell.get_completions(["build"], "check") == []
