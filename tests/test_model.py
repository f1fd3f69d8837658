"""The parameter bank against its published size and order."""

from itertools import pairwise

from coppelius import model
from coppelius.model import PARAMETER_TABLE


def test_the_bank_is_the_published_one() -> None:
    assert model.PARAMETERS == 31_998_976 == sum(p.elements for p in PARAMETER_TABLE)
    assert len({p.name for p in PARAMETER_TABLE}) == len(PARAMETER_TABLE) == 1 + 8 * 9 + 2


def test_parameters_lie_one_after_another_in_whole_quads() -> None:
    for before, after in pairwise(PARAMETER_TABLE):
        assert after.first == before.first + before.elements
        assert after.first % 4 == 0


def test_the_order_within_a_layer() -> None:
    names = [p.name.removeprefix("layer0.") for p in PARAMETER_TABLE if p.name.startswith("layer0.")]
    assert names == [
        "qkv", "out", "gate", "up", "down", "attention_norm.gain", "attention_norm.bias",
        "feed_forward_norm.gain", "feed_forward_norm.bias",
    ]  # fmt: skip
    shapes = {p.name: p.shape for p in PARAMETER_TABLE}
    assert shapes["layer7.qkv"] == (1536, 512)
    assert shapes["layer7.down"] == (512, 1408)
    assert shapes["table"] == (12288, 512)
