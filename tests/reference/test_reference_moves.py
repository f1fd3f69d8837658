"""Kernels that move or convert single elements, on hand cases."""

import numpy as np
import pytest

from coppelius.reference.add import add, add_exactly
from coppelius.reference.argmax import argmax
from coppelius.reference.cast import cast_down, cast_up
from coppelius.reference.copy import copy
from coppelius.reference.embedding_scatter import embedding_scatter
from coppelius.reference.fill import fill
from coppelius.reference.gather import gather
from coppelius.reference.loss_target_gather import loss_target_gather
from coppelius.reference.scale import scale, scale_exactly
from coppelius.reference.transpose import transpose

NAN, INF = np.nan, np.inf


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def test_fill_and_copy_keep_every_bit() -> None:
    assert fill(3, 0xDEADBEEF).tolist() == [0xDEADBEEF] * 3
    assert fill(0, 1).shape == (0,)
    source = np.array([0x7FA00001, 0x80000000, 1], np.uint32)  # a signalling NaN, -0, a denormal
    out = copy(source)
    source[0] = 0
    assert out.tolist() == [0x7FA00001, 0x80000000, 1]


def test_casts() -> None:
    values = f32(1.0, -2.5, 65520.0, 1e-40, NAN, -INF)
    assert [hex(b) for b in cast_down(values, "f16")] == ["0x3c00", "0xc100", "0x7c00", "0x0", "0x7fff", "0xfc00"]
    assert [hex(b) for b in cast_down(values, "bf16")][:4] == ["0x3f80", "0xc020", "0x4780", "0x1"]
    up = cast_up(np.array([0x3C00, 0x0001, 0xFC00], np.uint16), "f16")
    assert up.dtype == np.float32
    assert up.tolist() == [1.0, 2.0**-24, -INF]


def test_add_and_scale_round_once_and_keep_denormals() -> None:
    a, b = f32(1.0, 2.0**-149, 3e38, INF), f32(2.0**-24, 2.0**-149, 3e38, -INF)
    assert add(a, b)[0] == 1 + 2.0**-24
    assert add_exactly(a, b)[:3].tolist() == [1.0, 2.0**-148, INF]
    assert np.isnan(add_exactly(a, b)[3])
    assert scale(a, 0.1)[0] == float(np.float32(0.1))
    assert scale_exactly(f32(2.0**-148, 1e38), 0.5).tolist() == [2.0**-149, float(np.float32(1e38)) / 2]
    assert scale_exactly(f32(2.0**-149), 0.5).tolist() == [0.0]  # a tie goes to even


# fmt: off
ARGMAX = [
    ([1, 3, 3, 2], 1), ([NAN, 1, NAN, 1], 1), ([NAN, NAN, NAN, NAN], 0), ([-INF, -INF, -INF, -INF], 0),
    ([NAN, -INF, NAN, -INF], 1), ([-0.0, 0.0, -1, 0.0], 0), ([INF, NAN, INF, 0], 0), ([-5, -4, NAN, -3], 3),
    ([1e-45, 3e-45, 0, NAN], 1),
]
# fmt: on


@pytest.mark.parametrize(("row", "index"), ARGMAX)
def test_argmax(row: list[float], index: int) -> None:
    assert argmax(np.array([row], np.float32)).tolist() == [index]


def test_gather_gives_zeros_outside_the_vocabulary() -> None:
    table = np.arange(8, dtype=np.float32).reshape(4, 2)
    tokens = np.array([3, 0, 2, 0xFFFFFFFF, 3], np.uint32)
    assert gather(table, tokens, 3).tolist() == [[0, 0], [0, 1], [4, 5], [0, 0], [0, 0]]
    assert gather(table, tokens[:1], 4).tolist() == [[6, 7]]


def test_loss_target_gather() -> None:
    logits = np.arange(6, dtype=np.float32).reshape(3, 2) + 1
    assert loss_target_gather(logits, np.array([1, 2, 0], np.uint32)).tolist() == [2.0, 0.0, 5.0]


def test_transpose() -> None:
    source = np.arange(12, dtype=np.uint16).reshape(2, 3, 2)
    assert transpose(source).tolist() == [[[0, 2, 4], [1, 3, 5]], [[6, 8, 10], [7, 9, 11]]]


def test_scatter_adds_in_position_order_and_rounds_each_sum() -> None:
    dtable = f32(1.0, 2.0, 3.0)[:, None]
    small = 2.0**-24
    drows = f32(small, 5.0, small, 9.0)[:, None]
    out = embedding_scatter(dtable, drows, np.array([0, 2, 0, 3], np.uint32))
    assert out[:, 0].tolist() == [1.0, 2.0, 8.0]  # twice a tie to even, not 1 + 2^-23
    assert dtable[:, 0].tolist() == [1.0, 2.0, 3.0]
