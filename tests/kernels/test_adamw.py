"""adamw: some blocks of the one launch, at its real grid and bank; they walk every pass of the stride."""

import re
from dataclasses import replace

import harness
import numpy as np
import pytest
from numpy.typing import NDArray

from coppelius import catalog, model
from coppelius.check.verdict import judge
from coppelius.isa.control import NO_BARRIER
from coppelius.isa.refusal import Refusal
from coppelius.kernels.adamw import Walk, walk
from coppelius.program.program import Program
from coppelius.program.unroll import unrolled
from coppelius.reference import bounds
from coppelius.reference import half as halves
from coppelius.reference.adamw import Scalars, adamw

E = model.PARAMETERS
THREADS, BLOCKS = 256, 1024
PASSES = -(-E // (4 * THREADS * BLOCKS))
SCALARS = Scalars(1e-3, 0.9, 0.999, 1e-8, 0.01, 1 / (1 - 0.9**3), 1 / (1 - 0.999**3), 1 / 3)
NAMES = ("rate", "beta1", "beta2", "epsilon", "decay", "correction1", "correction2", "gradient_scale")


def owned(blocks: list[int]) -> NDArray[np.int64]:
    """The elements that these blocks walk."""
    quads = np.arange(PASSES)[:, None, None] * BLOCKS * THREADS + np.array(blocks)[:, None] * THREADS
    elements = (quads + np.arange(THREADS))[..., None] * 4 + np.arange(4)
    return np.sort(elements[elements < E])


@pytest.fixture(scope="module")
def bank() -> dict[str, NDArray[np.float32]]:
    """Whole arrays, whose untouched pages cost nothing."""
    return {name: np.zeros(E, np.float32) for name in "pmvg"}


def step(
    bank: dict[str, NDArray[np.float32]],
    blocks: list[int],
    half: str,
    values: dict[str, NDArray[np.float32]],
    scalars: Scalars,
) -> dict[str, NDArray[np.generic]]:
    """The owned elements after one step."""
    where = owned(blocks)
    for name in "pmvg":
        bank[name][where] = values[name]
    given = dict(zip(NAMES, vars(scalars).values(), strict=True))
    out = harness.run("adamw", half, blocks=blocks, in_place="pmv", half_copy=E, **bank, **given)
    untouched = np.ones(E, bool)
    untouched[where] = False
    assert harness.untouched(out["half_copy"][untouched])
    return {name: out[name][where] for name in ("p", "m", "v", "half_copy")}


def values(count: int, kind: str) -> dict[str, NDArray[np.float32]]:
    random = np.random.default_rng(1)
    p, m, v, g = random.standard_normal((4, count))
    made = {"p": p * 0.02, "m": m * 1e-3, "v": v**2 * 1e-6, "g": g * 3e-3}
    if kind == "start":
        made |= {"p": p * 0, "m": m * 0, "v": v * 0}
    if kind == "fresh bias":
        made["p"] = p * 0
    if kind == "constant":
        made = {"p": p * 0 + 0.02, "m": m * 0 + 1e-3, "v": v * 0 + 1e-6, "g": g * 0 + 3e-3}
    if kind == "denormal":
        # denormal parameters with normal moments, and the other way round
        tiny = np.arange(count) % 2 == 0
        made = {n: np.where(tiny == (n == "p"), a * 1e-41, a) for n, a in made.items()}
    if kind == "small":
        made = {"p": p * 1e-30, "m": m * 1e-20, "v": v**2 * 1e-40, "g": g * 1e-20}
        made["g"][::7] = 0.0
        made["v"][::14] = 0.0
        made["m"][::21] = 0.0
    if kind == "large":
        made = {"p": p * 1e10, "m": m * 1e8, "v": v**2 * 1e17, "g": g * 1e8}
    return {name: value.astype(np.float32) for name, value in made.items()}


@pytest.mark.parametrize("half", harness.HALVES)
@pytest.mark.parametrize("kind", ["trained", "start", "fresh bias", "constant", "denormal", "small", "large"])
def test_one_step(bank: dict[str, NDArray[np.float32]], kind: str, half: str) -> None:
    blocks = [0, 528, 529, 1023]  # the last pass ends inside block 529's stride
    given = values(len(owned(blocks)), kind)
    out = step(bank, blocks, half, given, SCALARS)
    reference = adamw(given["p"], given["m"], given["v"], given["g"], SCALARS)
    for measured in (
        bounds.elementwise_f32(out["p"], reference.p, reference.p_terms),
        bounds.elementwise_f32(out["m"], reference.m, reference.m_terms),
        bounds.elementwise_f32(out["v"], reference.v, ulps=4),
        bounds.exact_bits(out["half_copy"], halves.to_bits(out["p"], half)),
    ):
        assert measured, f"{kind}: {measured}"


@pytest.mark.parametrize("half", harness.HALVES)
def test_what_is_no_number_spoils_its_own_element_only(bank: dict[str, NDArray[np.float32]], half: str) -> None:
    blocks = [0]
    given = values(len(owned(blocks)), "trained")
    bad = np.array([np.nan, np.inf, -np.inf], np.float32)
    for place, name in enumerate("pmg"):
        given[name][16 * place + np.arange(3)] = bad
    given["v"][48:50] = bad[:2]
    out = step(bank, blocks, half, given, SCALARS)
    with np.errstate(all="ignore"):
        reference = adamw(given["p"], given["m"], given["v"], given["g"], SCALARS)
    for name, wanted in (("p", reference.p), ("m", reference.m), ("v", reference.v)):
        special = ~np.isfinite(wanted)
        assert np.array_equal(out[name][special], wanted[special], equal_nan=True), name
        assert np.isfinite(out[name][~special]).all(), name
    clean = np.isfinite(reference.p)
    assert clean.sum() == len(clean) - 10  # three of p, m and g each, one of v
    assert bounds.elementwise_f32(out["p"][clean], reference.p[clean], reference.p_terms[clean])
    assert bounds.exact_bits(out["half_copy"], halves.to_bits(out["p"], half))


def test_the_blocks_tested_include_the_end_of_the_bank() -> None:
    assert owned([0, 528, 529, 1023])[-1] < E
    assert (E // 4) % (THREADS * BLOCKS) == 529 * THREADS


@pytest.mark.slow
def test_the_whole_bank_in_one_launch() -> None:
    scalars = dict(zip(NAMES, vars(SCALARS).values(), strict=True))
    random = np.random.default_rng(2)
    scales = {"p": 0.02, "m": 1e-3, "v": 1e-3, "g": 3e-3}
    given = {n: random.standard_normal(E, dtype=np.float32) * np.float32(scale) for n, scale in scales.items()}
    given["v"] *= given["v"]
    bank = {name: array.copy() for name, array in given.items()}
    out = harness.run("adamw", "bf16", in_place="pmv", half_copy=E, **bank, **scalars)
    for first in range(0, E, 1 << 20):
        part = slice(first, first + (1 << 20))
        reference = adamw(*(given[name][part] for name in "pmvg"), SCALARS)
        for measured in (
            bounds.elementwise_f32(out["p"][part], reference.p, reference.p_terms),
            bounds.elementwise_f32(out["m"][part], reference.m, reference.m_terms),
            bounds.elementwise_f32(out["v"][part], reference.v, ulps=4),
            bounds.exact_bits(out["half_copy"][part], halves.to_bits(out["p"][part], "bf16")),
        ):
            assert measured, f"from {first}: {measured}"


def test_the_walk_covers_the_models_bank() -> None:
    made = walk(E, BLOCKS)
    assert made == Walk(E // 4, BLOCKS * THREADS, PASSES)
    assert harness.image("adamw").options == {"elements": E, "blocks": BLOCKS}


@pytest.mark.parametrize(
    ("elements", "blocks", "says"),
    [
        (E + 2, BLOCKS, f"adamw: {E + 2} elements are not whole quads"),
        (0, BLOCKS, "adamw: 0 elements are not whole quads"),
        (1 << 34, BLOCKS, "adamw: 4294967296 quads leave the 32-bit bound"),
        (E, 0, "adamw: 0 blocks reach no quad"),
        ((1 << 34) - 4, 2, "adamw: 2 blocks reach past 32 bits after 4294967295 quads"),
    ],
)
def test_a_bank_that_the_walk_cannot_cover_is_refused(elements: int, blocks: int, says: str) -> None:
    with pytest.raises(Refusal, match=re.escape(says)):
        walk(elements, blocks)


def test_the_largest_bank_ends_at_the_last_index() -> None:
    quads = (1 << 32) - THREADS
    assert walk(4 * quads, 1) == Walk(quads, THREADS, quads // THREADS)


@pytest.mark.parametrize("half", harness.HALVES)
def test_the_body_twice_without_a_branch_passes_both_checks(half: str) -> None:
    program = Program.decode(harness.material("adamw", half))
    straight = unrolled(program)
    declared = {**catalog.declaration(harness.image("adamw")), "half": half}
    loads = [row.encoding.mnemonic.startswith("LDG") for row in straight]
    assert sum(loads) == 8  # g, m, v and p of two passes
    assert len(straight) > 1.8 * len(program)
    verdict = judge(straight.encode(), declared)
    assert verdict["accepted"], verdict["hazards"][:3]


def test_the_checked_form_shows_what_a_pass_leaves_to_the_next() -> None:
    """Stores read m, v and p while the next pass loads them: the loads' wait is what keeps them apart."""
    program = Program.decode(harness.material("adamw", "bf16"))
    declared = {**catalog.declaration(harness.image("adamw")), "half": "bf16"}
    rows = list(program)
    stores = [i for i, row in enumerate(rows) if row.encoding.mnemonic.startswith("STG")]
    for i in stores:
        rows[i] = rows[i].with_control(replace(rows[i].control, read_barrier=NO_BARRIER))
    once = judge(unrolled(Program.of(rows), 1).encode(), declared)
    twice = judge(unrolled(Program.of(rows), 2).encode(), declared)
    assert not twice["accepted"]
    assert len(twice["hazards"]) > len(once["hazards"])
