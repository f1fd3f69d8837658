"""What each mnemonic does: `@executes("FADD")` marks the function that binds one instruction to its step.

A binder is called once per place of a program with the `Operation` there, and returns the step that
runs it for a group.  Control flow is marked `@controls`: its step also decides where the group goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from coppelius.emulator.group import Group

if TYPE_CHECKING:
    from coppelius.emulator.engine import Engine
    from coppelius.emulator.operation import Operation

Step = Callable[[Group], None]
# engine, the whole group at this place, and the part of it whose guard holds (None: nobody's does)
ControlStep = Callable[["Engine", Group, Group | None], None]
Binder = Callable[["Operation"], Step]
ControlBinder = Callable[["Operation"], ControlStep]

BINDERS: dict[str, Binder] = {}
CONTROL_BINDERS: dict[str, ControlBinder] = {}


def executes(*mnemonics: str) -> Callable[[Binder], Binder]:
    """Registers the meaning of these mnemonics."""

    def mark(binder: Binder) -> Binder:
        for mnemonic in mnemonics:
            _refuse_twice(mnemonic)
            BINDERS[mnemonic] = binder
        return binder

    return mark


def controls(*mnemonics: str) -> Callable[[ControlBinder], ControlBinder]:
    """Registers the meaning of these control-flow mnemonics."""

    def mark(binder: ControlBinder) -> ControlBinder:
        for mnemonic in mnemonics:
            _refuse_twice(mnemonic)
            CONTROL_BINDERS[mnemonic] = binder
        return binder

    return mark


def known() -> frozenset[str]:
    """Every mnemonic that has a meaning."""
    from coppelius.emulator import semantics  # noqa: F401 - importing registers

    return frozenset(BINDERS) | frozenset(CONTROL_BINDERS)


def _refuse_twice(mnemonic: str) -> None:
    if mnemonic in BINDERS or mnemonic in CONTROL_BINDERS:
        raise ValueError(f"{mnemonic} is given two meanings")
