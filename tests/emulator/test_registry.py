"""Every row of the table has a meaning, binds, and has its suffixes understood; what is absent is listed here."""

from __future__ import annotations

import numpy as np
from absences import ABSENT, reason

from coppelius.emulator import semantics  # noqa: F401 - importing registers
from coppelius.emulator.group import Group
from coppelius.emulator.launch import constant_banks
from coppelius.emulator.machine import Machine
from coppelius.emulator.memory import Memory
from coppelius.emulator.operation import Operation
from coppelius.emulator.registry import BINDERS, CONTROL_BINDERS, known
from coppelius.isa.form import Encoding
from coppelius.isa.refusal import Refusal
from coppelius.isa.table import sm86, table_of
from coppelius.isa.targets.chips import DIFFERENCES
from coppelius.isa.targets.layout import layout_of
from coppelius.program.program import Instruction, Program


def _machine() -> Machine:
    sizes = (1, 1, 1), (32, 1, 1)
    return Machine(
        kernel="k",
        grid=sizes[0],
        block=sizes[1],
        capacity=1,
        registers=256,
        memory=Memory(),
        constants=constant_banks(*sizes, b"", {1: bytes(8)}, layout_of("sm86")),
        shared_bytes=16,
        local_bytes=16,
    )


def _legal(encoding: Encoding) -> tuple[int, ...]:
    """The defaults, or the least legal code of a field whose default is none."""
    return tuple(f.default if f.admits(f.default) else min(f.codes or (0,)) for f in encoding.fields)


def test_every_row_has_a_meaning_or_is_listed_as_absent() -> None:
    names = {e.mnemonic for e in sm86().encodings if not reason(e)}
    assert sorted(names - known()) == []


def test_no_listed_absence_has_a_meaning() -> None:
    assert sorted(set(ABSENT) & known()) == []


def test_no_meaning_is_of_an_unknown_mnemonic() -> None:
    tables = [sm86(), *(table_of(target) for target in DIFFERENCES)]
    assert sorted(known() - {e.mnemonic for table in tables for e in table.encodings}) == []


def test_every_row_binds_and_its_suffixes_are_asked_for() -> None:
    """Each encoding with its defaults; bindless constants are refused by name."""
    machine, wrong = _machine(), []
    for encoding in sm86().encodings:
        if reason(encoding):
            continue
        operation = Operation(machine, Program.of([Instruction(encoding, _legal(encoding))]), 0)
        binder = BINDERS.get(encoding.mnemonic) or CONTROL_BINDERS.get(encoding.mnemonic)
        assert binder is not None
        try:
            binder(operation)
        except Refusal as refusal:
            if "bindless" not in str(refusal) and "no meaning" not in str(refusal):
                wrong.append(f"{encoding.name}: {refusal}")
            continue
        if operation.unknown():
            wrong.append(f"{encoding.name}: suffixes {operation.unknown()} make no difference")
    assert wrong == []


def test_every_straight_meaning_runs_with_every_lane_and_with_some() -> None:
    """Each encoding once on zeros, all lanes and a few, so that no meaning assumes a full warp or an array shape."""
    machine, wrong = _machine(), []
    start = machine.begin(np.zeros(1, np.int64))
    machine.collect = True
    some = np.arange(32).reshape(1, 32) % 11 == 3
    for encoding in sm86().encodings:
        if reason(encoding) or encoding.mnemonic not in BINDERS:
            continue
        machine.registers.fill(0)
        operation = Operation(machine, Program.of([Instruction(encoding, _legal(encoding))]), 0)
        try:
            step = BINDERS[encoding.mnemonic](operation)
        except Refusal:
            continue
        for group in (start, Group(start.select, 1, some), Group(np.array([0]), 1, some)):
            try:
                step(group)
            except Exception as error:
                wrong.append(f"{encoding.name}: {type(error).__name__}: {error}")
                break
    assert wrong == []
