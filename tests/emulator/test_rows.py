"""Every executable row of the table runs by itself, over random operands and modifiers and over extreme inputs.

What is held: no meaning fails or warns; lanes that are not active keep every register and predicate; what a lane
computes does not depend on which others are active (but where the warp computes together).  That values are right is
held by the kernels against numpy, by the operands' tests and by those of the numerics.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from absences import reason, refusal

from coppelius.container.cubin import read_cubin
from coppelius.emulator import semantics  # noqa: F401 - importing registers
from coppelius.emulator.group import Group
from coppelius.emulator.launch import constant_banks
from coppelius.emulator.machine import Machine
from coppelius.emulator.memory import Memory
from coppelius.emulator.operation import Operation
from coppelius.emulator.registry import BINDERS, CONTROL_BINDERS
from coppelius.isa.form import Encoding
from coppelius.isa.refusal import Refusal
from coppelius.isa.table import sm86
from coppelius.isa.targets.layout import layout_of
from coppelius.program.program import Instruction, Program

CUBINS = Path(__file__).resolve().parents[1] / "data" / "cuda" / "cubins"
TRIES = 3
# fmt: off
EXTREME = np.array([
    0, 1, 2, 31, 32, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0x007FFFFF,
    0x80000001, 0x00800000, 0x7F7FFFFF, 0x3F800000, 0xBF800000, 0x7BFF7C00, 0x80007E01, 0x00010400, 0x4F000000,
], np.uint32)
# fmt: on
# what a warp computes together, or in an order
TOGETHER = frozenset(
    ("HMMA", "IMMA", "BMMA", "DMMA", "MOVM", "LDSM", "SHFL", "VOTE", "VOTEU", "MATCH", "REDUX", "R2UR")
)
TOGETHER |= {"ATOM", "ATOMG", "ATOMS", "RED", "B2R", "BSSY", "BREAK", "BMOV"}
ADDRESS, SHARED = 4, 6  # R4:R5 points into a buffer, R6 into shared memory; UR4:UR5 is zero


def _machine(random: np.random.Generator) -> Machine:
    grid, block = (1, 1, 1), (32, 1, 1)
    memory = Memory()
    base = memory.place(random.integers(0, 2**32, 4096, dtype=np.uint32))
    bank = constant_banks(grid, block, random.bytes(64), {}, layout_of("sm86"))
    machine = Machine(
        kernel="row", grid=grid, block=block, capacity=1, registers=256, memory=memory, constants=bank,
        shared_bytes=4096, local_bytes=4096, collect=True,
    )  # fmt: skip
    machine.begin(np.zeros(1, np.int64))
    lanes = np.arange(32, dtype=np.uint64) * np.uint64(64) + np.uint64(base + 1024)
    machine.registers[:] = random.integers(0, 2**32, machine.registers.shape, dtype=np.uint32)
    extreme = random.random(machine.registers.shape) < 0.5
    machine.registers[extreme] = random.choice(EXTREME, int(extreme.sum()))
    machine.registers[ADDRESS], machine.registers[ADDRESS + 1] = (
        lanes.astype(np.uint32),
        (lanes >> 32).astype(np.uint32),
    )
    machine.registers[SHARED] = np.arange(32, dtype=np.uint32) * 64
    machine.predicates[:] = random.random(machine.predicates.shape) < 0.5
    machine.uniform[:] = random.choice(EXTREME, machine.uniform.shape)
    machine.uniform[4:6] = 0
    return machine


def _values(encoding: Encoding, random: np.random.Generator) -> tuple[int, ...]:
    """Legal values: registers where their width allows, any modifier, addresses that lie somewhere."""
    registers = {a.field: a for a in encoding.accesses}
    control = {"guard", "guard.not", "stall", "keep", "write_barrier", "read_barrier", "wait"}
    values = []
    for field in encoding.fields:
        value = field.default if field.admits(field.default) else min(field.codes or (0,))
        access = registers.get(field.name)
        if field.name in control or "address" in field.name or "shared" in field.name or "base" in field.name:
            if access is not None and access.space == "R":
                value = SHARED if "shared" in field.name or encoding.mnemonic[-1:] == "S" else ADDRESS
        elif access is not None and access.space == "R":
            value = int(random.integers(2, 14)) * 4 + 8 * (field.name == "D")
        elif access is not None and access.space == "UR":
            value = int(random.integers(4, 12)) * 2 << access.shift
        elif access is not None:
            value = int(random.integers(0, 8)) << access.shift
        elif field.codes is not None:
            value = int(random.choice(sorted(field.codes)))
        elif field.width <= 8 and "offset" not in field.name:
            value = int(random.integers(field.low, field.high + 1))
        elif field.width == 32:
            value = int(random.choice(EXTREME))
        elif field.width == 19 or field.width == 17:
            value = 0x58 + int(random.integers(0, 8)) * 2  # a word of the parameters
        values.append(value if field.admits(value) else field.default)
    return tuple(values)


def _executable() -> Iterator[Encoding]:
    for encoding in sm86().encodings:
        if not reason(encoding) and encoding.mnemonic in BINDERS:
            yield encoding


def _state(machine: Machine) -> dict[str, Any]:
    return {"R": machine.registers.copy(), "P": machine.predicates.copy()}


def _restore(machine: Machine, state: dict[str, Any], memory: list[Any]) -> None:
    machine.registers[:], machine.predicates[:] = state["R"], state["P"]
    for buffer, data in zip(machine.memory.buffers, memory, strict=True):
        buffer.data[:] = data


def _wrong(encoding: Encoding, machine: Machine, some: Any, random: np.random.Generator) -> str:
    """What is wrong with one try, or nothing; raises what a meaning raises."""
    operation = Operation(machine, Program.of([Instruction(encoding, _values(encoding, random))]), 0)
    step = BINDERS[encoding.mnemonic](operation)
    before, memory = _state(machine), [b.data.copy() for b in machine.memory.buffers]
    uniform = machine.uniform.copy(), machine.uniform_predicates.copy()
    step(Group(slice(0, 1), 1, None))
    whole = _state(machine)
    _restore(machine, before, memory)
    machine.uniform[:], machine.uniform_predicates[:] = uniform
    step(Group(slice(0, 1), 1, some))
    part = _state(machine)
    _restore(machine, before, memory)
    machine.uniform[:], machine.uniform_predicates[:] = uniform
    for space in ("R", "P"):
        if not np.array_equal(np.where(some, 0, part[space]), np.where(some, 0, before[space])):
            return f"{operation.text}: writes {space} of lanes that are not active"
        together = encoding.mnemonic.split(".")[0] in TOGETHER
        if not together and not np.array_equal(np.where(some, part[space], 0), np.where(some, whole[space], 0)):
            return f"{operation.text}: {space} depends on which other lanes are active"
    return ""


@pytest.mark.parametrize("seed", range(TRIES))
def test_every_row_alone(seed: int) -> None:
    random = np.random.default_rng(seed)
    machine, wrong, ran = _machine(random), [], set()
    some = np.arange(32).reshape(1, 32) % 5 == 2
    for encoding in _executable():
        for _ in range(1 if refusal(encoding) else 60):  # some modifiers are refused by name; another choice is not
            machine.findings.clear()
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    found = _wrong(encoding, machine, some, random)
            except Refusal:
                continue
            except Exception as error:
                found = f"{encoding.name}: {type(error).__name__}: {error}"
            ran.add(encoding.name)
            if found:
                wrong.append(found)
            break
    assert wrong == []
    assert {e.name for e in _executable() if not refusal(e)} == ran


def test_rows_that_do_not_run_have_their_reasons() -> None:
    """The uncovered rows are printed; each has a reason in `absences`, and no reason is without a row."""
    rows = sm86().encodings
    covered = {e.name for e in _executable()} | {e.name for e in rows if e.mnemonic in CONTROL_BINDERS}
    uncovered = [e for e in rows if e.name not in covered or reason(e) or refusal(e)]
    print(f"{len(rows) - len(uncovered)} of {len(rows)} rows run; without a meaning:")
    for why in dict.fromkeys(reason(e) or refusal(e) for e in uncovered):
        names = [e.name for e in uncovered if (reason(e) or refusal(e)) == why]
        print(f"  {why}: {', '.join(names)}")
    assert [e.name for e in uncovered if not reason(e) and not refusal(e)] == []


def test_what_compiled_kernels_contain_runs_or_is_named() -> None:
    """Every mnemonic that ptxas makes of tests/data/cuda, in any of its four ways."""
    found: dict[str, str] = {}
    for path in sorted(CUBINS.rglob("*.cubin")):
        for kernel in read_cubin(path.read_bytes(), path.name).kernels:
            for encoding in {i.encoding for i in Program.decode(kernel.code)}:
                found[encoding.mnemonic] = found.get(encoding.mnemonic) or reason(encoding) or refusal(encoding)
    without = sorted(name for name, why in found.items() if why)
    print(f"{len(found) - len(without)} of {len(found)} mnemonics run; without a meaning: {', '.join(without)}")
    assert without == ["HMMA.SP.16832.F32", "SULD", "SURED", "SUST", "TEX", "TLD", "TLD4", "TXD", "TXQ"]
