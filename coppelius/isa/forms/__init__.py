"""The rows of the opcode table, a file a family."""

from __future__ import annotations

from coppelius.isa.form import Form
from coppelius.isa.forms import (
    atomics,
    cache,
    compare,
    control,
    convergence_moves,
    conversion,
    double,
    floating,
    half,
    integer,
    logic,
    memory,
    move,
    shared_memory,
    surface,
    system,
    tensor,
    texture,
    transcendental,
    uniform,
    vector,
    warp,
)


def all_forms() -> list[Form]:
    """Every row of SM86, in the order of the files."""
    arithmetic = (
        floating,
        half,
        double,
        integer,
        logic,
        compare,
        vector,
        move,
        transcendental,
        conversion,
        tensor,
        uniform,
    )
    memories = (memory, shared_memory, atomics, cache)
    families = (*arithmetic, *memories, texture, surface, warp, control, convergence_moves, system)
    return [form for family in families for form in family.FORMS]
