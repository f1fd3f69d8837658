"""The tiled products: what each candidate tile would take of a card, by the model, and which one the record chooses."""

from typing import Any

import click

from coppelius.cli.output import print_json, print_table, unknown
from coppelius.products import cost
from coppelius.products.admission import admit, objections, registers
from coppelius.products.record import CHOICES, Choice
from coppelius.products.shape import PRODUCTS, Product
from coppelius.products.tile import CANDIDATES, Tile

SUMMARY = ("product", "choice", "tile", "us", "basis", "card", "limit", "of limit")
CANDIDATE = (
    "", "#", "tile", "threads", "regs", "shared", "blocks/SM", "HMMAs", "issue", "L2 bytes",
    *(f"{name} {card.sms}" for card in cost.CARDS for name in ("waves", "pipe", "us", "limit")), "serves",
)  # fmt: skip


@click.command("choices")
@click.argument("product", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def choices_command(product: str | None, as_json: bool) -> None:
    """The recorded choice of every tiled product, or all candidates for one PRODUCT.

    HMMAs, issue and pipe are of a warp's stage (32 of K): products, cycles in which one warp issues it, and cycles
    in which the resident warps' products pass a sub-core's tensor pipe.  waves: blocks over what the card holds.
    """
    if product is None:
        _show_record(as_json)
    else:
        _show_product(_product(product), as_json)
    admit()  # a record that does not hold refuses, after it has been shown


def _product(name: str) -> Product:
    named = {p.identity: p for p in PRODUCTS} | {p.identity.removeprefix("tiled-"): p for p in PRODUCTS}
    if name not in named:
        unknown("product", name, [p.identity for p in PRODUCTS])
    return named[name]


def _show_record(as_json: bool) -> None:
    entries = [_recorded(product) for product in PRODUCTS]
    if as_json:
        print_json(record=entries, cards=[vars(card) for card in cost.CARDS])
        return
    rows = [[entry.get(key.replace("us", "microseconds"), "-") for key in SUMMARY] for entry in entries]
    print_table(SUMMARY, rows, right=("choice", "us", "of limit"))
    for entry in entries:
        if entry.get("reason"):
            click.echo(f"{entry['product']}: {entry['reason']}")


def _recorded(product: Product) -> dict[str, Any]:
    """The record's line, with what the model says of it on the first card."""
    choice = CHOICES.get(product.identity)
    if choice is None or not 0 <= choice.candidate < len(CANDIDATES):
        return {"product": product.identity, "choice": "-" if choice is None else choice.candidate}
    tile, card = CANDIDATES[choice.candidate], cost.CARDS[0]
    entry = {"product": product.identity, "choice": choice.candidate, "tile": str(tile), **_provenance(choice)}
    if objections(tile, product):
        return entry
    found = cost.estimate(tile, product, card)
    return entry | {"limit": found.limit, "of limit": f"{found.share:.0%}", "reason": found.reason(card)}


def _provenance(choice: Choice) -> dict[str, Any]:
    return {"microseconds": choice.microseconds, "basis": choice.basis, "card": choice.card}


def _show_product(product: Product, as_json: bool) -> None:
    choice = CHOICES.get(product.identity)
    if as_json:
        candidates = [_candidate(number, tile, product) for number, tile in enumerate(CANDIDATES)]
        print_json(product=product.identity, candidates=candidates, record=_recorded(product))
        return
    rows = [_cells(number, tile, product, choice) for number, tile in enumerate(CANDIDATES)]
    print_table(CANDIDATE, rows, right=set(CANDIDATE) - {"", "tile", "serves"}, fold=("serves",))
    if choice is not None:
        click.echo(f"* recorded: {choice.microseconds} us {choice.basis} for {choice.card}")
    for card in cost.CARDS:
        click.echo(
            f"{card.name}: {card.sms} SMs at {card.megahertz} MHz, {card.product_cycles} cycles an HMMA a sub-core, "
            f"{card.device_bytes:.0f} bytes a cycle of DRAM (published); {card.cache_bytes:.0f} of L2 (assumed)"
        )
    click.echo(
        f"shared memory {cost.SHARED_WIDTH} bytes a cycle (published); copies {cost.LATENCY} cycles, "
        f"a block's start and end {cost.SETUP} (assumed)"
    )


def _candidate(number: int, tile: Tile, product: Product) -> dict[str, Any]:
    """Everything about one candidate; times only where it serves."""
    against = objections(tile, product)
    entry: dict[str, Any] = {
        "candidate": number, "tile": str(tile), "threads": tile.threads, "registers": registers(tile),
        "shared_bytes": tile.shared_bytes, "blocks_an_sm": cost.blocks_an_sm(tile), "products": tile.products,
        "issue_cycles": cost.issue_cycles(tile, product.layouts), "against": against,
    }  # fmt: skip
    if not against:
        entry["cache_bytes"] = cost.cache_bytes(tile, product)
        entry["cards"] = {card.name: _on(tile, product, card) for card in cost.CARDS}
    return entry


def _on(tile: Tile, product: Product, card: cost.Card) -> dict[str, Any]:
    found = cost.estimate(tile, product, card)
    return {
        "waves": found.waves, "stage_cycles": dict(found.stage), "microseconds": found.microseconds,
        "limit": found.limit, "share": found.share, "reason": found.reason(card),
    }  # fmt: skip


def _cells(number: int, tile: Tile, product: Product, choice: Choice | None) -> list[object]:
    entry = _candidate(number, tile, product)
    cells: list[object] = [
        "*" if choice is not None and choice.candidate == number else "", number, tile, tile.threads,
        entry["registers"], tile.shared_bytes, entry["blocks_an_sm"], tile.products, f"{entry['issue_cycles']:.0f}",
        entry.get("cache_bytes", "-"),
    ]  # fmt: skip
    for card in cost.CARDS:
        if entry["against"]:
            cells += ["-"] * 4
            continue
        on = entry["cards"][card.name]
        pipe = on["stage_cycles"][cost.TENSOR]
        cells += [f"{on['waves']:.2f}", f"{pipe:.0f}", f"{on['microseconds']:.1f}", on["limit"]]
    return [*cells, "; ".join(entry["against"]) or "yes"]
