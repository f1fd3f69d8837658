"""embedding-scatter: rows added in position order, so the table is the reference's bit for bit."""

from typing import Any

import harness
import numpy as np
import pytest
from numpy.typing import NDArray

from coppelius import model
from coppelius.reference import bounds
from coppelius.reference.embedding_scatter import embedding_scatter

S, W, V = model.SEQUENCE, model.WIDTH, model.VOCABULARY
TABLE = np.random.default_rng(1).standard_normal((V, W)).astype(np.float32)
ROWS = (np.random.default_rng(2).standard_normal((S, W)) * 100).astype(np.float32)
Tokens = NDArray[np.uint32]


def tokens(kind: str) -> Tokens:
    random = np.random.default_rng(3)
    made: Tokens = random.permutation(V)[:S].astype(np.uint32)  # none twice
    if kind == "same":
        made[:] = 4711
    if kind == "text":  # few tokens often, many once
        made = np.minimum(random.zipf(1.3, S) - 1, V + 5).astype(np.uint32)
    if kind == "bad":
        made[::2] = random.choice(np.array([V, V + 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF], np.uint32), S // 2)
        made[-1] = made[1]
    if kind == "ends":  # pairs as far and as near as they come, across lanes, loads and the last position
        made[1023], made[1], made[127], made[128], made[3] = made[0], made[2], made[126], made[126], made[5]
        made[508:516] = V - 1
    return made


def scatter(kind: str, half: str = "bf16", **more: Any) -> NDArray[np.float32]:
    table = TABLE.copy()
    given: dict[str, Any] = {"dtable": table, "drows": ROWS, "tokens": tokens(kind)}
    harness.run("embedding-scatter", half, in_place=["dtable"], **given, **more)
    return table


@pytest.mark.parametrize("half", harness.HALVES)
@pytest.mark.parametrize("kind", ["different", "same", "text", "bad", "ends"])
def test_the_whole_table_bit_for_bit(kind: str, half: str) -> None:
    measured = bounds.exact_bits(scatter(kind, half), embedding_scatter(TABLE, ROWS, tokens(kind)))
    assert measured, measured


def test_blocks_in_any_order_give_the_same_bits() -> None:
    shuffled = np.random.default_rng(4).permutation(S).tolist()
    assert bounds.exact_bits(scatter("text", blocks=shuffled), scatter("text"))


def test_the_loops_schedule_is_honoured() -> None:
    blocks = [0, 1, 2, 700]
    strict, fast = (scatter("text", blocks=blocks, mode=mode) for mode in ("strict", "fast"))
    assert bounds.exact_bits(strict, fast)


def test_only_the_first_block_of_a_token_works() -> None:
    assert bounds.exact_bits(scatter("same", blocks=list(range(1, S))), TABLE)
    assert bounds.exact_bits(scatter("same", blocks=[0]), embedding_scatter(TABLE, ROWS, tokens("same")))


def test_no_bits_but_sums_change() -> None:
    table = harness.hostile_f32(V * W, 5).reshape(V, W)
    rows = harness.hostile_f32(S * W, 6).reshape(S, W)
    named = tokens("text")
    with np.errstate(invalid="ignore", over="ignore"):
        reference = embedding_scatter(table, rows, named)
    got = table.copy()
    harness.run("embedding-scatter", "f16", in_place=["dtable"], dtable=got, drows=rows, tokens=named)
    measured = bounds.exact_bits(got, reference, nan="f32")
    assert measured, measured
    others = np.setdiff1d(np.arange(V), named)
    assert bounds.exact_bits(got[others], table[others])
