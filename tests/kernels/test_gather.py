"""gather: rows of known tokens, zeros for the others, at the model's shape."""

import harness
import numpy as np
import pytest

from coppelius import model
from coppelius.reference import bounds
from coppelius.reference.gather import gather

TABLE = harness.hostile_f32(model.VOCABULARY * model.WIDTH, 3).reshape(model.VOCABULARY, model.WIDTH)


@pytest.mark.parametrize("rows", [0, 1, 3, model.SEQUENCE])
def test_rows_are_copied_bit_for_bit(rows: int) -> None:
    random = np.random.default_rng(rows)
    tokens = random.integers(0, model.VOCABULARY, rows, dtype=np.uint32)
    hostile = np.array([0, model.VOCABULARY - 1, model.VOCABULARY, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF], np.uint32)
    tokens[: min(rows, 6)] = hostile[:rows]
    given = {"table": TABLE, "tokens": tokens, "vocabulary": model.VOCABULARY}
    for half in harness.HALVES:
        outputs, done = harness.report("gather", half, out=(rows, model.WIDTH), **given)
        assert (done is None) == (rows == 0)
        measured = bounds.exact_bits(outputs["out"], gather(TABLE, tokens, model.VOCABULARY))
        assert measured, measured


def test_the_bound_is_the_parameter_not_the_table() -> None:
    tokens = np.array([4, 5, 6], np.uint32)
    out = harness.run("gather", "bf16", out=(3, model.WIDTH), table=TABLE, tokens=tokens, vocabulary=5)["out"]
    assert bounds.exact_bits(out[0], TABLE[4])
    assert not out[1:].any()
