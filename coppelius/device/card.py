"""What a card is, which images it runs, and what a measurement asks of it.

A card runs a cubin of its own compute capability (and of an older one with the same major number, which nothing here
relies on).  Shared memory beyond 48 KiB is asked for before a launch.  Work is timed between two events of one
stream, so that the launches between them follow one another without a gap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from coppelius.isa.refusal import Refusal

# compute capability -> whose images it runs (published)
TARGETS = {(8, 0): "sm80", (8, 6): "sm86", (8, 9): "sm89", (9, 0): "sm90", (12, 0): "sm120", (12, 1): "sm121"}


@dataclass(frozen=True)
class CardFacts:
    """As the driver tells them; clocks are the highest that the card may take."""

    name: str
    capability: tuple[int, int]
    sms: int
    megahertz: int
    memory_megahertz: int
    driver: str

    @property
    def target(self) -> str:
        """Whose images it runs; refuses a card by name that runs none of ours."""
        found = TARGETS.get(self.capability)
        if found is None:
            known = ", ".join(f"{major}.{minor}" for major, minor in TARGETS)
            major, minor = self.capability
            raise Refusal(f"{self.name}: compute capability {major}.{minor}; images are made for {known}")
        return found

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.sms} SMs at up to {self.megahertz} MHz, memory at {self.memory_megahertz} MHz, "
            f"driver {self.driver}"
        )


class Device(Protocol):
    """A card that is open; addresses are of its memory."""

    @property
    def facts(self) -> CardFacts:
        """What the card is."""

    def load(self, cubin: bytes, symbol: str, dynamic_shared: int) -> Any:
        """The kernel of that symbol, allowed so many bytes of shared memory at launch."""

    def allocate(self, size: int) -> int:
        """The address of so many bytes, 256-byte aligned."""

    def write(self, address: int, data: NDArray[Any]) -> None:
        """Copies an array to the card."""

    def read(self, address: int, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """An array's copy, after all work that was launched is done."""

    def launch(
        self, kernel: Any, grid: tuple[int, int, int], block_x: int, dynamic_shared: int, pointers: Sequence[int]
    ) -> None:
        """Launches a kernel whose parameters are pointers; does not wait for it."""

    def microseconds(self, work: Callable[[], None]) -> float:
        """From before the first launch of `work` until its last is done."""

    def close(self) -> None:
        """Gives everything back."""


def poison(shape: tuple[int, ...]) -> NDArray[np.float32]:
    """What a result's place holds before a launch: NaNs that no arithmetic gives."""
    return np.full(shape, 0xFFFFDEAD, np.uint32).view(np.float32)
