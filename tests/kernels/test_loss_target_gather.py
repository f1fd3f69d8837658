"""loss-target-gather: one logit a row, 0 for a target at or over the vocabulary."""

import harness
import numpy as np
import pytest

from coppelius import model
from coppelius.reference import bounds
from coppelius.reference.loss_target_gather import loss_target_gather


@pytest.mark.parametrize("rows", [0, 1, 255, 256, 257, model.SEQUENCE])
def test_the_targets_logit_of_each_row(rows: int) -> None:
    logits = harness.hostile_f32(max(rows, 1) * model.VOCABULARY, 5).reshape(-1, model.VOCABULARY)[:rows]
    targets = np.random.default_rng(rows).integers(0, model.VOCABULARY, rows, dtype=np.uint32)
    hostile = np.array([0, model.VOCABULARY - 1, model.VOCABULARY, 0x80000000, 0xFFFFFFFF], np.uint32)
    targets[: min(rows, 5)] = hostile[:rows]
    given = {"logits": logits, "targets": targets, "rows": rows}
    for half in harness.HALVES:
        outputs, done = harness.report("loss-target-gather", half, correct=rows, **given)
        assert (done is None) == (rows == 0)
        measured = bounds.exact_bits(outputs["correct"], loss_target_gather(logits, targets).astype(np.float32))
        assert measured, measured
