"""From a mnemonic and operand values to one encoding and its fields.

Operands come in nvdisasm's order.  A string in the place of a written register names a new one, as
wide as the form writes.  Predicates that read as true may be left out at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from coppelius.builder.registers import Names
from coppelius.isa.form import Encoding
from coppelius.isa.operands import Label
from coppelius.isa.parser import mnemonic_ways, shape
from coppelius.isa.refusal import Refusal
from coppelius.isa.slots import WRITE, Access, Predicate, Slot, Values
from coppelius.isa.table import Table
from coppelius.isa.values import Label_

Made = list[object]


def select(table: Table, mnemonic: str, operands: Sequence[object], names: Names) -> tuple[Encoding, Values, Made]:
    """(encoding, fields, registers that were named here); refuses with the forms that exist."""
    ways = mnemonic_ways(table, mnemonic)
    if not ways:
        raise Refusal(f"{mnemonic}: {table.target} has no such instruction or modifiers")
    for encoding, modifiers in ways:
        found = _match(encoding.operands, operands)
        if found is None:
            continue
        values, pending = found
        values = dict(modifiers) | values
        made: Made = []
        for slot, name in pending:
            register = _name(encoding, values, slot, name, names)
            accepted = slot.accept(register)
            if accepted is None:
                raise Refusal(f"{mnemonic}: operand {name!r} cannot name a new register")
            values |= accepted
            made.append(register)
        return encoding, values, made
    shapes = sorted({"(" + ", ".join(shape(s) for s in e.operands) + ")" for e, _ in ways})
    given = ", ".join(_describe(o) for o in operands)
    raise Refusal(f"{mnemonic}: no form takes ({given}); forms: {' '.join(shapes)}")


_Matched = tuple[Values, list[tuple[Slot, str]]]


def _match(slots: Sequence[Slot], operands: Sequence[object]) -> _Matched | None:
    if not slots:
        return None if operands else ({}, [])
    slot, rest = slots[0], slots[1:]
    if operands:
        first = operands[0]
        if isinstance(first, str) and _written(slot) is not None:
            more = _match(rest, operands[1:])
            if more is not None:
                return more[0], [(slot, first), *more[1]]
        accepted = _accept(slot, first)
        if accepted is not None:
            more = _match(rest, operands[1:])
            if more is not None:
                return accepted | more[0], more[1]
    if slot.absent is not None:
        more = _match(rest, operands)
        if more is not None:
            return slot.absent | more[0], more[1]
    elif not operands and isinstance(slot, Predicate) and _written(slot) is None:
        more = _match(rest, operands)
        if more is not None:
            return more
    return None


def _accept(slot: Slot, operand: object) -> Values | None:
    if isinstance(slot, Label_) and isinstance(operand, str):
        operand = Label(0)
    return slot.accept(operand)


def _written(slot: Slot) -> Access | None:
    """The access through which a slot writes registers that a kernel may name."""
    return next((a for a in slot.accesses if a.mode == WRITE and a.space in ("R", "UR", "P", "UP")), None)


def _name(encoding: Encoding, values: Values, slot: Slot, name: str, names: Names) -> object:
    access = _written(slot)
    assert access is not None
    width = access.width
    if not isinstance(width, int):
        field, widths = width
        defaults: Callable[[str], int] = lambda f: encoding.defaults[encoding.column[f]]  # noqa: E731
        width = widths.get(values.get(field, defaults(field)), 1)
    return names.new(access.space, name, width)


def _describe(operand: object) -> str:
    kind = type(operand).__name__
    return {"Vector": "R", "UniformVector": "UR", "Constant": "c[bank][offset]", "Address": "[address]"}.get(
        kind, repr(operand) if isinstance(operand, (int, float, str)) else kind
    )
