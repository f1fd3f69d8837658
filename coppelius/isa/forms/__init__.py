"""The rows of the opcode table, a file a family."""

from __future__ import annotations

from coppelius.isa.form import Form
from coppelius.isa.forms import floating, integer


def all_forms() -> list[Form]:
    """Every row of SM86, in the order of the files."""
    return [*floating.FORMS, *integer.FORMS]
