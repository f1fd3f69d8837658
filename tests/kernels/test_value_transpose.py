"""value-transpose: the values' columns rounded to half, each at its mirrored place."""

import harness
import numpy as np
import pytest

from coppelius import model
from coppelius.reference import bounds
from coppelius.reference import half as halves
from coppelius.reference.head_layout import value_transpose

S, H, D, QKV = model.SEQUENCE, model.HEADS, model.HEAD_WIDTH, model.QUERY_KEY_VALUE


@pytest.mark.parametrize("half", harness.HALVES)
@pytest.mark.parametrize("kind", ["plain", "hostile"])
def test_every_value_at_its_mirrored_place(kind: str, half: str) -> None:
    qkv = harness.hostile_f32(S * QKV, 1).reshape(S, QKV)
    if kind == "plain":
        qkv = np.random.default_rng(2).standard_normal((S, QKV)).astype(np.float32)
    out = harness.run("value-transpose", half, vt=(H, D, S), qkv=qkv)["vt"]
    with np.errstate(invalid="ignore"):
        reference = halves.to_bits(value_transpose(qkv, H), half)
    measured = bounds.exact_bits(out, reference, nan=half)
    assert measured, measured


def test_one_tile_alone_writes_its_own_elements_only() -> None:
    qkv = np.ones((S, QKV), np.float32)
    out = harness.run("value-transpose", "f16", blocks=[8 * 6 + 2], vt=(H, D, S), qkv=qkv)["vt"]
    tile = out[6, :, 2 * 128 : 3 * 128]
    assert (tile == 0x3C00).all()
    tile[:] = 0xA5A5
    assert harness.untouched(out)


def test_queries_and_keys_are_not_read() -> None:
    qkv = np.full((S, QKV), np.nan, np.float32)
    qkv[:, 2 * model.WIDTH :] = 2.0
    out = harness.run("value-transpose", "bf16", vt=(H, D, S), qkv=qkv)["vt"]
    assert (out == 0x4000).all()
