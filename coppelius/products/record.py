"""The recorded choice of each tiled product: reviewed by hand, one line a product.

A line says which candidate (`tile.CANDIDATES`), the microseconds it rests on, whether a card measured them or the
model (`cost`) gave them, on or for which card, and when a card did.  Each day of a card has its line in `RUNS`.  The
step `choices` admits the whole record before any product is built.  No card has measured these yet: `coppelius
choices PRODUCT` shows what the model says of the other candidates, `coppelius measure --record FILE` writes this file
anew from a card's times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MEASURED, MODELLED = "measured", "modelled"
RTX_3090 = "GeForce RTX 3090"


@dataclass(frozen=True)
class Choice:
    """`basis`: measured or modelled, on or for `card`; `date`: of a measurement, which `RUNS` tells more of."""

    candidate: int
    microseconds: float
    basis: str
    card: str
    date: str = ""


@dataclass(frozen=True)
class Run:
    """One day of one card: its SMs, clocks of them and of memory, and the driver."""

    sms: int
    megahertz: int
    memory_megahertz: int
    driver: str


Runs = Mapping[tuple[str, str], Run]


# fmt: off
RUNS: Runs = {
    # card, date: SMs, MHz, MHz of memory, driver
}
CHOICES: dict[str, Choice] = {
    # product                          candidate, microseconds, basis, card; date of a measurement
    "tiled-rr-m1024-n1536-k512":        Choice(2,   25.7, MODELLED, RTX_3090),
    "tiled-rr-m1024-n512-k512-add":     Choice(4,   12.3, MODELLED, RTX_3090),
    "tiled-rr-m1024-n1408-k512":        Choice(2,   25.7, MODELLED, RTX_3090),
    "tiled-rr-m1024-n512-k1408-add":    Choice(4,   29.2, MODELLED, RTX_3090),
    "tiled-rr-m1024-n12288-k512":       Choice(4,  185.2, MODELLED, RTX_3090),
    "tiled-rc-m1024-n512-k1536":        Choice(4,   30.6, MODELLED, RTX_3090),
    "tiled-rc-m1024-n512-k512":         Choice(4,   11.2, MODELLED, RTX_3090),
    "tiled-rc-m1024-n512-k1408":        Choice(4,   28.1, MODELLED, RTX_3090),
    "tiled-rc-m1024-n512-k1408-add":    Choice(4,   29.2, MODELLED, RTX_3090),
    "tiled-rc-m1024-n1408-k512":        Choice(2,   25.7, MODELLED, RTX_3090),
    "tiled-rc-m1024-n512-k12288":       Choice(4,  233.5, MODELLED, RTX_3090),
    "tiled-cc-m1536-n512-k1024":        Choice(2,   31.1, MODELLED, RTX_3090),
    "tiled-cc-m512-n512-k1024":         Choice(2,   10.7, MODELLED, RTX_3090),
    "tiled-cc-m1408-n512-k1024":        Choice(2,   31.1, MODELLED, RTX_3090),
    "tiled-cc-m512-n1408-k1024":        Choice(2,   31.1, MODELLED, RTX_3090),
    "tiled-cc-m12288-n512-k1024":       Choice(2,  184.7, MODELLED, RTX_3090),
}
# fmt: on
