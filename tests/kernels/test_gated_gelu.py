"""gated-gelu: forward and both gradients, from the flat tails to the limits."""

from typing import Any

import harness
import numpy as np
import pytest
from numpy.typing import NDArray

from coppelius.reference import bounds
from coppelius.reference import half as halves
from coppelius.reference.gated_gelu import gated_gelu_backward, gated_gelu_forward


def inputs(count: int, seed: int) -> dict[str, NDArray[np.float32]]:
    """Gates of a model, every fourth of any size; the other factors of moderate size."""
    random = np.random.default_rng(seed)
    gate = random.standard_normal(count) * 3
    gate[::4] *= 10.0 ** random.uniform(-30, 20, len(gate[::4]))
    gate[1::4] = random.uniform(-14, 14, len(gate[1::4]))
    special = np.array([0.0, -0.0, 1e-45, -1e-45, 1e30, -1e30, 3.4e38, -3.4e38, -10.5, 40.0, -0.7517916])
    gate[: min(count, 11)] = special[:count]
    up, dout = random.standard_normal((2, count)) * 10.0 ** random.uniform(-3, 3, (2, count))
    return {name: v.astype(np.float32) for name, v in (("gate", gate), ("up", up), ("dout", dout))}


def check_forward(given: dict[str, Any], half: str) -> bounds.Measured:
    gate, up = given["gate"], given["up"]
    n = len(gate)
    outputs, done = harness.report("gated-gelu-forward", half, out=n, gate=gate, up=up, count=n)
    assert (done is None) == (n == 0)
    return bounds.half_output(outputs["out"], gated_gelu_forward(gate, up), half)


def check_backward(given: dict[str, Any], half: str) -> tuple[bounds.Measured, bounds.Measured]:
    n = len(given["gate"])
    outputs, done = harness.report("gated-gelu-backward", half, dgate=n, dup=n, count=n, **given)
    assert (done is None) == (n == 0)
    with np.errstate(all="ignore"):
        reference = gated_gelu_backward(given["dout"], given["gate"], given["up"])
    return (
        bounds.half_output(outputs["dgate"], reference.dgate, half, reference.dgate_terms),
        bounds.half_output(outputs["dup"], reference.dup, half),
    )


@pytest.mark.parametrize("half", harness.HALVES)
@pytest.mark.parametrize("count", [*harness.COUNTS, 200_000])
def test_every_count(count: int, half: str) -> None:
    given = inputs(count, count)
    for measured in (check_forward(given, half), *check_backward(given, half)):
        assert measured, f"n={count}: {measured}"


def test_six_million_elements() -> None:
    given = inputs(harness.LARGE, 1)
    for measured in (check_forward(given, "bf16"), *check_backward(given, "f16")):
        assert measured, measured


@pytest.mark.parametrize("half", harness.HALVES)
def test_large_gates_give_the_limits(half: str) -> None:
    gate = np.array([1e30, -1e30, 3.4e38, -3.4e38, 1e19, -1e19, 50.0, -50.0], np.float32)
    one = np.ones_like(gate)
    out = harness.run("gated-gelu-backward", half, dgate=8, dup=8, count=8, gate=gate, up=one, dout=one)
    assert halves.from_bits(out["dgate"], half).tolist() == [1, 0, 1, 0, 1, 0, 1, 0]


def test_denormal_results_survive_far_below_zero() -> None:
    gate = np.linspace(-10.4, -9.5, 4096).astype(np.float32)
    measured = check_forward({"gate": gate, "up": np.ones_like(gate)}, "bf16")
    assert measured, measured


def test_what_is_no_number_stays_none() -> None:
    gate = np.array([np.nan, 1.0, 1.0, np.inf], np.float32)
    up = np.array([1.0, np.nan, np.inf, 1.0], np.float32)
    out = harness.run("gated-gelu-forward", "f16", out=4, gate=gate, up=up, count=4)["out"]
    assert out.view(np.float16)[2:].tolist() == [np.inf, np.inf]
    assert np.isnan(out.view(np.float16)[:2]).all()


@pytest.mark.parametrize("half", harness.HALVES)
def test_no_number_in_any_input_reaches_the_gradients_as_in_the_reference(half: str) -> None:
    bad = np.array([np.nan, np.inf, -np.inf], np.float32)
    given = {name: np.full(1027, 0.75, np.float32) for name in ("gate", "up", "dout")}
    for place, name in enumerate(("up", "dout")):
        given[name][8 * place + np.arange(3)] = bad  # in whole quads
        given[name][1024 + place] = np.nan  # and in the tail
    given["gate"][16] = np.nan
    for measured in check_backward(given, half):
        assert measured, measured
