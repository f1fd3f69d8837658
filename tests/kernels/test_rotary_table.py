"""rotary-table: cosines and sines of exact products, far around the circle."""

import harness
import numpy as np
import pytest

from coppelius.reference import bounds
from coppelius.reference.rotary_table import ERROR, model_frequencies, rotary_table


@pytest.mark.parametrize("positions", [0, 1, 7, 9, 4096])
def test_the_models_frequencies(positions: int) -> None:
    frequencies = model_frequencies()
    for half in harness.HALVES:
        outputs, done = harness.report(
            "rotary-table", half, out=(positions, 32, 2), frequencies=frequencies, positions=positions
        )
        assert (done is None) == (positions == 0)
        measured = bounds.absolute(outputs["out"], rotary_table(frequencies, positions), ERROR)
        assert measured, measured
        assert measured.worst < 0.2  # measured: 0.087 of the bound


def test_frequencies_as_given() -> None:
    random = np.random.default_rng(1)
    frequencies = (random.standard_normal(32) * 10.0 ** random.uniform(-8, 3, 32)).astype(np.float32)
    frequencies[:4] = [0.0, -0.0, np.pi, -np.pi / 2]
    frequencies[4:6] = [1e-45, 1.5707964]
    out = harness.run("rotary-table", "bf16", out=(4096, 32, 2), frequencies=frequencies, positions=4096)["out"]
    measured = bounds.absolute(out, rotary_table(frequencies, 4096), ERROR)
    assert measured, measured
