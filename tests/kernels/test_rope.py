"""qk-rope and inverse-rope-qkv: every pair turned by its position's angle, at its place on the other side."""

from typing import Any

import harness
import numpy as np
import pytest
from numpy.typing import NDArray

from coppelius import model
from coppelius.reference import bounds
from coppelius.reference import head_layout as layout

S, H, D, QKV = model.SEQUENCE, model.HEADS, model.HEAD_WIDTH, model.QUERY_KEY_VALUE
KINDS = ("normal", "wide", "constant", "denormal", "hostile")


def table() -> NDArray[np.float32]:
    """The model's angles; the first position turns nothing, the last rows turn by exact quarters."""
    angles = np.arange(S)[:, None] * np.float64(10000.0) ** (-np.arange(32) / 32)
    made = np.stack([np.cos(angles), np.sin(angles)], axis=-1).astype(np.float32)
    made[-1], made[-2], made[-3] = (0, 1), (-1, 0), (0, -1)
    return made


def values(kind: str, shape: tuple[int, ...], seed: int) -> NDArray[np.float32]:
    random = np.random.default_rng(seed)
    if kind == "hostile":
        return harness.hostile_f32(int(np.prod(shape)), seed).reshape(shape)
    made = random.standard_normal(shape)
    if kind == "wide":
        made *= 10.0 ** random.uniform(-12, 12, shape)
    if kind == "constant":
        made = np.full(shape, 0.7)
    return (made * 1e-41 if kind == "denormal" else made).astype(np.float32)


@pytest.mark.parametrize("half", harness.HALVES)
@pytest.mark.parametrize("kind", KINDS)
def test_queries_and_keys(kind: str, half: str) -> None:
    qkv = values(kind, (S, QKV), 1)
    out = harness.run("qk-rope", half, q=(H, S, D), k=(H, S, D), qkv=qkv, table=table())
    with np.errstate(invalid="ignore", over="ignore"):
        references = layout.qk_rope(qkv, table(), H)
        for got, reference in zip((out["q"], out["k"]), references, strict=True):
            measured = bounds.half_output(got, reference.values, half, reference.terms)
            assert measured, measured


@pytest.mark.parametrize("half", harness.HALVES)
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_go_back(kind: str, half: str) -> None:
    given: dict[str, Any] = {name: values(kind, (H, S, D), seed) for seed, name in enumerate(("dq", "dk", "dv"))}
    out = harness.run("inverse-rope-qkv", half, dqkv=(S, QKV), **given, table=table())["dqkv"]
    with np.errstate(invalid="ignore", over="ignore"):
        reference = layout.inverse_rope_qkv(given["dq"], given["dk"], given["dv"], table())
        measured = bounds.half_output(out, reference.values, half, reference.terms)
    assert measured, measured


def test_one_block_writes_its_own_positions_and_heads_only() -> None:
    # block x 3: positions 24 to 31; y 1: heads 4 to 7
    block = [3 + 128]
    qkv = values("normal", (S, QKV), 3)
    out = harness.run("qk-rope", "bf16", blocks=block, q=(H, S, D), k=(H, S, D), qkv=qkv, table=table())
    for array in out.values():
        own = array[4:, 24:32]
        assert (own != 0xA5A5).any(axis=2).all()
        own[:] = 0xA5A5
        assert harness.untouched(array)
    given: dict[str, Any] = {name: values("normal", (H, S, D), seed) for seed, name in enumerate(("dq", "dk", "dv"))}
    dqkv = harness.run("inverse-rope-qkv", "bf16", blocks=block, dqkv=(S, QKV), **given, table=table())["dqkv"]
    dqkv.reshape(S, 3, H, D)[24:32, :, 4:] = 0xA5A5
    assert harness.untouched(dqkv)


def test_there_and_back_is_where_it_was() -> None:
    qkv = values("normal", (S, QKV), 4)
    turned = layout.qk_rope(qkv, table(), H)
    dq, dk = (t.values.astype(np.float32) for t in turned)
    dv = layout.token_to_head(qkv[:, 2 * model.WIDTH :], H)
    out = harness.run("inverse-rope-qkv", "f16", dqkv=(S, QKV), dq=dq, dk=dk, dv=dv, table=table())["dqkv"]
    assert np.allclose(out.view(np.float16).astype(np.float32), qkv, rtol=2**-10, atol=1e-5)
