"""Modelled time of a product with a tile on a card: which resource binds its main loop, and what a launch adds to that.

A block's stage asks five things of its SM: the tensor pipes of four sub-cores, their issue slots, shared memory's
width, the SM's share of the second cache, and the patience to wait for a copy that was asked for a ring before.  The
blocks that are resident share all but the last; a stage takes what the slowest of them takes.  Around its stages a
block waits for the first one and writes its part of C.  The fullest SM decides, and nothing is faster than the whole
product's traffic with device memory.

Left out: other kernels, clocks that change, cache misses beyond the first touch, the tail of uneven SM clusters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from coppelius.products.admission import REGISTER_FILE, copies, objections, registers
from coppelius.products.shape import Product
from coppelius.products.tile import CANDIDATES, K_STAGE, PIECE, STEPS, Tile

SUB_CORES = 4
MOST_WARPS, MOST_BLOCKS = 48, 16  # published: of an SM of compute capability 8.6
SM_SHARED_BYTES, RESERVED_SHARED_BYTES = 102_400, 1024  # published: of an SM; what each block's launch keeps
SHARED_WIDTH = 128  # published: bytes a cycle of an SM
LATENCY = 600  # assumed: cycles from a copy that hits the second cache, under load, to its barrier; 400 unloaded
SETUP = 300  # assumed: cycles from a block's start to its first copy, and from its last store to the next block
FILLERS, GROUP, BARRIER = 3, 1, 2  # instructions of a stage: fillers, LDGDEPBAR, DEPBAR and BAR
PRODUCT_ISSUE = 8  # mined: the least stall between two HMMAs
ROUND = 3  # instructions of a round: count, compare, branch
TIE = 0.01  # chosen: times that differ by less are equal
NEAR = 1.15  # chosen: a time within so much of its floor needs no reason


@dataclass(frozen=True)
class Card:
    """One card; `product_cycles`: of an HMMA.16816.F32 in a sub-core's tensor pipe; bandwidths in bytes a cycle."""

    name: str
    sms: int
    megahertz: int
    product_cycles: int
    device_bytes: float
    cache_bytes: float


# Clocks, SMs and device memory are published (boost clock; 936 and 768 GB/s).  GeForce GA102 halves products with f32
# sums (published rates, 71 TFLOPS).  The second cache has 12 parts (published), each taken as four slices of one
# 32-byte sector a cycle (assumed).
_CACHE_BYTES = 12 * 4 * 32.0
CARDS = (
    Card("GeForce RTX 3090", 82, 1695, 32, 936e9 / 1695e6, _CACHE_BYTES),
    Card("RTX A6000", 84, 1800, 16, 768e9 / 1800e6, _CACHE_BYTES),
)

# limits by name, in the order in which a tie is settled
TENSOR, ISSUE, SHARED, CACHE, WAIT, DEVICE = "tensor", "issue", "shared", "L2", "latency", "DRAM"


def blocks_an_sm(tile: Tile) -> int:
    """Blocks of the tile that an SM holds at once."""
    warps = tile.threads // 32
    by_registers = REGISTER_FILE // (registers(tile) * tile.threads)
    by_shared = SM_SHARED_BYTES // (tile.shared_bytes + RESERVED_SHARED_BYTES)
    return min(by_registers, by_shared, MOST_WARPS // warps, MOST_BLOCKS)


def instructions(tile: Tile, layouts: str) -> float:
    """Of a warp in one stage of the loop; the bench holds it to the listing."""
    loads = STEPS * (tile.fragments_m + tile.fragments_n * 8 // PIECE)
    sides = zip(layouts, (tile.rows, tile.columns), strict=True)
    moves = sum(tile.copies(span) / (1 if layout == "c" else tile.stages) for layout, span in sides)
    return tile.products + loads + copies(tile) + moves + FILLERS + GROUP + BARRIER + ROUND / tile.stages


def issue_cycles(tile: Tile, layouts: str) -> float:
    """In which one warp alone issues a stage: products 8 cycles apart, the rest between; held to loops by the bench."""
    return max(PRODUCT_ISSUE * tile.products, instructions(tile, layouts))


def shared_bytes(tile: Tile) -> int:
    """That a block moves through shared memory in one stage: copies in, fragments out."""
    loads = STEPS * (tile.fragments_m + tile.fragments_n * 8 // PIECE) * 512
    return tile.stage_bytes + loads * tile.threads // 32


def cache_bytes(tile: Tile, product: Product) -> int:
    """That all blocks take from the second cache."""
    blocks = (product.m // tile.rows) * (product.n // tile.columns)
    residual = product.m * product.n * 4 if product.residual else 0
    return blocks * tile.stage_bytes * (product.k // K_STAGE) + residual


def device_bytes(product: Product) -> int:
    """That the product moves at least: each operand and C once."""
    halves = product.m * product.k + product.k * product.n
    return 2 * halves + 4 * product.m * product.n * (2 if product.residual else 1)


def stage_cycles(tile: Tile, layouts: str, card: Card, blocks: int) -> dict[str, float]:
    """What one stage of each of so many resident blocks asks for, by limit."""
    warps = blocks * tile.threads / 32 / SUB_CORES
    return {
        TENSOR: warps * tile.products * card.product_cycles,
        ISSUE: warps * instructions(tile, layouts),
        SHARED: blocks * shared_bytes(tile) / SHARED_WIDTH,
        CACHE: blocks * tile.stage_bytes / (card.cache_bytes / card.sms),
        # a stage is asked for a ring ahead, less the step in which its place is read for the last time
        WAIT: LATENCY / (tile.stages - 0.5),
    }


@dataclass(frozen=True)
class Estimate:
    """microseconds: modelled; limit: what binds; floors: microseconds by limit if all SMs did nothing but that, evenly.

    average, fullest: blocks of an SM, and of the one that has most; waves: blocks over what all SMs hold; stage:
    cycles of a stage by limit; ends: the share of the time that is not stages.
    """

    microseconds: float
    limit: str
    floors: Mapping[str, float]
    average: float
    fullest: int
    waves: float
    stage: Mapping[str, float]
    ends: float

    @property
    def floor(self) -> float:
        """Microseconds at the limit that binds."""
        return self.floors[self.limit]

    @property
    def share(self) -> float:
        """Of the limit's floor in the time: 1 is at the limit."""
        return self.floor / self.microseconds

    @property
    def even(self) -> float:
        """Microseconds if every SM had the average's blocks, without their ends."""
        return self.microseconds * (1 - self.ends) * self.average / self.fullest

    @property
    def reason(self) -> str:
        """What binds if not the tensor pipe, and why the time is over `NEAR` of its floor; nothing where neither is."""
        found = []
        if self.limit != TENSOR:
            found.append(f"{self.limit} binds, the pipe alone would take {self.floors[TENSOR]:.1f} us")
        if self.microseconds > NEAR * self.floor:
            if self.average * 1.05 < self.fullest:
                blocks = "block" if self.fullest == 1 else "blocks"
                found.append(f"{self.fullest} {blocks} on the fullest SM, {self.average:.2f} on average")
            if self.ends > 0.05:
                found.append(f"{self.ends:.0%} is first copies and writing C")
        return "; ".join(found)


def estimate(tile: Tile, product: Product, card: Card) -> Estimate:
    """The model's time; the tile must serve the product."""
    stages = product.k // K_STAGE
    blocks = (product.m // tile.rows) * (product.n // tile.columns)
    resident = blocks_an_sm(tile)
    fullest = -(-blocks // card.sms)
    together = [min(resident, fullest - first) for first in range(0, fullest, resident)]
    inner = sum(stages * max(stage_cycles(tile, product.layouts, card, count).values()) for count in together)
    # where an SM holds several blocks, one's ends hide behind another's stages
    ends = sum(_ends(tile, product, card, count) for count in (together if resident == 1 else together[-1:]))
    stage = stage_cycles(tile, product.layouts, card, together[0])
    limit = max(stage, key=lambda name: stage[name])
    floors = {name: cycles / together[0] * stages * blocks / card.sms for name, cycles in stage.items()}
    floors[DEVICE] = device = device_bytes(product) / card.device_bytes
    if device > max(inner, floors[limit]):
        limit = DEVICE
    cycles = max(inner, device) + ends
    return Estimate(
        cycles / card.megahertz, limit, {name: floor / card.megahertz for name, floor in floors.items()},
        blocks / card.sms, fullest, blocks / (card.sms * resident), stage, ends / cycles,
    )  # fmt: skip


def _ends(tile: Tile, product: Product, card: Card, blocks: int) -> float:
    """Cycles of so many blocks of an SM before their first stage and after their last."""
    results = tile.rows * tile.columns * 4 * (2 if product.residual else 1)
    return SETUP + LATENCY + blocks * results / (card.cache_bytes / card.sms)


def serving(product: Product) -> list[int]:
    """The candidates that serve the product."""
    return [number for number, tile in enumerate(CANDIDATES) if not objections(tile, product)]


def best(product: Product, card: Card = CARDS[0]) -> int:
    """The candidate with the least modelled time."""
    return quickest(
        {number: estimate(CANDIDATES[number], product, card).microseconds for number in serving(product)}, product
    )


def quickest(times: Mapping[int, float], product: Product) -> int:
    """The candidate with the least time; among those within `TIE`, the one that asks least of the second cache.

    What that cache can give is the model's least certain figure, and what other kernels want, too.  Then the time, then
    the lower number.
    """
    near = [number for number, time in times.items() if time <= (1 + TIE) * min(times.values())]
    return min(near, key=lambda number: (cache_bytes(CANDIDATES[number], product), times[number], number))
