"""layernorm-parameters: sums down the columns for any number of rows, in an order that the number alone fixes."""

from typing import Any

import harness
import numpy as np
import pytest

from coppelius import model
from coppelius.reference import bounds
from coppelius.reference.layernorm import layernorm_forward, layernorm_parameters

W = model.WIDTH
Inputs = dict[str, Any]
KINDS = ("normal", "wide", "constant", "large mean", "denormal")


def given(rows: int, kind: str = "normal") -> Inputs:
    random = np.random.default_rng(rows)
    dy, x = random.standard_normal((2, rows, W))
    if kind == "wide":
        dy *= 10.0 ** random.uniform(-12, 12, dy.shape)
        x *= 10.0 ** random.uniform(-4, 4, (rows, 1))
    if kind == "constant":
        dy[:], x[:] = 0.1, 2.5
    if kind == "large mean":
        dy, x = dy + 1e4, x + 1e4
    if kind == "denormal":
        dy *= 1e-41
    x32 = x.astype(np.float32)
    forward = layernorm_forward(x32, np.ones(W), np.zeros(W), model.LAYERNORM_EPSILON)
    mean, rstd = forward.mean.astype(np.float32), forward.rstd.astype(np.float32)
    return {"dy": dy.astype(np.float32), "x": x32, "mean": mean, "rstd": rstd}


def held(rows: int, inputs: Inputs, half: str = "bf16") -> None:
    """Runs it and holds both sums to the reference; a row's product is rounded at least to the smallest f32."""
    out = harness.run("layernorm-parameters", half, dgain=W, dbias=W, **inputs, rows=rows)
    with np.errstate(invalid="ignore"):
        reference = layernorm_parameters(**inputs)
    least = rows * 2.0**-149 / bounds.SUM
    for got, sums, magnitude in (
        (out["dgain"], reference.dgain, np.maximum(reference.dgain_magnitude, least)),
        (out["dbias"], reference.dbias, reference.dbias_magnitude),
    ):
        measured = bounds.column_sum(got, sums, magnitude)
        assert measured, measured


@pytest.mark.parametrize("half", harness.HALVES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_models_rows(kind: str, half: str) -> None:
    held(model.SEQUENCE, given(model.SEQUENCE, kind), half)


@pytest.mark.parametrize("rows", [1, 2, 3, 15, 16, 17, 255, 256, 257, 511, 512, 513, 1023, 1025])
def test_any_number_of_rows(rows: int) -> None:
    held(rows, given(rows))


def test_no_rows_launch_nothing() -> None:
    outputs, done = harness.report("layernorm-parameters", "bf16", dgain=W, dbias=W, **given(0), rows=0)
    assert done is None
    assert all(harness.untouched(output) for output in outputs.values())


def test_many_rows() -> None:
    held(8191, given(8191, "constant"))


def test_rows_past_the_count_are_not_read() -> None:
    inputs = given(300)
    for array in inputs.values():
        array[200:] = np.nan
    out = harness.run("layernorm-parameters", "bf16", dgain=W, dbias=W, **inputs, rows=200)
    reference = layernorm_parameters(**{name: array[:200] for name, array in inputs.items()})
    assert bounds.column_sum(out["dgain"], reference.dgain, reference.dgain_magnitude)
    assert bounds.column_sum(out["dbias"], reference.dbias, reference.dbias_magnitude)


def test_what_is_no_number_spoils_its_own_columns_only() -> None:
    inputs = given(100)
    inputs["dy"][7, 100] = np.nan
    inputs["dy"][8, 200] = np.inf
    inputs["x"][9, 300] = np.nan
    held(100, inputs)


def test_a_block_writes_its_eight_columns_and_any_order_gives_the_same_bits() -> None:
    inputs = given(700)
    whole = harness.run("layernorm-parameters", "f16", dgain=W, dbias=W, **inputs, rows=700)
    other = harness.run(
        "layernorm-parameters", "f16", blocks=list(reversed(range(64))), dgain=W, dbias=W, **inputs, rows=700
    )
    one = harness.run("layernorm-parameters", "f16", blocks=[5], dgain=W, dbias=W, **inputs, rows=700)
    for name, sums in whole.items():
        assert bounds.exact_bits(other[name], sums)
        assert bounds.exact_bits(one[name][40:48].copy(), sums[40:48])
        one[name][40:48].view(np.uint8)[:] = harness.UNWRITTEN
        assert harness.untouched(one[name])
