"""fill, copy, casts, add, scale: at 6,291,456 elements and around the ends of quads and blocks."""

from collections.abc import Callable
from typing import Any, NamedTuple

import harness
import numpy as np
import pytest
from numpy.typing import NDArray

from coppelius.reference import bounds, cast
from coppelius.reference import half as halves

FACTOR = 1.7
VALUE = 0xDEADBEEF


class Case(NamedTuple):
    """An image: its inputs for a count, and what judges its output."""

    identity: str
    inputs: Callable[[int, int], dict[str, Any]]
    judge: Callable[[NDArray[Any], dict[str, Any], str], bounds.Measured]


def _floats(*names: str) -> Callable[[int, int], dict[str, Any]]:
    return lambda n, seed: {name: harness.hostile_f32(n, seed + at) for at, name in enumerate(names)}


def _judge_cast_down(out: NDArray[Any], given: dict[str, Any], half: str) -> bounds.Measured:
    return bounds.exact_bits(out, halves.to_bits(given["source"], half), nan=half)


def _judge_cast_up(out: NDArray[Any], given: dict[str, Any], half: str) -> bounds.Measured:
    with np.errstate(invalid="ignore"):
        return bounds.exact_bits(out, halves.from_bits(given["source"], half).astype(np.float32), nan="f32")


def _judge_add(out: NDArray[Any], given: dict[str, Any], half: str) -> bounds.Measured:  # noqa: ARG001
    with np.errstate(all="ignore"):
        return bounds.exact_bits(out, given["a"] + given["b"], nan="f32")  # one rounding, as the machine's


def _judge_scale(out: NDArray[Any], given: dict[str, Any], half: str) -> bounds.Measured:  # noqa: ARG001
    with np.errstate(all="ignore"):
        return bounds.exact_bits(out, given["a"] * np.float32(FACTOR), nan="f32")


CASES = [
    Case("fill", lambda _n, _seed: {"value": VALUE},
         lambda out, _, __: bounds.exact_bits(out, np.full_like(out, VALUE))),
    Case("copy", lambda n, seed: {"source": harness.hostile_f32(n, seed).view(np.uint32)},
         lambda out, given, _: bounds.exact_bits(out, given["source"])),
    Case("cast-down", _floats("source"), _judge_cast_down),
    Case("cast-up", lambda n, seed: {"source": harness.hostile_half(n, seed)}, _judge_cast_up),
    Case("add", _floats("a", "b"), _judge_add),
    Case("scale", lambda n, seed: {"a": harness.hostile_f32(n, seed), "factor": FACTOR}, _judge_scale),
]  # fmt: skip
IDENTITIES = [case.identity for case in CASES]


@pytest.mark.parametrize("half", harness.HALVES)
@pytest.mark.parametrize("case", CASES, ids=IDENTITIES)
def test_every_count_is_computed_and_nothing_else_touched(case: Case, half: str) -> None:
    for count in harness.COUNTS:
        given = case.inputs(count, count)
        out = harness.run(case.identity, half, out=count, count=count, **given)["out"]
        measured = case.judge(out, given, half)
        assert measured, f"n={count}: {measured}"


@pytest.mark.parametrize("case", CASES, ids=IDENTITIES)
def test_six_million_elements(case: Case) -> None:
    # the formats that differ are both run; a plain f32 image is the same material twice
    for half in harness.HALVES if case.identity.startswith("cast") else harness.HALVES[:1]:
        given = case.inputs(harness.LARGE, 7)
        out = harness.run(case.identity, half, out=harness.LARGE, count=harness.LARGE, **given)["out"]
        measured = case.judge(out, given, half)
        assert measured, f"{half}: {measured}"


@pytest.mark.parametrize("identity", ["fill", "copy", "add", "scale"])
def test_an_image_without_halves_is_the_same_in_both_formats(identity: str) -> None:
    assert harness.material(identity, "bf16") == harness.material(identity, "f16")


@pytest.mark.parametrize("half", harness.HALVES)
def test_every_half_survives_a_round_trip(half: str) -> None:
    every = np.arange(1 << 16, dtype=np.uint16)
    wide = harness.run("cast-up", half, out=1 << 16, source=every, count=1 << 16)["out"]
    back = harness.run("cast-down", half, out=1 << 16, source=wide, count=1 << 16)["out"]
    assert bounds.exact_bits(back, every, nan=half)


@pytest.mark.parametrize("half", harness.HALVES)
def test_ties_go_to_the_even_half_and_the_largest_to_infinity(half: str) -> None:
    form = halves.format_of(half)
    step = 2.0**-form.mantissa
    source = np.array([1 + step / 2, 1 + 3 * step / 2, -(1 + step / 2), 2.0 ** (form.most_exponent + 1)], np.float64)
    if half == "bf16":
        source[3] = 3.4e38
    out = harness.run("cast-down", half, out=4, source=source.astype(np.float32), count=4)["out"]
    assert halves.from_bits(out, half).tolist() == [1.0, 1 + 2 * step, -1.0, np.inf]


def test_reference_of_casts_is_the_rounding_used_here() -> None:
    values = harness.hostile_f32(1000, 1)
    assert bounds.exact_bits(cast.cast_down(values, "f16"), halves.to_bits(values, "f16"))


def test_a_count_of_zero_launches_nothing() -> None:
    for case in CASES:
        outputs, done = harness.report(case.identity, "bf16", out=0, count=0, **case.inputs(0, 0))
        assert done is None, case.identity
        assert harness.untouched(outputs["out"])
