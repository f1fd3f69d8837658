"""The emit step: what one kernel becomes, and what refuses it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from coppelius import catalog
from coppelius.emit import Emitted, emit
from coppelius.isa.refusal import Refusal
from coppelius.program.listing import parse_listing

ROOT = Path(__file__).resolve().parents[1]


def built(identity: str, **changes: object) -> Emitted:
    image = next(i for i in catalog.IMAGES if i.identity == identity)
    given: dict[str, object] = {
        "parameters": catalog.declaration(image)["parameters"],
        "registers": image.registers,
        "block_x": image.block_x,
    }
    kernel, options = changes.pop("kernel", image.kernel), changes.pop("options", image.options)
    return emit(kernel, options, **(given | changes))  # type: ignore[arg-type]


def lines_of(emitted: Emitted) -> Iterator[tuple[str, int, str]]:
    table = json.loads(emitted.lines)
    for file, line, region in table["lines"]:
        yield table["files"][file], line, region


def test_every_instruction_has_the_line_that_caused_it() -> None:
    emitted = built("layernorm-forward")
    lines = list(lines_of(emitted))
    assert len(lines) == len(parse_listing(emitted.listing))
    for file, line, _ in lines:
        assert file.startswith("coppelius/kernels/")
        text = (ROOT / file).read_text().splitlines()[line - 1]
        assert "k." in text or text.strip() == ")"
    assert {region.split("/")[0] for _, _, region in lines} >= {"load", "mean", "variance", "store"}


def test_the_same_kernel_gives_the_same_bytes() -> None:
    assert built("cross-entropy") == built("cross-entropy")


def test_a_budget_that_does_not_hold_the_kernel_is_refused_by_register() -> None:
    with pytest.raises(
        Refusal, match=r"^coppelius/kernels/\w+.py:\d+: register \w+[\w.]*: no place for \d R among 14$"
    ):
        built("argmax", registers=16)


def test_demand_is_enough_where_nothing_is_declared() -> None:
    assert built("add", registers=None) == built("add")


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ("coppelius.kernels.add:subtract", "kernel coppelius.kernels.add:subtract: module .* has no subtract"),
        ("coppelius.kernels.nothing:nothing", "nothing"),
    ],
)
def test_a_kernel_that_is_not_there_is_refused_by_name(kernel: str, message: str) -> None:
    with pytest.raises((Refusal, ModuleNotFoundError), match=message):
        built("add", kernel=kernel)


@pytest.mark.parametrize("reorder", [True, False])
def test_a_kernel_that_emits_nothing_is_refused(reorder: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coppelius.kernels.add.add", lambda _: None)
    with pytest.raises(Refusal, match="the kernel emits no instruction"):
        built("add", reorder=reorder)


def test_a_shape_that_a_kernel_does_not_serve_is_refused_by_the_kernel() -> None:
    for identity, options, message in (
        ("argmax", {"vocabulary": 1000}, "argmax: 1000 columns"),
        ("layernorm-forward", {"width": 500}, "layernorm: width 500"),
        ("softmax-forward", {"size": 512}, "softmax: 512 columns"),
        ("cross-entropy", {"vocabulary": 3072}, "cross-entropy: 3072 columns"),
        ("rotary-table", {"pairs": 16}, "rotary-table: 16 pairs"),
        ("adamw", {"elements": 1002}, "adamw: 1002 elements"),
        ("transpose-g8-r1024-c64", {"groups": 8, "rows": 60, "columns": 64}, "transpose: 60 x 64"),
    ):
        with pytest.raises(Refusal, match=message):
            built(identity, options=options)
