"""The model of time: its parts by hand, its limits where they must bind, and the record as its best."""

import pytest

from coppelius.products import cost
from coppelius.products.cost import CARDS, best, blocks_an_sm, estimate, instructions, stage_cycles
from coppelius.products.record import CHOICES, MODELLED
from coppelius.products.shape import PRODUCTS, Product
from coppelius.products.tile import CANDIDATES
from coppelius.program.cycles import resident_warps

RTX_3090, A6000 = CARDS
IDS = [p.identity for p in PRODUCTS]


def test_blocks_an_sm_agree_with_the_cycle_models_warps() -> None:
    for tile in CANDIDATES:
        warps = resident_warps(cost.registers(tile), block_x=tile.threads, shared_bytes=tile.shared_bytes)
        assert warps == blocks_an_sm(tile) * tile.threads // 128


def test_a_stage_by_hand() -> None:
    """128 x 128 x 4, rows by rows: 32 HMMAs of each of eight warps, 16 KiB copied, 12 LDSMs of each warp."""
    tile = CANDIDATES[0]
    assert instructions(tile, "rr") == 32 + 12 + 4 + 1 + 3 + 1 + 2 + 0.75
    assert instructions(tile, "cc") == instructions(tile, "rr") + 3
    found = stage_cycles(tile, "rr", RTX_3090, 1)
    assert found["tensor"] == 2 * 32 * 32
    assert found["shared"] == (16384 + 8 * 12 * 512) / 128
    assert found["issue"] == 2 * instructions(tile, "rr")
    assert stage_cycles(tile, "rr", A6000, 2)["tensor"] == 2 * 2 * 32 * 16


@pytest.mark.parametrize("product", PRODUCTS, ids=IDS)
def test_each_recorded_choice_is_the_best_by_the_model(product: Product) -> None:
    choice = CHOICES[product.identity]
    assert choice.basis == MODELLED
    assert choice.card == RTX_3090.name
    assert choice.candidate == best(product)
    assert choice.microseconds == pytest.approx(
        estimate(CANDIDATES[choice.candidate], product, RTX_3090).microseconds, abs=0.06
    )


@pytest.mark.parametrize("product", PRODUCTS, ids=IDS)
def test_the_tensor_pipe_and_neither_issue_nor_shared_memory_binds(product: Product) -> None:
    tile = CANDIDATES[CHOICES[product.identity].candidate]
    for card in CARDS:
        found = estimate(tile, product, card)
        assert found.stage["tensor"] > 1.25 * max(found.stage["issue"], found.stage["shared"])
        assert found.share > 1 / 1.15 or found.reason(card), f"{card.name}: {found}"
    assert estimate(tile, product, RTX_3090).limit == "tensor"


def test_a_product_that_is_all_traffic_is_bound_by_device_memory() -> None:
    found = estimate(CANDIDATES[3], Product("rr", 8192, 8192, 64), RTX_3090)
    assert found.limit == cost.DEVICE
    assert found.floor == pytest.approx((2 * 2 * 8192 * 64 + 4 * 8192**2) / 936e9 * 1e6)


def test_more_blocks_than_sms_take_whole_turns() -> None:
    """A block more than the SMs hold once takes one of them twice as long."""
    tile = CANDIDATES[0]
    one = estimate(tile, Product("rr", 128 * 82, 128, 4096), RTX_3090)
    two = estimate(tile, Product("rr", 128 * 83, 128, 4096), RTX_3090)
    assert (one.fullest, two.fullest) == (1, 2)
    assert two.microseconds == pytest.approx(2 * one.microseconds)
    assert "2 blocks on the fullest SM, 1.01 on average" in two.reason(RTX_3090)
