"""`coppelius measure` on a card that is the emulator: everything but the driver itself."""

import functools
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from fake_card import RTX_3090, FakeCard
from numpy.typing import NDArray

from coppelius.check.verdict import judge
from coppelius.cli import choices, measure, measuring
from coppelius.cli.choices import choices_command
from coppelius.cli.commands import run
from coppelius.cli.measure import measure_command
from coppelius.isa.refusal import Refusal
from coppelius.products import cost
from coppelius.products.record import MEASURED, MODELLED, Choice, Run
from coppelius.products.record_text import read_record
from coppelius.products.shape import Product

# small enough for the emulator; candidates 2, 3 and 4 serve the first, 2, 3 and 5 the second
PLAIN = Product("rc", 128, 64, 128)
ADDED = Product("cr", 64, 128, 128, residual=True)


@pytest.fixture(scope="module", autouse=True)
def made_once() -> Iterator[None]:
    """Candidates are emitted once for all tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measuring, "released", functools.cache(measuring.released))
        yield


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> FakeCard:
    return placed(monkeypatch, FakeCard())


def placed(monkeypatch: pytest.MonkeyPatch, card: FakeCard) -> FakeCard:
    record = {p.identity: Choice(3, 9.0, MODELLED, "GeForce RTX 3090") for p in (PLAIN, ADDED)}
    for module in (measure, choices):
        monkeypatch.setattr(module, "PRODUCTS", (PLAIN, ADDED))
        monkeypatch.setattr(module, "CHOICES", record)
    monkeypatch.setattr(measure, "open_device", lambda _: card)
    return card


def called(*arguments: str) -> Result:
    return CliRunner().invoke(measure_command, ["--repeats", "3", *arguments])


def test_every_serving_candidate_is_timed_and_the_quickest_recorded(card: FakeCard, tmp_path: Path) -> None:
    made = called("--record", str(tmp_path / "record.py"), "--json")
    assert made.exception is None, made.output
    assert card.closed
    told = json.loads(made.stdout)
    assert told["card"]["name"] == "NVIDIA GeForce RTX 3090"
    found, runs = read_record((tmp_path / "record.py").read_text(), "record.py")
    for product in (PLAIN, ADDED):
        times = {t["candidate"]: t["microseconds"] for t in told["products"][product.identity]}
        assert list(times) == cost.serving(product)
        choice = found[product.identity]
        assert choice.candidate == cost.quickest(times, product)
        assert (choice.basis, choice.card) == (MEASURED, RTX_3090.name)
        assert choice.microseconds == round(times[choice.candidate], 1)
        assert runs == {(choice.card, choice.date): Run(82, 1695, 9751, "580.65.06, CUDA 13.0")}
    # nothing else lies there
    assert [path.name for path in tmp_path.iterdir()] == ["record.py"]


def test_the_record_is_shown_by_choices_with_its_provenance(card: FakeCard, tmp_path: Path) -> None:  # noqa: ARG001
    path = tmp_path / "record.py"
    assert called(ADDED.identity, "--record", str(path)).exit_code == 0
    shown = CliRunner().invoke(choices_command, ["--record", str(path)])
    assert shown.exception is None, shown.output
    lines = {line.split()[0]: line for line in shown.output.splitlines()[1:3]}
    assert "measured  NVIDIA GeForce RTX 3090, 20" in lines[ADDED.identity]
    assert "modelled  GeForce RTX 3090" in lines[PLAIN.identity]
    assert "82 SMs at up to 1695 MHz, memory at 9751 MHz, driver 580.65.06, CUDA 13.0" in shown.output
    one = CliRunner().invoke(choices_command, [ADDED.identity, "--record", str(path), "--json"])
    assert json.loads(one.stdout)["record"]["run"]["driver"] == "580.65.06, CUDA 13.0"


def test_without_record_nothing_is_written_and_the_table_names_card_and_choice(
    card: FakeCard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = called("rc-m128-n64-k128")
    assert not list(tmp_path.iterdir())
    lines = made.stdout.splitlines()
    assert lines[0].split() == ["product", "#", "tile", "us", "spread", "modelled", "problem"]
    assert sum(line.split()[1] == "*" for line in lines[1 : 1 + len(cost.serving(PLAIN))]) == 1
    assert str(card.facts) in made.stdout
    # each was launched to be checked, to warm up, in batches, and to be checked again
    assert set(card.launched) == {f"tiled_rc_m128_n64_k128_candidate{n}" for n in cost.serving(PLAIN)}


def _flip(where: str) -> Callable[[str, NDArray[np.uint8]], None]:
    """A card that now and then flips a bit of C."""

    def spoil(launch: str, c: NDArray[np.uint8]) -> None:
        symbol, count = launch.rsplit(" ", 1)
        if symbol.endswith("candidate4") and (int(count) == 0 if where == "first" else int(count) > 5):
            c[4 * 777 + 2] ^= 0x40 if where == "first" else 1

    return spoil


@pytest.mark.parametrize(
    ("where", "says"), [("first", "16 times that of the row: 1 of 8192 over"), ("later", "two launches gave different")]
)
def test_a_wrong_c_is_named_not_timed_and_nothing_is_recorded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, where: str, says: str
) -> None:
    placed(monkeypatch, FakeCard(spoil=_flip(where)))
    path = tmp_path / "record.py"
    made = CliRunner().invoke(
        measure_command, [PLAIN.identity, "--repeats", "3", "--record", str(path)], standalone_mode=False
    )
    assert made.return_value == 1
    (line,) = [line for line in made.stdout.splitlines() if "128 x 64 x 4" in line]
    assert line.split()[7:9] == ["-", "-"]
    assert says in line
    assert "a candidate computes a wrong C; nothing is recorded" in made.stderr
    assert not path.exists()


def test_a_record_that_is_there_is_overwritten_only_when_told(card: FakeCard, tmp_path: Path) -> None:
    path = tmp_path / "record.py"
    path.write_text("mine")
    made = called("--record", str(path))
    assert isinstance(made.exception, Refusal)
    assert str(made.exception) == f"{path}: is there; name another file, or say --overwrite"
    assert not card.launched
    assert path.read_text() == "mine"
    assert called(ADDED.identity, "--record", str(path), "--overwrite").exit_code == 0
    assert "CHOICES" in path.read_text()


def test_a_record_that_could_not_be_written_is_refused_before_anything_is_measured(
    card: FakeCard, tmp_path: Path
) -> None:
    path = tmp_path / "absent" / "record.py"
    made = called("--record", str(path))
    assert isinstance(made.exception, Refusal)
    assert str(made.exception) == f"{path}: {path.parent} is no folder that can be written to"
    assert not card.launched


def test_another_architectures_card_is_refused_by_name_or_gets_its_own_code(monkeypatch: pytest.MonkeyPatch) -> None:
    placed(monkeypatch, FakeCard(replace(RTX_3090, name="Tesla T4", capability=(7, 5))))
    assert str(called().exception).startswith("Tesla T4: compute capability 7.5; images are made for 8.0")
    card = placed(monkeypatch, FakeCard(replace(RTX_3090, name="NVIDIA RTX 4090", capability=(8, 9))))
    made = called("--record", "x.py")
    assert "NVIDIA RTX 4090 runs sm89; the record is for sm86" in str(made.exception)
    assert card.closed


@pytest.mark.parametrize("target", ["sm86", "sm121"])
def test_a_candidate_is_made_for_its_target_and_passes_the_checks(target: str) -> None:
    image, made = measuring.released(PLAIN, 2, "bf16", target)
    declared = {
        "registers": image.registers, "shared_bytes": image.shared_bytes, "block_x": image.block_x, "half": "bf16",
        "target": target,
    }  # fmt: skip
    verdict = judge(made.code, declared)
    assert verdict["accepted"], verdict


def test_without_the_package_the_command_says_so_and_exits_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    monkeypatch.setitem(sys.modules, "cuda", None)
    assert run(["measure"]) == 1
    assert capsys.readouterr().err == (
        "coppelius: measuring needs the package cuda-bindings: pip install 'coppelius[measure]'; nothing was measured\n"
    )
