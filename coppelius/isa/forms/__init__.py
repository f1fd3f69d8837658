"""The rows of the opcode table, a file a family."""

from __future__ import annotations

from coppelius.isa.form import Form
from coppelius.isa.forms import compare, conversion, floating, half, integer, logic, move, transcendental


def all_forms() -> list[Form]:
    """Every row of SM86, in the order of the files."""
    families = (floating, half, integer, logic, compare, move, transcendental, conversion)
    return [form for family in families for form in family.FORMS]
