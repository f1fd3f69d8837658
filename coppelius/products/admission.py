"""Which tile serves which product, and whether the record of choices holds; arithmetic only, no program is built.

A tile serves a product when it divides C, its stages divide K's steps, its threads copy both operands' tiles evenly,
its registers fit the register file, and its stages fit the shared memory that every compatible card gives a block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

from coppelius.isa.refusal import Refusal
from coppelius.products.record import CHOICES, MEASURED, MODELLED, RUNS, Choice, Runs
from coppelius.products.shape import PRODUCTS, Product
from coppelius.products.tile import CANDIDATES, K_STAGE, Tile

MOST_SHARED_BYTES = 101_376  # published: the opt-in maximum of a block on sm_86, sm_89 and sm_120
MOST_REGISTERS = 255  # published: of a thread, two of which the hardware keeps
REGISTER_UNIT = 8  # published: handed out eight at a time
REGISTER_FILE = 65536  # published: of an SM

_RESERVED = 2
# beside results, fragments and pointers: a shared address for each operand's copies and for each one's loads, and a one
_ADDRESSES = 5


def copies(tile: Tile) -> int:
    """16-byte copies of a thread in one stage."""
    return tile.copies(tile.rows) + tile.copies(tile.columns)


def registers(tile: Tile) -> int:
    """What the kernel declares: its demand, to whole units; the test of the kernels holds it to the truth."""
    results = 4 * tile.fragments_m * tile.fragments_n
    fragments = 2 * (4 * tile.fragments_m + 2 * tile.fragments_n)
    demand = results + fragments + 2 * copies(tile) + _ADDRESSES + _RESERVED
    return -(-demand // REGISTER_UNIT) * REGISTER_UNIT


def objections(tile: Tile, product: Product) -> list[str]:
    """Why the tile does not serve the product; nothing where it does."""
    found = []
    for name, size, part in (("m", product.m, tile.rows), ("n", product.n, tile.columns)):
        if size % part:
            found.append(f"{part} does not divide {name} = {size}")
    if product.k % (K_STAGE * tile.stages):
        found.append(f"{tile.stages} stages of {K_STAGE} do not divide k = {product.k}")
    if not tile.copies(tile.rows) or not tile.copies(tile.columns):
        found.append(f"{tile.threads} threads do not copy its operands' tiles evenly")
    elif registers(tile) > MOST_REGISTERS or registers(tile) * tile.threads > REGISTER_FILE:
        found.append(f"{registers(tile)} registers of {tile.threads} threads leave the register file")
    if tile.shared_bytes > MOST_SHARED_BYTES:
        found.append(f"{tile.shared_bytes} shared bytes; a block has {MOST_SHARED_BYTES}")
    return found


def recorded(product: Product) -> Tile:
    """The product's recorded tile; for a choice that `admit` refuses, the smallest one, so that a row can be read."""
    try:
        return _admitted(product, CHOICES, RUNS)
    except Refusal:
        return CANDIDATES[3]


def admit(
    choices: Mapping[str, Choice] = CHOICES, products: Sequence[Product] = PRODUCTS, runs: Runs = RUNS
) -> dict[str, Tile]:
    """Each product's tile; refuses by name a choice that is missing, unknown, does not serve or rests on nothing."""
    known = {product.identity for product in products}
    for identity in choices:
        if identity not in known:
            raise Refusal(f"choice {identity!r}: no such product; remove it from the record")
    return {product.identity: _admitted(product, choices, runs) for product in products}


def tile_of(choice: Choice) -> Tile | None:
    """The candidate that a line names; None where it names none, whatever stands in its place."""
    number = choice.candidate
    return CANDIDATES[number] if type(number) is int and 0 <= number < len(CANDIDATES) else None


def _admitted(product: Product, choices: Mapping[str, Choice], runs: Runs) -> Tile:
    name = f"product {product.identity!r}"
    choice = choices.get(product.identity)
    if choice is None:
        raise Refusal(f"{name}: no recorded choice; `coppelius choices {product.identity}` shows the candidates")
    if not isinstance(choice, Choice):
        raise Refusal(f"{name}: recorded as {choice!r}; a line is Choice(candidate, microseconds, basis, card)")
    tile = tile_of(choice)
    if tile is None:
        raise Refusal(f"{name}: unknown candidate {choice.candidate!r}; there are 0 to {len(CANDIDATES) - 1}")
    if against := objections(tile, product):
        raise Refusal(f"{name}: candidate {choice.candidate} ({tile}) does not serve: {'; '.join(against)}")
    if type(choice.microseconds) not in (int, float) or not 0 < choice.microseconds < inf or not choice.card:
        raise Refusal(f"{name}: the choice rests on no figure; record microseconds and the card")
    if choice.basis not in (MEASURED, MODELLED):
        raise Refusal(f"{name}: its figure is {choice.basis!r}; it is {MEASURED} or {MODELLED}")
    if choice.basis == MEASURED and (choice.card, choice.date) not in runs:
        raise Refusal(f"{name}: measured on {choice.card}, {choice.date or 'no date'}; the record has no such run")
    return tile
