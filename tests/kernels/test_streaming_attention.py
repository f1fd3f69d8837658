"""attention-forward, -query and -key against float64: small shapes whole and exact, the model's by its blocks."""

from functools import cache
from typing import Any

import attention_cases as cases
import harness
import numpy as np
import pytest
from attention_cases import Case, case
from numpy.typing import NDArray

from coppelius import catalog, model
from coppelius.check.verdict import judge
from coppelius.emit import emit
from coppelius.isa.refusal import Refusal
from coppelius.reference import bounds
from coppelius.reference import half as halves

PASSES = ("attention-forward", "attention-query", "attention-key")
STATISTICS = ("lse", "delta")


def misses(outputs: cases.Outputs, made: Case, identity: str, rows: Any = slice(None)) -> list[str]:
    """The outputs that are not within their bounds, in these rows [heads, S]."""
    found = []
    for name, reference in made.expected(identity).items():
        got = halves.from_bits(outputs[name], made.half) if name == "out" else outputs[name]
        if name in STATISTICS:
            measured = bounds.attention_statistics(got[rows], reference[rows])
        else:
            measured = bounds.attention(got[rows], reference[rows], made.half)
        if not measured:
            found.append(f"{name}: {measured}")
    return found


def holds(made: Case, identity: str, **modes: Any) -> cases.Outputs:
    """Runs the pass and holds all of its outputs to their bounds."""
    outputs = cases.run(identity, made.half, made.given(identity), **modes)
    missed = misses(outputs, made, identity)
    assert not missed, "\n".join(missed)
    return outputs


@pytest.mark.parametrize("half", harness.HALVES)
@pytest.mark.parametrize(("sequence", "heads"), [(64, 1), (128, 2), (192, 2)])
@pytest.mark.parametrize("identity", PASSES)
def test_small_shapes(identity: str, sequence: int, heads: int, half: str) -> None:
    holds(case(half, sequence, heads), identity)


@cache
def of_the_model(half: str) -> Case:
    """The model's own shape."""
    return case(half, model.SEQUENCE, model.HEADS, seed=2)


@pytest.mark.parametrize("half", harness.HALVES)
@pytest.mark.parametrize("identity", PASSES)
def test_blocks_of_the_models_shape(identity: str, half: str) -> None:
    made = of_the_model(half)
    count = model.HEADS * model.SEQUENCE // cases.ROWS
    blocks = np.random.default_rng(3).choice(count, 8, replace=False)
    outputs = cases.run(identity, half, made.given(identity), blocks=sorted(blocks.tolist()), mma="fast")
    rows = np.zeros((model.HEADS, model.SEQUENCE), bool)
    for block in blocks:
        head, group = block % model.HEADS, block // model.HEADS
        # the longest way comes first: for keys that is the first rows
        first = cases.ROWS * group if identity == "attention-key" else model.SEQUENCE - cases.ROWS * (group + 1)
        rows[head, first : first + cases.ROWS] = True
    missed = misses(outputs, made, identity, rows)
    assert not missed, "\n".join(missed)
    for array in outputs.values():
        assert harness.untouched(array[~rows])


@pytest.mark.slow
@pytest.mark.parametrize("mma", ["fast", "exact"])
@pytest.mark.parametrize("half", harness.HALVES)
@pytest.mark.parametrize("identity", PASSES)
def test_the_models_shape(identity: str, half: str, mma: str) -> None:
    holds(of_the_model(half), identity, mma=mma)


@pytest.mark.parametrize("half", harness.HALVES)
@pytest.mark.parametrize("identity", PASSES)
def test_the_schedule_honoured_gives_the_same_bits(identity: str, half: str) -> None:
    made = case(half, 128, 2)
    fast, again, strict = (
        cases.run(identity, half, made.given(identity), **modes)
        for modes in ({}, {"batch_threads": 128}, {"mode": "strict", "blocks": [1, 2]})
    )
    for name, array in fast.items():
        assert _bits(array).tobytes() == _bits(again[name]).tobytes()
        # outputs that strict mode's blocks did not write hold the pattern
        written = (
            _bits(strict[name]) != _bits(np.full(1, harness.UNWRITTEN * 0x01010101, np.uint32).view(array.dtype))[0]
        )
        assert 0.4 < written.mean() < 0.6
        assert (_bits(strict[name]) == _bits(array))[written].all()


def _bits(array: NDArray[Any]) -> NDArray[Any]:
    return array.view(f"u{array.dtype.itemsize}")


@pytest.mark.parametrize("half", harness.HALVES)
@pytest.mark.parametrize("scale", [-0.5, 0.0, 2.0])
@pytest.mark.parametrize("identity", PASSES)
def test_any_scale(identity: str, scale: float, half: str) -> None:
    holds(case(half, 128, 1, scale=scale), identity)


# what a training step may hold that is far from 1; halves of f16 lose digits below 2^-14 and end at 65504
FAR: dict[str, dict[str, Any]] = {
    "small losses": {"dout": 1e-4},
    "large values": {"v": 1e3, "dout": 1e3},
    "sharp": {"q": 4.0, "k": 4.0},
    "flat": {"q": 1e-3, "k": 1e-3},
    "denormal": {"q": 1e-6, "k": 1e-6, "dout": 1e-6},
}


@pytest.mark.parametrize("half", harness.HALVES)
@pytest.mark.parametrize("size", FAR.values(), ids=FAR)
@pytest.mark.parametrize("identity", PASSES)
def test_far_from_one(identity: str, size: dict[str, Any], half: str) -> None:
    holds(case(half, 128, 1, **size), identity)


@pytest.mark.parametrize("half", harness.HALVES)
@pytest.mark.parametrize("identity", PASSES)
def test_constant_inputs(identity: str, half: str) -> None:
    ones = np.full((1, 128, cases.DEPTH), halves.to_bits(1.5, half))
    holds(Case(half, ones, ones, ones, ones), identity)


@pytest.mark.parametrize("half", harness.HALVES)
def test_scores_too_large_for_their_exponents(half: str) -> None:
    made = case(half, 128, 1, q=1e4, k=1e4)
    holds(made, "attention-forward")
    # lse is then coarser than the scores' differences, and gradients only have to stay numbers
    for identity in PASSES[1:]:
        for array in cases.run(identity, half, made.given(identity)).values():
            assert np.isfinite(array).all()


def test_scores_of_minus_infinity() -> None:
    made = case("bf16", 128, 1)
    # finite in both operands, past the largest f32 in their product
    made.q[..., 0] = halves.to_bits(1e30, "bf16")
    made.k[..., 0] = 0
    made.k[:, 5:100:7, 0] = halves.to_bits(-1e30, "bf16")
    made = Case("bf16", made.q, made.k, made.v, made.dout)
    for identity in PASSES[:2]:
        holds(made, identity)
    outputs = cases.run("attention-key", "bf16", made.given("attention-key"))
    reference = made.expected("attention-key")
    # column 0 of dk sums 1e30 times gradients that cancel: rounding of 1e30 is all that it holds
    assert bounds.attention(outputs["dk"][..., 1:], reference["dk"][..., 1:], "bf16")
    assert bounds.attention(outputs["dv"], reference["dv"], "bf16")
    assert not outputs["dv"][:, 5:100:7].any()


@pytest.mark.parametrize("half", harness.HALVES)
def test_rows_of_nothing_but_minus_infinity(half: str) -> None:
    made = case(half, 128, 1)
    made.q[..., 0] = halves.to_bits(1.0, half)
    made.k[:, :20, 0] = halves.to_bits(-np.inf, half)
    outputs = cases.run("attention-forward", half, made.given("attention-forward"))
    assert halves.is_nan(outputs["out"][0, :20], half).all()
    assert (outputs["lse"][0, :20] == -np.inf).all()
    seen = Case(half, made.q[:, 20:], made.k[:, 20:], made.v[:, 20:], made.dout[:, 20:]).forward
    assert bounds.attention(halves.from_bits(outputs["out"][:, 20:], half), seen.out, half)
    assert bounds.attention_statistics(outputs["lse"][:, 20:], seen.lse)


@pytest.mark.parametrize("half", harness.HALVES)
def test_what_comes_later_has_no_effect(half: str) -> None:
    made, nan = case(half, 192, 1), halves.NAN_BITS
    whole = cases.run("attention-forward", half, made.given("attention-forward"))
    spoiled = made.given("attention-forward")
    spoiled["k"] = made.k.copy()
    spoiled["k"][:, 150:] = nan
    # values only in tiles that the rows never reach
    spoiled["vt"][:, :, 128:] = np.where(np.arange(64) >= 22, nan, spoiled["vt"][:, :, 128:])
    outputs = cases.run("attention-forward", half, spoiled)
    assert (outputs["lse"][:, :150] == whole["lse"][:, :150]).all()
    assert (outputs["out"][:, :128] == whole["out"][:, :128]).all()
    assert halves.is_nan(outputs["out"][:, 150:], half).all()
    assert np.isnan(outputs["lse"][:, 150:]).all()


@pytest.mark.parametrize("half", harness.HALVES)
def test_a_nan_in_a_query_stays_in_its_row(half: str) -> None:
    made = case(half, 128, 1)
    made.q[0, 70, 3] = halves.NAN_BITS
    outputs = cases.run("attention-forward", half, made.given("attention-forward"))
    assert np.flatnonzero(np.isnan(outputs["lse"][0])).tolist() == [70]
    assert np.flatnonzero(halves.is_nan(outputs["out"][0], half).any(axis=1)).tolist() == [70]
    outputs = cases.run("attention-query", half, made.given("attention-query"))
    assert np.flatnonzero(np.isnan(outputs["dq"][0]).any(axis=1)).tolist() == [70]
    assert np.isfinite(outputs["delta"]).all()


@pytest.mark.parametrize("half", harness.HALVES)
@pytest.mark.parametrize("identity", PASSES)
def test_the_checkers_accept_a_long_sequence(identity: str, half: str) -> None:
    row = cases.image(identity, 4096, 3)
    material = cases.material(identity, 4096, 3, half)
    verdict = judge(material, {"registers": row.registers, "shared_bytes": 0, "half": half})
    assert verdict["accepted"], verdict["hazards"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"depth": 32}, "heads of 32 are not 64 deep"),
        ({"sequence": 96}, "8 heads of 96 rows are no whole blocks of 64 rows"),
        ({"heads": 0}, "0 heads of 1024 rows"),
    ],
)
@pytest.mark.parametrize("identity", PASSES)
def test_shapes_that_are_refused(identity: str, options: dict[str, int], message: str) -> None:
    row = harness.image(identity)
    parameters = catalog.declaration(row)["parameters"]
    with pytest.raises(Refusal, match=message):
        emit(row.kernel, {**row.options, **options}, parameters=parameters, registers=None, block_x=128)


FIRST = 74  # rows from here on, inside a tile of each pass


@pytest.mark.parametrize("identity", PASSES)
def test_masked_scores_that_overflow_have_no_effect(identity: str) -> None:
    made = case("bf16", 192, 2)
    # finite in both operands, and in each pair that is not masked one of them is 0
    made.q[..., 0] = made.k[..., 0] = 0
    made.k[:, FIRST:, 0] = halves.to_bits(np.resize([1e30, -1e30], 192 - FIRST), "bf16")
    spoiled = made.q.copy()
    spoiled[:, :FIRST, 0] = halves.to_bits(1e30, "bf16")
    cases_ = [Case("bf16", q, made.k, made.v, made.dout) for q in (spoiled, made.q)]
    outputs, same = (cases.run(identity, "bf16", one.given(identity)) for one in cases_)
    for name, array in outputs.items():
        if name == "dk":  # sums of the queries themselves
            array, same[name] = array[..., 1:].copy(), same[name][..., 1:].copy()
        assert _bits(array).tobytes() == _bits(same[name]).tobytes(), name
    if identity != "attention-key":
        assert not misses(outputs, cases_[0], identity)


# what goes into scores and their gradients, and not into a product that the masked ones are 0 in
INTO_SCORES = {
    "attention-forward": ("k",),
    "attention-query": ("k", "v"),
    "attention-key": ("q", "dout", "lse", "delta"),
}


@pytest.mark.parametrize("half", harness.HALVES)
@pytest.mark.parametrize("identity", PASSES)
def test_masked_scores_of_nan_have_no_effect(identity: str, half: str) -> None:
    made, backward = case(half, 192, 2), identity == "attention-key"
    # keys before the query are not masked: rows are kept that all of the spoiled ones are masked for
    kept, other = (slice(FIRST, None), slice(0, FIRST)) if backward else (slice(0, FIRST), slice(FIRST, None))
    given = made.given(identity)
    whole = cases.run(identity, half, given)
    given |= {name: spoil(given[name], other) for name in INTO_SCORES[identity]}
    for name, array in cases.run(identity, half, given).items():
        assert _bits(array[:, kept]).tobytes() == _bits(whole[name][:, kept]).tobytes(), name
        assert not numbers(array[:, other], half).all() or name == "delta"


def numbers(array: NDArray[Any], half: str) -> NDArray[np.bool_]:
    """Which elements are not NaN."""
    return ~(halves.is_nan(array, half) if array.dtype == np.uint16 else np.isnan(array))


def spoil(array: NDArray[Any], rows: slice, turned: bool = False) -> NDArray[Any]:
    """NaN in these rows of the sequence."""
    made = array.copy()
    at = (slice(None), slice(None), rows) if turned else (slice(None), rows)
    made[at] = halves.NAN_BITS if array.dtype == np.uint16 else np.nan
    return made


# all that the pass reads of keys after the queries, or of queries before the keys
AFTER = {"attention-forward": ("k", "vt"), "attention-query": ("k", "kt", "v")}
BEFORE = ("q", "qt", "dout", "doutt", "lse", "delta")
TURNED = ("vt", "kt", "qt", "doutt")


@pytest.mark.parametrize("half", harness.HALVES)
@pytest.mark.parametrize("identity", PASSES)
def test_tiles_that_are_masked_as_a_whole_may_hold_nan(identity: str, half: str) -> None:
    made, backward = case(half, 192, 2), identity == "attention-key"
    kept, other = (slice(64, None), slice(0, 64)) if backward else (slice(0, 128), slice(128, None))
    given = made.given(identity)
    whole = cases.run(identity, half, given)
    given |= {name: spoil(given[name], other, name in TURNED) for name in (BEFORE if backward else AFTER[identity])}
    for name, array in cases.run(identity, half, given).items():
        assert _bits(array[:, kept]).tobytes() == _bits(whole[name][:, kept]).tobytes(), name
        assert not numbers(array[:, other], half).all() or name == "delta"


# a NaN in row 70 of an operand of the second product: the output, the rows where it belongs, and those of its tile too
LIMITS = [
    ("attention-forward", "vt", "out", range(70, 192), range(64, 70)),
    ("attention-query", "kt", "dq", range(70, 192), range(64, 70)),
    ("attention-key", "qt", "dk", range(71), range(71, 96)),
    ("attention-key", "doutt", "dv", range(71), range(71, 96)),
]


@pytest.mark.parametrize("half", harness.HALVES)
@pytest.mark.parametrize(("identity", "operand", "output", "right", "wrong"), LIMITS)
def test_a_nan_in_the_diagonals_tile_reaches_all_of_its_rows(
    identity: str, operand: str, output: str, right: range, wrong: range, half: str
) -> None:
    """The limit that the passes' docstrings name: a probability or gradient of 0 times NaN is NaN."""
    given = case(half, 192, 1).given(identity)
    given[operand] = spoil(given[operand], slice(70, 71), turned=True)
    outputs = cases.run(identity, half, given)
    reached = {
        name: np.flatnonzero(~numbers(array[0], half).reshape(192, -1).all(axis=1)) for name, array in outputs.items()
    }
    assert reached.pop(output).tolist() == sorted([*right, *wrong])
    assert not any(len(rows) for rows in reached.values())
