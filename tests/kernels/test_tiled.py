"""The tiled product of any layout and tile at small shapes: exact bits, both checks, schedules, no wasted accesses."""

import harness
import numpy as np
import pytest
import tiled_cases
from numpy.typing import NDArray
from tiled_cases import Case, exact, operands, small

from coppelius.emulator.faults import Fault
from coppelius.isa.refusal import Refusal
from coppelius.products.admission import registers
from coppelius.products.tile import CANDIDATES
from coppelius.program.encoding import encode_listing
from coppelius.program.listing import parse_listing
from coppelius.reference import half as halves

LAYOUTS = ("rr", "rc", "cc", "cr")  # no image has cr, and the generator takes it
SMALLEST = 3
# every tile once, with a layout that changes from one to the next; the others by -m slow
TILES = [
    small(("rr", "rc", "cc")[n % 3], n, residual=n % 2 == 0, rounds=2, blocks=(1, 2)) for n in range(len(CANDIDATES))
]
ALL = [
    pytest.param(small(layouts, n, residual=layouts == "rc", rounds=2, blocks=(1, 2)), marks=pytest.mark.slow)
    for n in range(len(CANDIDATES))
    for layouts in ("rr", "rc", "cc")
]


def same(a: NDArray[np.float32], b: NDArray[np.float32]) -> bool:
    return bool(np.array_equal(a.view(np.uint32), b.view(np.uint32)))


@pytest.mark.parametrize("half", harness.HALVES)
@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("layouts", LAYOUTS)
def test_every_layout_gives_the_bits_of_the_same_products_in_order(layouts: str, residual: bool, half: str) -> None:
    case = small(layouts, SMALLEST, residual=residual)
    a, b, r = operands(case.product, half, seed=1)
    got = tiled_cases.run(case, half, a, b, r, checks=("initcheck", "racecheck", "synccheck"))
    assert same(got, exact(a, b, half, r if residual else None))


@pytest.mark.parametrize("case", TILES, ids=str)
def test_every_tile_gives_the_same_bits(case: Case) -> None:
    a, b, r = operands(case.product, "bf16", seed=case.candidate)
    got = tiled_cases.run(case, "bf16", a, b, r)
    assert same(got, exact(a, b, "bf16", r if case.product.residual else None))


@pytest.mark.parametrize(("layouts", "candidate"), [("rr", SMALLEST), ("rc", SMALLEST), ("cc", SMALLEST), ("rc", 0)])
def test_the_schedule_computes_what_the_program_says(layouts: str, candidate: int) -> None:
    case = small(layouts, candidate, residual=True, blocks=(1, 1))
    a, b, r = operands(case.product, "f16", seed=2)
    got = tiled_cases.run(case, "f16", a, b, r, mode="strict", mma="fast")
    assert same(got, tiled_cases.run(case, "f16", a, b, r, mma="fast"))


@pytest.mark.parametrize("case", [*TILES, *ALL], ids=str)
def test_both_checks_accept_and_the_registers_are_the_demand(case: Case) -> None:
    verdict = tiled_cases.verdict(case, "bf16")
    assert verdict["accepted"], verdict["hazards"][:3]
    assert 0 <= registers(case.tile) - (verdict["registers"] + 2) < 8
    assert verdict["shared_bytes"] <= case.tile.shared_bytes
    # fillers stand before every copy that follows a shared access
    assert not [note for note in verdict["notes"] if note["rule"] == "filler"]


@pytest.mark.parametrize("layouts", ["rr", "cc"])
def test_the_straight_form_passes_both_checks_and_gives_the_same_bits(layouts: str) -> None:
    loop, straight = small(layouts, SMALLEST), small(layouts, SMALLEST, straight=True)
    assert tiled_cases.verdict(straight, "f16")["accepted"]
    mnemonics = [row.encoding.mnemonic for row in parse_listing(tiled_cases.listing(straight))]
    assert [m for m in mnemonics if m.startswith("BRA")] == ["BRA"]  # the one that ends a program
    a, b, r = operands(loop.product, "f16", seed=3)
    assert same(tiled_cases.run(straight, "f16", a, b, r), tiled_cases.run(loop, "f16", a, b, r))


def test_whole_numbers_come_out_exactly() -> None:
    case = small("rr", SMALLEST)
    random = np.random.default_rng(4)
    a = random.integers(-8, 9, (case.product.m, case.product.k))
    b = random.integers(-8, 9, (case.product.k, case.product.n))
    for half in harness.HALVES:
        got = tiled_cases.run(case, half, halves.to_bits(a, half), halves.to_bits(b, half), np.empty(0, np.float32))
        assert np.array_equal(got, (a @ b).astype(np.float32))


@pytest.mark.parametrize("half", harness.HALVES)
def test_denormals_infinities_and_nan_are_kept(half: str) -> None:
    case = small("rc", SMALLEST, residual=True, blocks=(1, 1))
    a, b, r = operands(case.product, half, seed=5)
    random = np.random.default_rng(6)
    # bf16 products fall below the smallest normal f32; f16 operands are denormal themselves
    tiny = 2.0**-66 if half == "bf16" else 2.0**-16
    a = halves.to_bits(halves.from_bits(a, half) * tiny, half)
    b = halves.to_bits(halves.from_bits(b, half) * (2.0**-66 if half == "bf16" else 1.0), half)
    r = (r * np.float32(1e-40)).astype(np.float32) if half == "bf16" else r
    a[random.integers(0, 64, 3), random.integers(0, case.product.k, 3)] = halves.to_bits(
        np.array([np.inf, -np.inf, np.nan]), half
    )
    got = tiled_cases.run(case, half, a, b, r)
    want = exact(a, b, half, r)
    assert np.array_equal(np.isnan(got), np.isnan(want))
    assert np.isnan(got).any()
    assert np.isinf(got).any()
    assert np.isfinite(got).any()
    finite = ~np.isnan(want)
    assert same(got[finite], want[finite])
    if half == "bf16":
        denormal = np.abs(want[np.isfinite(want)])
        assert ((denormal > 0) & (denormal < np.finfo(np.float32).tiny)).mean() > 0.5


def test_too_few_registers_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    case = small("rr", SMALLEST, rounds=4)
    monkeypatch.setattr(tiled_cases, "registers", lambda _: 72)
    with pytest.raises(Refusal, match=r"register \w+[\w.]*: no place for \d R among 70$"):
        tiled_cases.listing(Case(case.product, SMALLEST))


# the ring's waits in the loop of the smallest tile: before its first stage, then one a stage
BARRIER, WAIT = "BAR.SYNC.DEFER_BLOCKING 0x0", "DEPBAR.LE SB0, 0x0"


def mutated(case: Case, text: str, which: int, other: str) -> bytes:
    """The machine code with one occurrence of an instruction replaced."""
    parts = tiled_cases.listing(case).split(text)
    return encode_listing(text.join(parts[: which + 1]) + other + text.join(parts[which + 1 :]))


@pytest.mark.parametrize("stage", [1, 2])
def test_a_missing_barrier_of_the_ring_is_found(stage: int, monkeypatch: pytest.MonkeyPatch) -> None:
    case = small("rr", SMALLEST)
    material = mutated(case, BARRIER, stage, "NOP")
    monkeypatch.setattr(tiled_cases, "material", lambda *_: material)
    a, b, r = operands(case.product, "f16", seed=7)
    with pytest.raises(Fault, match=r"racecheck: .* with no barrier between"):
        tiled_cases.run(case, "f16", a, b, r, checks=("racecheck",))


@pytest.mark.parametrize("stage", [0, 1])
def test_a_wait_for_too_few_groups_computes_something_else(stage: int, monkeypatch: pytest.MonkeyPatch) -> None:
    case = small("rr", SMALLEST)
    material = mutated(case, WAIT, stage, WAIT.replace("0x0", "0x1"))
    monkeypatch.setattr(tiled_cases, "material", lambda *_: material)
    a, b, r = operands(case.product, "f16", seed=8)
    got = tiled_cases.run(case, "f16", a, b, r, mode="strict", checks=())
    assert not same(got, exact(a, b, "f16"))
