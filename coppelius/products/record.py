"""The recorded choice of each tiled product: reviewed by hand, one line a product.

A line says which candidate (`tile.CANDIDATES`), the microseconds it rests on, whether a card measured them or the
model (`cost`) gave them, and for which card.  The step `choices` admits the whole record before any product is built.
No card has measured these yet; `coppelius choices PRODUCT` shows what the other candidates would take.
"""

from __future__ import annotations

from dataclasses import dataclass

MEASURED, MODELLED = "measured", "modelled"
RTX_3090 = "GeForce RTX 3090"


@dataclass(frozen=True)
class Choice:
    """`basis`: measured or modelled, on or for `card`."""

    candidate: int
    microseconds: float
    basis: str
    card: str


# fmt: off
CHOICES = {
    # product                          candidate, microseconds, basis, card
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
