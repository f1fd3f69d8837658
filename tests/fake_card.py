"""A card that is the emulator: cubins are read as the driver reads them, launches run, time is what was issued."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coppelius.container.cubin import read_cubin
from coppelius.device.card import CardFacts
from coppelius.emulator.memory import Memory
from coppelius.emulator.module import Module

RTX_3090 = CardFacts("NVIDIA GeForce RTX 3090", (8, 6), 82, 1695, 9751, "580.65.06, CUDA 13.0")


class FakeCard:
    """`spoil`: called with the symbol and C's memory after each launch, to be a card that errs."""

    def __init__(
        self, facts: CardFacts = RTX_3090, spoil: Callable[[str, NDArray[np.uint8]], None] | None = None
    ) -> None:
        self.facts, self.spoil = facts, spoil
        self.memory = Memory()
        self.arrays: dict[int, NDArray[np.uint8]] = {}
        self.allowed: dict[str, int] = {}
        self.launched: list[str] = []
        self.now = 0.0
        self.closed = False
        self._known: dict[str, tuple[float, bytes]] = {}

    def load(self, cubin: bytes, symbol: str, dynamic_shared: int) -> Any:
        assert read_cubin(cubin, "fake").kernels[0].shared == 0  # beyond 48 KiB only dynamic bytes are possible
        module = Module(read_cubin(cubin, "fake"), self.memory)
        assert module.kernel(symbol).architecture == int(self.facts.target.removeprefix("sm"))
        self.allowed[symbol] = dynamic_shared
        return module, symbol

    def allocate(self, size: int) -> int:
        array = np.zeros(size, np.uint8)
        address = self.memory.place(array, f"buffer {len(self.arrays)}")
        self.arrays[address] = array
        return address

    def write(self, address: int, data: NDArray[Any]) -> None:
        self.arrays[address][:] = np.ascontiguousarray(data).reshape(-1).view(np.uint8)

    def read(self, address: int, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        return self.arrays[address].copy().view(dtype).reshape(shape)

    def launch(
        self, kernel: Any, grid: tuple[int, int, int], block_x: int, dynamic_shared: int, pointers: Sequence[int]
    ) -> None:
        module, symbol = kernel
        assert dynamic_shared <= self.allowed[symbol]
        # a launch that only times gives what it gave before: the emulator is slow
        count = self.launched.count(symbol)
        c = self.arrays[pointers[0]]
        if symbol not in self._known:
            values = [np.uint64(p) for p in pointers]
            report = module.launch(symbol, grid, block_x, *values, shared=dynamic_shared, mma="fast")
            cycles = report.issued / 4  # as if one SM did it all
            self._known[symbol] = cycles / self.facts.megahertz, c.tobytes()
        time, result = self._known[symbol]
        c[:] = np.frombuffer(result, np.uint8)
        if self.spoil is not None:
            self.spoil(f"{symbol} {count}", c)
        self.launched.append(symbol)
        self.now += time

    def microseconds(self, work: Callable[[], None]) -> float:
        start = self.now
        work()
        return self.now - start

    def close(self) -> None:
        self.closed = True
