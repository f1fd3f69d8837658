"""The tiled products: what each candidate tile would take of a card, by the model, and which one the record chooses."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from coppelius.cli.output import print_json, print_table, unknown
from coppelius.products import cost
from coppelius.products.admission import admit, objections, registers, tile_of
from coppelius.products.record import CHOICES, MEASURED, RUNS, Choice, Runs
from coppelius.products.record_text import read_record
from coppelius.products.shape import PRODUCTS, Product
from coppelius.products.tile import CANDIDATES, Tile

LIMITS = (cost.TENSOR, cost.ISSUE, cost.SHARED, cost.CACHE, cost.WAIT, cost.DEVICE)
SUMMARY = ("product", "choice", "tile", "us", "basis", "card")
CANDIDATE = ("", "#", "tile", "threads", "regs", "shared", "blocks/SM", "HMMAs", "issue", "L2 bytes", "serves")
ON_CARD = ("blocks", "waves", "modelled", "of limit", *LIMITS, "binds", "why")
Choices = Mapping[str, Choice]


@click.command("choices")
@click.argument("product", required=False)
@click.option("--record", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Another record than the reviewed one, as `coppelius measure` writes it.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def choices_command(product: str | None, record: Path | None, as_json: bool) -> None:
    """The recorded choice of every tiled product, or all candidates for one PRODUCT.

    HMMAs and issue are of a warp's stage (32 of K): products, and cycles in which one warp issues it.  A limit's
    figure is the microseconds that a card would take if nothing but that limit bound it; for one PRODUCT, cycles in
    which the resident blocks pass a stage.  waves: blocks over what all SMs hold; of limit: the share of the binding
    limit's microseconds in the modelled ones.
    """
    choices: Choices = CHOICES
    runs: Runs = RUNS
    if record is not None:
        choices, runs = read_record(record.read_text(encoding="utf-8"), str(record))
    lines = {name: choice for name, choice in choices.items() if isinstance(choice, Choice)}
    if product is None:
        _show_record(lines, runs, as_json)
    else:
        _show_product(named_product(product), lines, runs, as_json)
    admit(choices, PRODUCTS, runs)  # a record that does not hold refuses, after it has been shown


def named_product(name: str) -> Product:
    """The product of that name, with or without `tiled-`; an unknown one ends the command."""
    named = {p.identity: p for p in PRODUCTS} | {p.identity.removeprefix("tiled-"): p for p in PRODUCTS}
    if name not in named:
        unknown("product", name, [p.identity for p in PRODUCTS])
    return named[name]


def _show_record(choices: Choices, runs: Runs, as_json: bool) -> None:
    entries = [_recorded(product, choices, runs) for product in PRODUCTS]
    if as_json:
        print_json(record=entries, cards=[vars(card) for card in cost.CARDS])
        return
    print_table(SUMMARY, [[entry.get(key, "-") for key in SUMMARY] for entry in entries], right=("choice", "us"))
    for card in cost.CARDS:
        click.echo(f"\n{card.name}: microseconds by limit")
        rows = [[e["product"], e["choice"], *_on_cells(e["cards"][card.name])] for e in entries if "cards" in e]
        _print_on_card(("product", "#", *ON_CARD), rows)
    _print_sources()
    _print_runs(runs)


def _print_on_card(columns: tuple[str, ...], rows: list[list[object]]) -> None:
    print_table(columns, rows, right=set(columns) - {"product", "", "binds", "why"}, fold=("why",))


def _print_runs(runs: Runs) -> None:
    for (card, date), run in runs.items():
        click.echo(
            f"measured on {card}, {date}: {run.sms} SMs at up to {run.megahertz} MHz, memory at "
            f"{run.memory_megahertz} MHz, driver {run.driver}"
        )


def _recorded(product: Product, choices: Choices, runs: Runs) -> dict[str, Any]:
    """The record's line, with what the model says of it on each card."""
    choice = choices.get(product.identity)
    if choice is None or (tile := tile_of(choice)) is None:
        return {"product": product.identity, "choice": "-" if choice is None else choice.candidate}
    entry = {"product": product.identity, "choice": choice.candidate, "tile": str(tile), "us": choice.microseconds,
             "basis": choice.basis, "card": _card(choice)}  # fmt: skip
    if choice.basis == MEASURED and (run := runs.get((choice.card, choice.date))) is not None:
        entry["run"] = vars(run)
    if objections(tile, product):
        return entry
    return entry | {"cards": {card.name: _on(tile, product, card) for card in cost.CARDS}}


def _card(choice: Choice) -> str:
    return f"{choice.card}, {choice.date}" if choice.date else choice.card


def _show_product(product: Product, choices: Choices, runs: Runs, as_json: bool) -> None:
    choice = choices.get(product.identity)
    entries = [_candidate(number, tile, product) for number, tile in enumerate(CANDIDATES)]
    if as_json:
        print_json(product=product.identity, candidates=entries, record=_recorded(product, choices, runs))
        return
    marks = ["*" if choice is not None and choice.candidate == number else "" for number in range(len(CANDIDATES))]
    keys = ("candidate", "tile", "threads", "registers", "shared_bytes", "blocks_an_sm", "products")
    rows = [
        [mark, *(e[key] for key in keys), f"{e['issue_cycles']:.0f}", e.get("cache_bytes", "-"),
         "; ".join(e["against"]) or "yes"] for mark, e in zip(marks, entries, strict=True)
    ]  # fmt: skip
    print_table(CANDIDATE, rows, right=set(CANDIDATE) - {"", "tile", "serves"}, fold=("serves",))
    if choice is not None:
        how = "on" if choice.basis == MEASURED else "for"
        click.echo(f"* recorded: {choice.microseconds} us {choice.basis} {how} {_card(choice)}")
    for card in cost.CARDS:
        click.echo(f"\n{card.name}: cycles of a stage by limit, {cost.DEVICE} in microseconds")
        serving = [(mark, e) for mark, e in zip(marks, entries, strict=True) if "cards" in e]
        cells = [[mark, e["candidate"], *_on_cells(e["cards"][card.name], stages=True)] for mark, e in serving]
        _print_on_card(("", "#", *ON_CARD), cells)
    _print_sources()
    _print_runs(runs)


def _print_sources() -> None:
    """The model's constants, and where each is from."""
    click.echo()
    for card in cost.CARDS:
        click.echo(
            f"{card.name}: {card.sms} SMs at {card.megahertz} MHz, {card.product_cycles} cycles an HMMA a sub-core, "
            f"{card.device_bytes:.0f} bytes a cycle of DRAM (published); {card.cache_bytes:.0f} of L2 (assumed)"
        )
    click.echo(
        f"shared memory {cost.SHARED_WIDTH} bytes a cycle (published); copies {cost.LATENCY} cycles, "
        f"a block's start and end {cost.SETUP} (assumed); one instruction a cycle a sub-core (published), "
        f"{cost.PRODUCT_ISSUE} between a warp's HMMAs (mined)"
    )
    click.echo(f"times within {cost.TIE:.0%} are equal: the candidate that asks least of L2 wins")


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
        "waves": found.waves, "fullest": found.fullest, "stage_cycles": dict(found.stage),
        "limits": dict(found.floors), "microseconds": found.microseconds, "limit": found.limit, "share": found.share,
        "reason": found.reason,
    }  # fmt: skip


def _on_cells(on: Mapping[str, Any], stages: bool = False) -> list[object]:
    """A card's cells: limits as the product's microseconds, or as a stage's cycles."""
    limits = [f"{on['limits'][name]:.1f}" for name in LIMITS]
    if stages:
        limits[:-1] = [f"{on['stage_cycles'][name]:.0f}" for name in LIMITS[:-1]]
    return [
        on["fullest"], f"{on['waves']:.2f}", f"{on['microseconds']:.1f}", f"{on['share']:.0%}", *limits, on["limit"],
        on["reason"],
    ]  # fmt: skip
