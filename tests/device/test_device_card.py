"""What a card runs, and refusals by its name."""

from dataclasses import replace

import numpy as np
import pytest
from fake_card import RTX_3090

from coppelius.device.card import TARGETS, poison
from coppelius.isa.refusal import Refusal
from coppelius.isa.targets.layout import layout_of


def test_a_card_runs_its_own_targets_images() -> None:
    assert RTX_3090.target == "sm86"
    for capability, target in TARGETS.items():
        assert replace(RTX_3090, capability=capability).target == target
        assert layout_of(target).target == target
    assert str(RTX_3090) == (
        "NVIDIA GeForce RTX 3090: 82 SMs at up to 1695 MHz, memory at 9751 MHz, driver 580.65.06, CUDA 13.0"
    )


def test_a_card_that_runs_none_of_ours_is_refused_by_name() -> None:
    with pytest.raises(Refusal, match=r"^NVIDIA A2: compute capability 7\.5; images are made for 8\.0, 8\.6"):
        replace(RTX_3090, name="NVIDIA A2", capability=(7, 5)).target  # noqa: B018


def test_poison_is_no_number_and_no_result() -> None:
    found = poison((2, 3))
    assert np.isnan(found).all()
    assert found.shape == (2, 3)
    assert (found.view(np.uint32) != 0x7FFFFFFF).all()  # what the tensor pipe gives
