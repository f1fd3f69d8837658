"""Registers that a launch carries."""

from typing import NamedTuple


class Demand(NamedTuple):
    general: int


def launch_registers(demand: Demand) -> int:
    return -(-(demand.general + 2) // 2) * 2
