"""`coppelius measure`: the tiled products' candidates timed on a card, and the record that follows from it.

Nothing is written without `--record`; then a whole record stands in that file, the reviewed one with the products
that were measured replaced: review it, `coppelius choices --record FILE` shows it, and copy it over.  It is written
beside and renamed; a file that is there is overwritten only when told.  A candidate that computes a wrong C is named,
nothing is recorded, and the exit status is 1.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coppelius.cli.choices import named_product
from coppelius.cli.commands import REFUSED
from coppelius.cli.output import print_json, print_table
from coppelius.device.card import CardFacts
from coppelius.device.cuda import open_device
from coppelius.isa.refusal import Refusal
from coppelius.products import cost
from coppelius.products.admission import admit
from coppelius.products.record import CHOICES, MEASURED, RUNS, Choice, Run
from coppelius.products.record_text import REVIEWED, record_text
from coppelius.products.shape import PRODUCTS, Product
from coppelius.products.tile import CANDIDATES

if TYPE_CHECKING:
    from coppelius.cli.measuring import Timing

Timings = Mapping[str, Sequence["Timing"]]
COLUMNS = ("product", "", "#", "tile", "us", "spread", "modelled", "problem")
RECORDED_TARGET = "sm86"  # whose launches the record is for


@click.command("measure")
@click.argument("products", nargs=-1)
@click.option("--record", type=click.Path(dir_okay=False, path_type=Path), help="Write the record to this file.")
@click.option("--overwrite", is_flag=True, help="Even if that file is there.")
@click.option("--half", type=click.Choice(("bf16", "f16")), default="bf16", show_default=True)
@click.option("--repeats", type=click.IntRange(3), default=21, show_default=True, help="Batches of launches.")
@click.option("--device", "number", type=click.IntRange(0), default=0, show_default=True, help="Which card.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def measure_command(
    products: tuple[str, ...], record: Path | None, overwrite: bool, half: str, repeats: int, number: int, as_json: bool
) -> int:
    """Time every candidate of all tiled PRODUCTS, or of these, on a card.

    Needs the package cuda-bindings (the extra `measure`), the NVIDIA driver and a card.
    """
    chosen = [named_product(name) for name in products] or list(PRODUCTS)
    _refuse_place(record, overwrite)
    device = open_device(number)
    try:
        facts = device.facts
        _refuse_other_target(facts, record)
        timings = _measure(device, chosen, half, repeats)
    finally:
        device.close()
    wrong = any(timing.wrong for entries in timings.values() for timing in entries)
    made = {} if wrong else _choices(chosen, timings, facts)
    if as_json:
        print_json(
            card=asdict(facts), half=half, repeats=repeats,
            products={name: [asdict(t) for t in entries] for name, entries in timings.items()},
            choices={name: asdict(choice) for name, choice in made.items()},
        )  # fmt: skip
    else:
        _print(timings, made, facts)
    if wrong:
        click.echo("coppelius measure: a candidate computes a wrong C; nothing is recorded", err=True)
        return REFUSED
    if record is not None:
        _write_record(record, made, facts)
    return 0


def _refuse_place(record: Path | None, overwrite: bool) -> None:
    """Before anything is measured, since the record is written after all of it."""
    if record is None:
        return
    if record.exists() and not overwrite:
        raise Refusal(f"{record}: is there; name another file, or say --overwrite")
    if not os.access(record.parent, os.W_OK | os.X_OK):
        raise Refusal(f"{record}: {record.parent} is no folder that can be written to")


def _refuse_other_target(facts: CardFacts, record: Path | None) -> None:
    if facts.target != RECORDED_TARGET and record is not None:
        raise Refusal(
            f"{facts.name} runs {facts.target}; the record is for {RECORDED_TARGET}; "
            "without --record its times are shown"
        )


def _measure(device: Any, products: Sequence[Product], half: str, repeats: int) -> dict[str, list[Timing]]:
    from coppelius.cli.measuring import measure_product

    return {p.identity: measure_product(device, p, half=half, repeats=repeats) for p in products}


def _choices(products: Sequence[Product], timings: Timings, facts: CardFacts) -> dict[str, Choice]:
    """The quickest candidate of each product, as the record spells it."""
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    made = {}
    for product in products:
        times = {timing.candidate: timing.microseconds for timing in timings[product.identity]}
        number = cost.quickest(times, product)
        made[product.identity] = Choice(number, round(times[number], 1), MEASURED, facts.name, date)
    return made


def _write_record(path: Path, made: Mapping[str, Choice], facts: CardFacts) -> None:
    """The reviewed record with these lines, beside and renamed."""
    known = {**CHOICES, **made}
    choices = {product.identity: known[product.identity] for product in PRODUCTS if product.identity in known}
    run = Run(facts.sms, facts.megahertz, facts.memory_megahertz, facts.driver)
    used = {(choice.card, choice.date) for choice in choices.values()}
    runs = {key: kept for key, kept in RUNS.items() if key in used}
    runs |= {(choice.card, choice.date): run for choice in made.values()}
    admit(choices, PRODUCTS, runs)
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        beside.write_text(record_text(REVIEWED.read_text(encoding="utf-8"), choices, runs), encoding="utf-8")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    click.echo(f"{path}: the record, {len(made)} of {len(choices)} choices measured", err=True)


def _print(timings: Timings, made: Mapping[str, Choice], facts: CardFacts) -> None:
    card = next((card for card in cost.CARDS if facts.name.endswith(card.name)), None)
    rows = []
    for product in PRODUCTS:
        for timing in timings.get(product.identity, ()):
            tile = CANDIDATES[timing.candidate]
            modelled = "-" if card is None else f"{cost.estimate(tile, product, card).microseconds:.1f}"
            chosen = made.get(product.identity)
            mark = "*" if chosen is not None and chosen.candidate == timing.candidate else ""
            times = ("-", "-") if timing.wrong else (f"{timing.microseconds:.1f}", f"{timing.spread:.1%}")
            rows.append((product.identity, mark, timing.candidate, tile, *times, modelled, timing.wrong))
    print_table(COLUMNS, rows, right=("#", "us", "spread", "modelled"), fold=("problem",))
    click.echo(str(facts))
    for name, choice in made.items():
        before = CHOICES.get(name)
        if before is not None and before.candidate != choice.candidate:
            click.echo(f"{name}: candidate {choice.candidate} is the quickest; the record has {before.candidate}")
