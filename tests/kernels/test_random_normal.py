"""random-normal: Philox's words as Random123 has them, then Box-Muller within the specified error."""

import harness
import pytest

from coppelius.reference import bounds
from coppelius.reference.random_normal import random_normal

SEED = 0x0123456789ABCDEF


@pytest.mark.parametrize("count", harness.COUNTS)
def test_every_count(count: int) -> None:
    reference = random_normal(count, 0.02, SEED, 3)
    for half in harness.HALVES:
        given = {"std": 0.02, "seed": SEED, "stream": 3}
        outputs, done = harness.report("random-normal", half, out=count, count=count, **given)
        assert (done is None) == (count == 0)
        measured = bounds.absolute(outputs["out"], reference.values, reference.bound)
        assert measured, f"n={count}: {measured}"


def test_six_million_elements() -> None:
    given = {"std": 1.0, "seed": 7, "stream": 0xFFFFFFFF}
    out = harness.run("random-normal", "bf16", out=harness.LARGE, count=harness.LARGE, **given)["out"]
    reference = random_normal(harness.LARGE, 1.0, 7, 0xFFFFFFFF)
    measured = bounds.absolute(out, reference.values, reference.bound)
    assert measured, measured
    assert measured.worst < 0.5  # measured: 0.20 of the bound
    assert abs(float(out.mean())) < 2e-3
    assert abs(float(out.std()) - 1) < 1e-3


@pytest.mark.parametrize("seed", [0, (1 << 64) - 1, 0xFFFFFFFF, 1 << 32])
def test_both_words_of_the_seed_and_the_stream_count(seed: int) -> None:
    seen = set()
    for stream in (0, 1):
        out = harness.run("random-normal", "bf16", out=64, count=64, std=1.0, seed=seed, stream=stream)["out"]
        reference = random_normal(64, 1.0, seed, stream)
        assert bounds.absolute(out, reference.values, reference.bound)
        seen.add(out.tobytes())
    assert len(seen) == 2


def test_a_deviation_of_zero_gives_zeros() -> None:
    out = harness.run("random-normal", "bf16", out=1023, count=1023, std=0.0, seed=1, stream=0)["out"]
    assert not out.any()
