"""cross-entropy and its gradient at the model's vocabulary."""

import harness
import numpy as np
import pytest
from numpy.typing import NDArray

from coppelius import model
from coppelius.reference import bounds
from coppelius.reference import half as halves
from coppelius.reference.cross_entropy import cross_entropy, cross_entropy_backward

V = model.VOCABULARY
Rows = tuple[NDArray[np.float32], NDArray[np.uint32]]


def plain(rows: int, seed: int) -> Rows:
    """Logits of a model, and targets of which some are ignored."""
    random = np.random.default_rng(seed)
    logits = (random.standard_normal((rows, V)) * 3).astype(np.float32)
    targets = random.integers(0, V, rows, dtype=np.uint32)
    targets[: min(rows, 4)] = np.array([V, 0xFFFFFFFF, 0, V - 1], np.uint32)[:rows]
    return logits, targets


def hostile() -> Rows:
    """Rows that are level, that rise late or early, that hold minus infinity or very large numbers."""
    random = np.random.default_rng(9)
    logits = random.standard_normal((14, V)).astype(np.float32)
    logits[0] = 0.0
    logits[1] = -np.inf
    logits[1, 7777] = 2.0  # one number
    logits[2] = np.linspace(-90, 90, V)  # the maximum rises at every step
    logits[3] = np.linspace(90, -90, V)
    logits[4] *= 1e4
    logits[5] += 1e5
    logits[6, 1:] = -np.inf
    logits[7] = 3e38
    logits[8, ::2] = -np.inf
    logits[9] = 1e-40
    logits[10, 5] = 80.0
    logits[11] -= 1e6
    logits[12, :] = -3e38
    logits[13, 12000] = 1e30
    targets = random.integers(0, V, 14, dtype=np.uint32)
    targets[[1, 6, 10, 13]] = [7777, 0, 5, 12000]
    return logits, targets


@pytest.mark.parametrize("rows", [plain(64, 1), hostile()], ids=["plain", "hostile"])
def test_loss_and_lse(rows: Rows) -> None:
    logits, targets = rows
    reference = cross_entropy(logits, targets)
    for half in harness.HALVES:
        given = {"logits": logits, "targets": targets}
        out = harness.run("cross-entropy", half, loss=len(logits), lse=len(logits), **given)
        for name, wanted in (("loss", reference.loss), ("lse", reference.lse)):
            measured = bounds.row_reduction(out[name], wanted, reference.magnitude)
            assert measured, f"{name}: {measured}"


def test_the_whole_sequence() -> None:
    logits, targets = plain(model.SEQUENCE, 2)
    given = {"logits": logits, "targets": targets}
    out = harness.run("cross-entropy", "bf16", loss=len(logits), lse=len(logits), **given)
    reference = cross_entropy(logits, targets)
    assert bounds.row_reduction(out["lse"], reference.lse, reference.magnitude)
    assert bounds.row_reduction(out["loss"], reference.loss, reference.magnitude)
    assert (out["loss"][:2] == 0).all()  # ignored targets


def test_what_is_no_number_gives_no_number() -> None:
    logits, targets = plain(6, 3)
    targets[:] = [0, 1, V, 3, 4, V]
    logits[0, 100] = np.nan
    logits[1, 100] = np.inf
    logits[2, 100] = np.nan
    logits[4:] = -np.inf  # nothing to choose from: lse ln 0, and no loss
    out = harness.run("cross-entropy", "bf16", loss=6, lse=6, logits=logits, targets=targets)
    reference = cross_entropy(logits, targets)
    assert np.isnan(out["lse"]).tolist() == [True, True, True, False, False, False]
    assert np.isneginf(out["lse"]).tolist() == [False] * 4 + [True] * 2
    assert np.isnan(out["loss"]).tolist() == [True, True, False, False, True, False]
    assert out["loss"][[2, 5]].tolist() == [0.0, 0.0]
    for name, wanted in (("loss", reference.loss), ("lse", reference.lse)):
        measured = bounds.row_reduction(out[name], wanted, reference.magnitude)
        assert measured, f"{name}: {measured}"


@pytest.mark.parametrize("half", harness.HALVES)
@pytest.mark.parametrize("scale", [1.0, 1 / 1024, 65536.0, -3.0])
@pytest.mark.parametrize("rows", [plain(20, 4), hostile()], ids=["plain", "hostile"])
def test_gradient(rows: Rows, scale: float, half: str) -> None:
    logits, targets = rows
    lse = cross_entropy(logits, targets).lse.astype(np.float32)
    reference = cross_entropy_backward(logits, lse, targets, scale)
    given = {"logits": logits, "lse": lse, "targets": targets, "scale": scale}
    out = harness.run("cross-entropy-backward", half, dlogits=logits.shape, **given)["dlogits"]
    measured = bounds.half_output(out, reference.dlogits, half, reference.terms)
    assert measured, measured


def test_an_ignored_row_has_no_gradient_whatever_it_holds() -> None:
    logits, targets = plain(3, 5)
    logits[0], logits[1] = np.nan, np.inf
    lse = np.array([np.nan, np.inf, 10.0], np.float32)
    targets[:] = [V, 0xFFFFFFFF, V]
    out = harness.run(
        "cross-entropy-backward", "f16", dlogits=logits.shape, logits=logits, lse=lse, targets=targets, scale=1.0
    )["dlogits"]
    assert not out.any()


def test_the_gradient_of_the_whole_sequence() -> None:
    logits, targets = plain(256, 6)  # a quarter of the sequence: the reference's time, not the kernel's
    lse = cross_entropy(logits, targets).lse.astype(np.float32)
    given = {"logits": logits, "lse": lse, "targets": targets, "scale": 1 / 1024}
    out = harness.run("cross-entropy-backward", "bf16", dlogits=logits.shape, **given)["dlogits"]
    reference = cross_entropy_backward(logits, lse, targets, 1 / 1024)
    measured = bounds.half_output(out, reference.dlogits, "bf16", reference.terms)
    assert measured, measured
    sums = halves.from_bits(out[4:], "bf16").sum(axis=1)  # a softmax less a one-hot adds to nothing
    assert np.abs(sums).max() < 1e-4


def test_no_rows_launch_nothing() -> None:
    empty = np.zeros((0, V), np.float32)
    none = np.zeros(0, np.uint32)
    assert harness.report("cross-entropy", "bf16", loss=0, lse=0, logits=empty, targets=none)[1] is None
