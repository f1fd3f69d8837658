"""head-to-token and token-to-head: every element at its place, halves as they are, f32 rounded once."""

import harness
import numpy as np
import pytest

from coppelius import model
from coppelius.reference import bounds
from coppelius.reference import half as halves
from coppelius.reference import head_layout as layout

S, W, H, D = model.SEQUENCE, model.WIDTH, model.HEADS, model.HEAD_WIDTH


@pytest.mark.parametrize("half", harness.HALVES)
def test_heads_to_tokens_bit_for_bit(half: str) -> None:
    heads = harness.hostile_half(H * S * D, 1).reshape(H, S, D)
    out = harness.run("head-to-token", half, out=(S, W), heads=heads)["out"]
    measured = bounds.exact_bits(out, layout.head_to_token(heads))
    assert measured, measured


@pytest.mark.parametrize("half", harness.HALVES)
@pytest.mark.parametrize("kind", ["plain", "hostile"])
def test_tokens_to_heads(kind: str, half: str) -> None:
    tokens = harness.hostile_f32(S * W, 2).reshape(S, W)
    if kind == "plain":
        tokens = np.random.default_rng(3).standard_normal((S, W)).astype(np.float32)
    out = harness.run("token-to-head", half, out=(H, S, D), tokens=tokens)["out"]
    with np.errstate(invalid="ignore"):
        reference = halves.to_bits(layout.token_to_head(tokens, H), half)
    measured = bounds.exact_bits(out, reference, nan=half)
    assert measured, measured


def test_a_block_writes_its_own_eight_positions_only() -> None:
    heads = harness.hostile_half(H * S * D, 4).reshape(H, S, D)
    out = harness.run("head-to-token", "bf16", blocks=[5], out=(S, W), heads=heads)["out"]
    assert bounds.exact_bits(out[40:48].copy(), layout.head_to_token(heads)[40:48])
    out[40:48] = 0xA5A5
    assert harness.untouched(out)
    tokens = np.ones((S, W), np.float32)
    out = harness.run("token-to-head", "f16", blocks=[127], out=(H, S, D), tokens=tokens)["out"]
    assert (out[:, 1016:] == 0x3C00).all()
    out[:, 1016:] = 0xA5A5
    assert harness.untouched(out)
