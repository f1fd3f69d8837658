"""Kernels hold their bounds on any card: the slow unit's results moved to the ends of its published error.

The emulator gives each MUFU correctly rounded; a card may differ by up to `numerics.mufu.BOUNDS`.
Here every result is moved by the whole of that, up, down, or at random.
"""

from collections.abc import Callable
from typing import Any

import harness
import numpy as np
import pytest
from numpy.typing import NDArray
from test_adamw import SCALARS, E, owned, step, values
from test_gated_gelu import check_backward, check_forward, inputs

from coppelius import model
from coppelius.emulator.numerics.mufu import BOUNDS, mufu
from coppelius.emulator.semantics import transcendental
from coppelius.reference import bounds
from coppelius.reference.adamw import adamw
from coppelius.reference.cross_entropy import cross_entropy, cross_entropy_backward
from coppelius.reference.layernorm import layernorm_forward
from coppelius.reference.random_normal import random_normal
from coppelius.reference.softmax import softmax_forward

Words = NDArray[np.uint32]
DIRECTIONS: dict[str, Callable[[int], NDArray[np.float64]]] = {
    "up": lambda n: np.ones(n),
    "down": lambda n: -np.ones(n),
    "either": lambda n: np.random.default_rng(n).choice([-1.0, 1.0], n),
}


@pytest.fixture(params=DIRECTIONS)
def moved(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces the emulator's MUFU by the worst that its bounds allow."""
    direction = DIRECTIONS[request.param]

    def worst(bits: Words, function: str) -> Words:
        exact = mufu(bits, function).view(np.float32).astype(np.float64)
        kind, bound = BOUNDS[function]
        size = np.abs(exact)
        if kind == "absolute" or (function == "LG2" and kind != "relative"):
            argument = np.abs(np.asarray(bits).view(np.float32))
            near = (argument >= 0.5) & (argument <= 2) if kind != "absolute" else np.ones(exact.shape, bool)
            size = np.where(near, 1.0, size)
        with np.errstate(all="ignore"):
            # half an ulp of the exact value's own rounding is part of the bound
            off = np.maximum(size * bound - np.spacing(np.abs(exact).astype(np.float32)) / 2, 0.0)
            out = (exact + direction(exact.size).reshape(exact.shape) * off).astype(np.float32)
        usable = np.isfinite(exact) & (exact != 0)
        return np.where(usable, out, exact.astype(np.float32)).view(np.uint32)

    monkeypatch.setattr(transcendental, "mufu", worst)


def holds(*measured: bounds.Measured) -> None:
    for one in measured:
        assert one, one


@pytest.mark.usefixtures("moved")
def test_random_normal() -> None:
    n = 100_000
    out = harness.run("random-normal", "bf16", out=n, count=n, std=1.0, seed=5, stream=1)["out"]
    reference = random_normal(n, 1.0, 5, 1)
    holds(bounds.absolute(out, reference.values, reference.bound))


@pytest.mark.usefixtures("moved")
@pytest.mark.parametrize("half", harness.HALVES)
def test_gated_gelu(half: str) -> None:
    given = inputs(50_000, 4)
    holds(check_forward(given, half), *check_backward(given, half))


@pytest.mark.usefixtures("moved")
@pytest.mark.parametrize("half", harness.HALVES)
def test_softmax(half: str) -> None:
    s = model.SEQUENCE
    x = (np.random.default_rng(1).standard_normal((1, s, s)) * 10).astype(np.float32)
    rows = range(0, s, 17)
    out = harness.run("softmax-forward", half, probs=(1, s, s), scores=x, scale=0.125, blocks=list(rows))["probs"]
    holds(bounds.half_output(out[:, ::17], softmax_forward(x, 0.125)[:, ::17], half))


@pytest.mark.usefixtures("moved")
def test_layernorm() -> None:
    random = np.random.default_rng(2)
    x = (random.standard_normal((100, model.WIDTH)) + random.standard_normal((100, 1)) * 50).astype(np.float32)
    ones, zeros = np.ones(model.WIDTH, np.float32), np.zeros(model.WIDTH, np.float32)
    given: dict[str, Any] = {"x": x, "gain": ones, "bias": zeros, "epsilon": model.LAYERNORM_EPSILON}
    out = harness.run("layernorm-forward", "f16", out=x.shape, mean=100, rstd=100, **given)
    reference = layernorm_forward(x, ones, zeros, model.LAYERNORM_EPSILON)
    holds(
        bounds.row_reduction(out["rstd"], reference.rstd),
        bounds.half_output(out["out"], reference.out, "f16", reference.terms),
    )


@pytest.mark.usefixtures("moved")
@pytest.mark.parametrize("half", harness.HALVES)
def test_cross_entropy(half: str) -> None:
    random = np.random.default_rng(3)
    logits = (random.standard_normal((24, model.VOCABULARY)) * random.uniform(0, 8, (24, 1))).astype(np.float32)
    targets = random.integers(0, model.VOCABULARY, 24, dtype=np.uint32)
    out = harness.run("cross-entropy", half, loss=24, lse=24, logits=logits, targets=targets)
    reference = cross_entropy(logits, targets)
    holds(
        bounds.row_reduction(out["loss"], reference.loss, reference.magnitude),
        bounds.row_reduction(out["lse"], reference.lse, reference.magnitude),
    )
    lse = reference.lse.astype(np.float32)
    given: dict[str, Any] = {"logits": logits, "lse": lse, "targets": targets, "scale": 1 / 1024}
    got = harness.run("cross-entropy-backward", half, dlogits=logits.shape, **given)["dlogits"]
    backward = cross_entropy_backward(logits, lse, targets, 1 / 1024)
    holds(bounds.half_output(got, backward.dlogits, half, backward.terms))


@pytest.mark.usefixtures("moved")
def test_adamw() -> None:
    bank = {name: np.zeros(E, np.float32) for name in "pmvg"}
    given = values(len(owned([7])), "fresh bias")
    out = step(bank, [7], "bf16", given, SCALARS)
    reference = adamw(given["p"], given["m"], given["v"], given["g"], SCALARS)
    holds(bounds.elementwise_f32(out["p"], reference.p, reference.p_terms))


def test_the_move_reaches_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {"std": 1.0, "seed": 5, "stream": 1}
    before = harness.run("random-normal", "bf16", out=1000, count=1000, **given)["out"]
    monkeypatch.setattr(transcendental, "mufu", lambda bits, function: mufu(bits, function) + np.uint32(1))
    after = harness.run("random-normal", "bf16", out=1000, count=1000, **given)["out"]
    assert (before != after).mean() > 0.5
