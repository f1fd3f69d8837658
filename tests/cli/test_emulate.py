"""`coppelius emulate`: within its bounds 0, beyond them or at fault 1, an unknown image 2."""

import json
from typing import Any

import numpy as np
import pytest

from coppelius.catalog import IMAGES
from coppelius.cli import commands, judges, trials


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = commands.run(["emulate", *arguments])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_every_image_has_a_trial() -> None:
    assert [trials.trial_of(image.identity) for image in IMAGES]


@pytest.mark.parametrize("half", ["bf16", "f16"])
@pytest.mark.parametrize("identity", ["cast-down", "layernorm-forward", "attention-forward"])
def test_a_sample_of_blocks(identity: str, half: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, identity, "--half", half, "--blocks", "2", "--mma", "fast")
    heading, titles, *rows = out.splitlines()
    assert (status, err) == (0, "")
    assert heading.startswith(f"{identity} ({half}): 2 blocks of ")
    assert heading.endswith(" (fast, MMA fast), 0 findings")
    assert titles.split()[:3] == ["output", "written", "bound"]
    outputs = 3 if identity.startswith("layernorm") else 2 if identity.startswith("attention") else 1
    assert [row.split()[-1] for row in rows] == ["within"] * outputs


def test_json_and_the_same_seed(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("scale", "--json", "--seed", "7", "--blocks", "5", "--mode", "strict")
    first, second = (json.loads(run(capsys, *asked)[1]) for _ in range(2))
    assert first.pop("seconds") != 0
    second.pop("seconds")
    assert first == second
    assert (first["image"], first["half"], first["mode"], first["blocks"]) == ("scale", "bf16", "strict", 5)
    (output,) = first["outputs"]
    assert (output["name"], output["good"], output["failures"]) == ("out", True, 0)
    # the last block is not whole
    assert output["written"] in (5 * 1024, 4 * 1024 + trials.COUNT % 1024)


def test_all_blocks(capsys: pytest.CaptureFixture[str]) -> None:
    data = json.loads(run(capsys, "copy", "--blocks", "0", "--json")[1])
    assert (data["blocks"], data["outputs"][0]["written"]) == (-(-trials.COUNT // 1024), trials.COUNT)


def changed(monkeypatch: pytest.MonkeyPatch, identity: str, **parts: Any) -> None:
    monkeypatch.setitem(trials.TRIALS, identity, trials.TRIALS[identity]._replace(**parts))


def test_an_output_beyond_its_bound(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = judges.exactly("out", lambda given, _: given["a"] - given["b"])
    changed(monkeypatch, "add", judge=wrong)
    status, out, _ = run(capsys, "add", "--blocks", "1")
    assert status == 1
    assert "over, worst at [0]" in out.splitlines()[-1]


def test_an_access_outside_of_a_buffer(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for size, expected in ((9, 0), (8, 1)):
        given = {"a": np.zeros(9, np.float32), "b": np.zeros(size, np.float32), "count": 9}
        changed(monkeypatch, "add", inputs=lambda *_, given=given: dict(given))
        status, out, err = run(capsys, "add")
        assert status == expected
    assert out == ""
    assert "buffer b" in err
    assert "coppelius/kernels/" in err
    assert json.loads(run(capsys, "add", "--json")[1])["findings"]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("ad",), "no image 'ad'; nearest: add"),
        (("add", "--half", "f8"), "'f8' is not one of 'bf16', 'f16'"),
        (("add", "--blocks", "-1"), "-1 is not in the range x>=0"),
    ],
)
def test_what_cannot_be_run(arguments: tuple[str, ...], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, *arguments)
    assert (status, out) == (2, "")
    assert line in err
