"""argmax: the lowest index of the largest value, at the model's vocabulary."""

import harness
import numpy as np
import pytest
from numpy.typing import NDArray

from coppelius import model
from coppelius.reference import bounds
from coppelius.reference.argmax import argmax


def rows() -> NDArray[np.float32]:
    """Rows that random numbers do not give: ties, -0, denormals, infinities, NaN."""
    random = np.random.default_rng(1)
    logits = random.standard_normal((40, model.VOCABULARY)).astype(np.float32)
    logits[0] = np.nan
    logits[1] = -np.inf
    logits[2, :] = np.nan
    logits[2, 5000] = -np.inf  # the only number
    logits[3] = 0.0
    logits[3, ::2] = -0.0  # -0 equals +0: index 0
    logits[4] = -1e-45
    logits[4, [9000, 77]] = 1e-45  # the least denormals decide
    logits[5, [3, 4, 12287]] = 100.0
    logits[6, [12286, 12287]] = np.inf
    logits[7] = 1.0
    logits[8, ::3] = np.nan
    logits[9, :] = -3.4028235e38
    logits[10, :12287] = np.nan
    logits[11, 1000:] = np.float32(logits[11].max()) + 1
    logits[12] = -np.inf
    logits[12, 0] = np.nan  # index 1 is the lowest of the largest
    return logits


@pytest.mark.parametrize("half", harness.HALVES)
def test_the_lowest_index_of_the_largest_value(half: str) -> None:
    logits = rows()
    measured = bounds.exact_bits(harness.run("argmax", half, out=len(logits), logits=logits)["out"], argmax(logits))
    assert measured, measured


def test_the_whole_sequence_with_many_ties() -> None:
    logits = np.random.default_rng(2).integers(-3, 4, (model.SEQUENCE, model.VOCABULARY)).astype(np.float32)
    measured = bounds.exact_bits(harness.run("argmax", "bf16", out=len(logits), logits=logits)["out"], argmax(logits))
    assert measured, measured


def test_no_rows_launch_nothing() -> None:
    outputs, done = harness.report("argmax", "bf16", out=0, logits=np.zeros((0, model.VOCABULARY), np.float32))
    assert done is None
    assert harness.untouched(outputs["out"])
