"""The model of time: its parts by hand, its limits where they must bind, and the record as its best."""

from dataclasses import replace

import pytest

from coppelius.products import cost
from coppelius.products.cost import (
    CARDS,
    ISSUE,
    SHARED,
    TENSOR,
    Card,
    best,
    blocks_an_sm,
    estimate,
    instructions,
    issue_cycles,
    quickest,
    stage_cycles,
)
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


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.name)
@pytest.mark.parametrize("product", PRODUCTS, ids=IDS)
def test_the_tensor_pipe_and_neither_issue_nor_shared_memory_binds(product: Product, card: Card) -> None:
    tile = CANDIDATES[CHOICES[product.identity].candidate]
    for blocks in range(1, blocks_an_sm(tile) + 1):
        stage = stage_cycles(tile, product.layouts, card, blocks)
        assert stage[TENSOR] > 1.25 * max(stage[ISSUE], stage[SHARED])
        # and a warp alone, whose own products are 8 cycles apart
        assert stage[TENSOR] > 1.25 * issue_cycles(tile, product.layouts)


@pytest.mark.parametrize("product", PRODUCTS, ids=IDS)
def test_the_tensor_pipe_binds_every_choice_on_the_card_that_the_record_is_for(product: Product) -> None:
    assert estimate(CANDIDATES[CHOICES[product.identity].candidate], product, RTX_3090).limit == TENSOR


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.name)
@pytest.mark.parametrize("product", PRODUCTS, ids=IDS)
def test_a_choice_lies_within_15_percent_of_its_limit_or_says_why_not(product: Product, card: Card) -> None:
    found = estimate(CANDIDATES[CHOICES[product.identity].candidate], product, card)
    assert found.floor == max(found.floors[name] for name in (TENSOR, ISSUE, SHARED, cost.CACHE, cost.WAIT)) or (
        found.limit == cost.DEVICE
    )
    if found.limit != TENSOR:
        assert f"{found.limit} binds, the pipe alone would take" in found.reason
    if found.microseconds <= 1.15 * found.floor:
        assert "fullest" not in found.reason
        return
    # what it says is what there is: SMs that are not evenly full, and the blocks' ends
    parts = [p for p in found.reason.split("; ") if "fullest SM" in p or "first copies and writing C" in p]
    assert parts
    assert found.even <= 1.15 * found.floor


def test_a_time_over_its_limit_without_a_reason_would_show() -> None:
    """A block waits for its copies: nothing of waves or ends explains that, and `even` says so."""
    found = estimate(CANDIDATES[2], Product("rr", 64 * 82, 64, 16384), replace(RTX_3090, product_cycles=1))
    assert found.limit != TENSOR
    idle = replace(found, limit=TENSOR)
    assert not idle.reason
    assert idle.even > 1.15 * idle.floor


def test_times_within_a_hundredth_are_equal_and_the_cache_decides() -> None:
    product = Product("rr", 1024, 1536, 512)
    assert quickest({2: 10.0, 4: 10.09, 0: 10.11}, product) == 4
    assert quickest({2: 10.0, 4: 10.11}, product) == 2
    assert quickest({5: 10.0, 4: 10.0}, product) == 4


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
    assert "2 blocks on the fullest SM, 1.01 on average" in two.reason
