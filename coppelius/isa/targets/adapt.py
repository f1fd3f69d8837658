"""Operands as another target has them: the same slot with its fields elsewhere, or another text.

From SM100 on a uniform register is named by eight bits, whose lowest six stay where they are, so that URZ is
255.  From SM90 on nvdisasm always prints a memory descriptor, and both carries out of an addition.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

from coppelius.isa.address import AddressOperand
from coppelius.isa.bits import Bits, Field
from coppelius.isa.operands import URZ_INDEX
from coppelius.isa.slots import Modified, Predicate, Slot, UniformRegister

Adapt = Callable[[Slot], Slot]

SHORT, WIDE = 6, 8


def wide(place: Bits) -> Bits:
    """The eight bits of a uniform register whose lowest six are these."""
    ((low, width),) = place.parts
    if width != SHORT:
        raise ValueError(f"{place} is not the place of a uniform register")
    return Bits(((low, WIDE),))


def widened(slot: Slot) -> Slot:
    """The slot with each of its uniform registers eight bits wide."""
    names = {a.field for a in slot.accesses if a.space == "UR"}
    if not names:
        return slot
    twin = with_fields(slot, lambda field: _wide_field(field) if field.name in names else field)
    if isinstance(twin, UniformRegister) and twin.absent is not None:
        twin.absent = {twin.name: twin.zero}
    return twin


def _wide_field(field: Field) -> Field:
    if field.width == WIDE:
        return field
    zero = (1 << WIDE) - 1
    default = zero if field.default == URZ_INDEX else field.default
    codes = frozenset(range(zero)) if field.codes == frozenset(range(URZ_INDEX)) else field.codes
    return replace(field, bits=wide(field.bits), default=default, codes=codes)


def with_fields(slot: Slot, change: Callable[[Field], Field]) -> Slot:
    """A copy of the slot with each of its fields changed, wherever it keeps them."""
    twin = copy.copy(slot)
    caches = {name for name in dir(type(slot)) if isinstance(getattr(type(slot), name, None), cached_property)}
    for name, value in vars(slot).items():
        if name in caches:
            del twin.__dict__[name]
        elif isinstance(value, Field):
            twin.__dict__[name] = change(value)
        elif isinstance(value, Slot):
            twin.__dict__[name] = with_fields(value, change)
        elif isinstance(value, tuple) and any(isinstance(part, Field) for part in value):
            twin.__dict__[name] = tuple(change(part) if isinstance(part, Field) else part for part in value)
    return twin


def spelled_out(slot: Slot) -> Slot:
    """An address whose descriptor always prints."""
    if not isinstance(slot, AddressOperand) or not slot.is_described:
        return slot
    return slot.spelled_out()


def carries_shown(slot: Slot) -> Slot:
    """A predicate that prints where it is PT, too."""
    return slot.always() if isinstance(slot, Predicate) and slot.absent is not None else slot


def without_half(*codes: int) -> Adapt:
    """A 16-bit operand that cannot be selected in these ways (1 is `.F32`, 4 is `.H0_NH1`)."""

    def narrow(field: Field) -> Field:
        if not field.name.endswith(".half"):
            return field
        return replace(field, codes=frozenset(field.codes or range(1 << field.width)) - set(codes))

    return lambda slot: with_fields(slot, narrow) if isinstance(slot, Modified) and slot.selects_halves else slot


def never(name: str, *codes: int) -> Adapt:
    """An operand whose field of that name never has these values."""

    def narrow(field: Field) -> Field:
        if field.name != name:
            return field
        left = frozenset(field.codes or range(1 << field.width)) - set(codes)
        return replace(field, codes=left, default=field.default if field.default in left else min(left))

    return lambda slot: with_fields(slot, narrow)


def unsigned(name: str) -> Adapt:
    """An immediate that prints without a sign."""
    return lambda slot: with_fields(slot, lambda f: replace(f, signed=False) if f.name == name else f)


def without_reuse(*names: str) -> Adapt:
    """Operands that are never kept beside the pipe."""
    return lambda slot: slot.without_reuse() if isinstance(slot, Modified) and slot.name in names else slot


def both(first: Adapt, second: Adapt) -> Adapt:
    """One change, then the other."""
    return lambda slot: second(first(slot))
