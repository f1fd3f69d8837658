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


def test_any_finite_frequency_has_its_angle() -> None:
    """f32 quarters end at angles of 6.5e6; what is infinite or no number has none."""
    random = np.random.default_rng(2)
    frequencies = (random.choice([-1, 1], 32) * 2.0 ** random.uniform(7, 128, 32)).astype(np.float32)
    frequencies[:8] = [256, 257.3, 877.1, -1580, 5000.3, 1e6, 1e10, 2.0**23]
    frequencies[8] = np.finfo(np.float32).max
    frequencies[9:12] = [np.inf, -np.inf, np.nan]
    out = harness.run("rotary-table", "bf16", out=(4096, 32, 2), frequencies=frequencies, positions=4096)["out"]
    with np.errstate(invalid="ignore"):
        measured = bounds.absolute(out, rotary_table(frequencies, 4096), ERROR)
    assert measured, measured
    assert measured.worst < 0.2  # measured: 0.093 of the bound
    assert np.isnan(out[:, 9:12]).all()


def test_either_way_gives_the_same_angles_where_they_meet() -> None:
    """Neighbours of the angle from which integers take over, each exponent's shift of the bits."""
    frequencies = np.nextafter(np.float32(2.0**20) / np.arange(64, 96, dtype=np.float32), np.float32(0))
    frequencies[::2] = np.nextafter(frequencies[::2], np.float32(np.inf))
    frequencies[16:] = 2.0 ** np.arange(20, 116, 6, dtype=np.float32)
    out = harness.run("rotary-table", "bf16", out=(100, 32, 2), frequencies=frequencies, positions=100)["out"]
    measured = bounds.absolute(out, rotary_table(frequencies, 100), ERROR)
    assert measured, measured
