"""One decoded instruction at its place: its fields, and readers and writers of its operands.

Operands are found by the row's slots, so that a meaning reads `operation.float32("B")` and does not know
whether B is a register, a constant, an immediate or a uniform register, nor where sign and magnitude
lie.  Readers take a group and return unsigned arrays that broadcast to `[warps, 32]`; they may be views
of the register file, so a step computes everything before it writes anything.  A writer stores only
under the group's mask.  RZ, URZ and PT read as zero and true and swallow writes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from coppelius.emulator.access import Read, Write, fixed, joined, nowhere, row_writer, uniform_writer
from coppelius.emulator.group import LANES, Group
from coppelius.emulator.machine import Machine
from coppelius.isa.address import AddressOperand, LabelVia, OffsetVia
from coppelius.isa.operands import PT_INDEX, RZ_INDEX
from coppelius.isa.printer import texts
from coppelius.isa.refusal import Refusal
from coppelius.isa.slots import Modified, Predicate, Register, Slot, UniformRegister
from coppelius.isa.values import (
    F64_HIGH,
    BindlessConstant,
    ConstantOperand,
    Immediate,
    PackedHalves,
    Suffix,
)
from coppelius.program.program import Instruction, Program

Array = npt.NDArray[Any]

_SIGN = np.uint32(0x80000000)
_MAGNITUDE = np.uint32(0x7FFFFFFF)
_HALF_SIGN = np.uint16(0x8000)
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
# suffixes that change no value: cache and order of memory, what the rows split by address say anyway, and what SM120
# says of barriers that wait for threads as SM86's always do
_HINTS = frozenset(
    (
        "E",
        ".E",
        "EVICT",
        "ORDER",
        "LTC",
        "ACCESS",
        "DEFER",
        "SEM",
        "SCOPE",
        "LEVEL",
        ".PACK_AB",
        "RECONVERGENT",
        "RELIABLE",
    )
)
ZERO = np.zeros((1, 1), dtype=np.uint32)
TRUE = np.ones((1, 1), dtype=np.bool_)


class Operation:
    """The instruction at `ordinal` of a program, bound to a machine."""

    def __init__(self, machine: Machine, program: Program, ordinal: int) -> None:
        self.machine = machine
        self.program = program
        self.ordinal = ordinal
        self.instruction: Instruction = program[ordinal]
        self.encoding = self.instruction.encoding
        self.mnemonic = self.encoding.mnemonic
        self._asked: set[str] = set()
        self._slots: dict[str, Slot] = {s.name: s for s in self.encoding.operands}
        for slot in self.encoding.operands:
            if isinstance(slot, LabelVia | OffsetVia):
                self._slots[slot.via.name] = slot.via

    @property
    def text(self) -> str:
        """nvdisasm's text of it."""
        decoded = self.program.decoded
        one = type(decoded)(decoded.table, decoded.uids[self.ordinal :][:1], decoded.values[self.ordinal :][:1])
        return texts(one, self.ordinal * 16)[0]

    def field(self, name: str, default: int | None = None) -> int:
        """A field's value; `default` where this form has none (without a default, that is refused)."""
        self._asked.add(name)
        if name in self.encoding.column:
            return self.instruction[name]
        if default is None:
            raise Refusal(f"{self.encoding.name}: the emulator looks for field {name}; it has {sorted(self._names())}")
        return default

    def _names(self) -> list[str]:
        return list(self.encoding.column)

    def suffix(self, name: str) -> str:
        """The text of a modifier, without its dot: "RZ"; empty where this form has none."""
        self._asked.add(name)
        for modifier in self.encoding.modifiers:
            if modifier.name == name and modifier.fields:
                return modifier.suffixes[self.instruction[name]].lstrip(".")
        return ""

    def marked(self, text: str) -> bool:
        """Whether every instruction of this row has that suffix: ".X"."""
        self._asked.add(text)
        return any(isinstance(m, Suffix) and m.text == text for m in self.encoding.modifiers)

    @property
    def marks(self) -> str:
        """The suffixes that every instruction of this row has, one after another."""
        self._asked.update(m.name for m in self.encoding.modifiers if isinstance(m, Suffix))
        return "".join(m.text for m in self.encoding.modifiers if isinstance(m, Suffix))

    def flag(self, name: str) -> bool:
        """Whether the instruction has that suffix, by its own field or by its row: "SAT"."""
        return self.marked(f".{name}") or bool(self.field(name, 0))

    def ignore(self, *names: str) -> None:
        """These suffixes make no difference to the result."""
        self._asked.update(names)

    def unknown(self) -> list[str]:
        """Suffixes that the meaning did not ask for and that are no mere hints."""
        found = []
        for modifier in self.encoding.modifiers:
            if modifier.name in self._asked or modifier.name in _HINTS:
                continue
            if isinstance(modifier, Suffix) and modifier.text:
                found.append(modifier.text)
            elif modifier.fields and modifier.suffixes[self.instruction[modifier.name]]:
                found.append(modifier.suffixes[self.instruction[modifier.name]])
        return found

    @property
    def unsigned(self) -> bool:
        """Whether the instruction prints .U32."""
        return "U32" in self.suffix("U32")

    def has(self, name: str) -> bool:
        """Whether this form has that operand."""
        return name in self._slots

    def slot(self, name: str) -> Slot:
        """The operand of that name."""
        found = self._slots.get(name)
        if found is None:
            raise Refusal(f"{self.encoding.name}: the emulator looks for operand {name}; it has {list(self._slots)}")
        return found

    def selected(self, name: str) -> str:
        """Which half or byte of its register an operand selects: "H1_H1", "B3"; empty for all of it."""
        slot, code = self.slot(name), self.field(f"{name}.half", 0)
        return slot._names[code].lstrip(".") if isinstance(slot, Modified) else ""

    def _flag(self, slot: Slot, kind: str) -> bool:
        return bool(self.field(f"{slot.name}.{kind}", 0))

    # words

    def word(self, name: str, high: bool = False) -> Read:
        """The 32 bits of an operand without its modifiers; `high`: of the second register of a pair."""
        slot = self.slot(name)
        value = self.field(slot.fields[0].name)
        if isinstance(slot, Register):
            return self.register(value + high if value != RZ_INDEX else value)
        if isinstance(slot, UniformRegister):
            return self.uniform(value + high if value != slot.zero else RZ_INDEX)
        if isinstance(slot, ConstantOperand):
            return self.constant(value >> 14, _signed_offset(value) + 4 * high)
        if isinstance(slot, Immediate):
            wide = slot.style is F64_HIGH
            value = (value if high == wide else 0) if wide else value >> 32 * high
            return fixed(value)
        if isinstance(slot, PackedHalves):
            return fixed(value)
        if isinstance(slot, BindlessConstant):
            raise Refusal(f"{self.encoding.name}: the emulator has no bindless constants (cx[UR][...])")
        raise Refusal(f"{self.encoding.name}: operand {name} holds no word")

    def register(self, index: int) -> Read:
        """A general register by number; 255 reads zero."""
        if index == RZ_INDEX:
            return lambda _: ZERO
        row = self.machine.registers[index]
        return lambda g: row[g.select]

    def uniform(self, index: int) -> Read:
        """A uniform register by number, `[warps, 1]`; 63 and above read zero."""
        if index >= len(self.machine.uniform):
            return lambda _: ZERO
        row = self.machine.uniform[index]
        return lambda g: row[g.select]

    def constant(self, bank: int, offset: int, size: int = 4) -> Read:
        """A word of a constant bank, fixed for the launch."""
        value = self.constant_bits(bank, offset, size)
        return fixed(value)

    def constant_bits(self, bank: int, offset: int, size: int = 4) -> int:
        """`size` bytes of a constant bank as an integer; a read outside the bank is a finding."""
        data = self.machine.constants.get(bank)
        if data is None or not 0 <= offset <= len(data) - size:
            have = "is not given" if data is None else f"has {len(data)} bytes"
            self.machine.report(self, "memcheck", f"c[{bank:#x}][{offset:#x}] is outside its bank, which {have}")
            return 0
        return int.from_bytes(data[offset : offset + size].tobytes(), "little")

    # operands with modifiers

    def float32(self, name: str) -> Read:
        """An f32 operand's bits, sign and magnitude applied."""
        return self._signed(name, self.word(name))

    def _signed(self, name: str, read: Read) -> Read:
        slot = self.slot(name)
        negate, absolute = self._flag(slot, "negate"), self._flag(slot, "absolute")
        if absolute and negate:
            return lambda g: read(g) | _SIGN
        if absolute:
            return lambda g: read(g) & _MAGNITUDE
        if negate:
            return lambda g: read(g) ^ _SIGN
        return read

    def float64_upper(self, name: str) -> Read:
        """The upper word of an f64 operand that is given by that word alone."""
        return self._signed(name, self.word(name, high=isinstance(self.slot(name), Immediate)))

    def float64(self, name: str) -> Read:
        """An f64 operand's bits (uint64) from a pair, a constant pair or the high half as immediate."""
        high = self._signed(name, self.word(name, high=True))
        return joined(self.word(name), high)

    def integer(self, name: str) -> Read:
        """A 32-bit integer operand; a minus is two's complement, a tilde the complement, bars the magnitude."""
        read = self.word(name)
        slot = self.slot(name)
        if self._flag(slot, "absolute"):
            inner = read
            read = lambda g: np.abs(inner(g).view(np.int32)).view(np.uint32)  # noqa: E731
        if not self._flag(slot, "negate"):
            return read
        if isinstance(slot, Modified) and slot.sign == "~":
            return lambda g: ~read(g)
        return lambda g: np.negative(read(g))

    def integer64(self, name: str) -> Read:
        """A 64-bit integer operand (uint64) from a pair; a minus is two's complement, a tilde the complement."""
        read = joined(self.word(name), self.word(name, high=True))
        slot = self.slot(name)
        if not self._flag(slot, "negate"):
            return read
        if isinstance(slot, Modified) and slot.sign == "~":
            return lambda g: ~read(g)
        return lambda g: np.negative(read(g))

    def halves(self, name: str) -> Callable[[Group], tuple[Array, Array]]:
        """A packed pair of 16-bit floats (low, high), `uint16` each: half select, then sign and magnitude.

        The select `.F32` reads an f32 register; that form is left to `float32`.
        """
        slot = self.slot(name)
        read, select = self.word(name), self.selected(name)
        negate, absolute = self._flag(slot, "negate"), self._flag(slot, "absolute")
        negate_high = select == "H0_NH1"

        def sign(half: Array, also: bool) -> Array:
            if absolute:
                half = half & np.uint16(0x7FFF)
            return half ^ _HALF_SIGN if negate != also else half

        def pair(g: Group) -> tuple[Array, Array]:
            word = read(g)
            low, high = word.astype(np.uint16), (word >> np.uint32(16)).astype(np.uint16)
            if select == "H0_H0":
                high = low
            elif select in ("H1_H1", "H1"):
                low = high
            return sign(low, False), sign(high, negate_high)

        return pair

    def packed_halves(self, name: str) -> Read:
        """The same pair in its word, `uint32[warps or 1, 32]`, so that both halves are computed at once."""
        slot = self.slot(name)
        read, select = self.word(name), self.selected(name)
        negate, absolute = self._flag(slot, "negate"), self._flag(slot, "absolute")
        flip = np.uint32((0x80008000 if negate else 0) ^ (0x80000000 if select == "H0_NH1" else 0))
        shift, low = np.uint32(16), np.uint32(0xFFFF)

        def packed(g: Group) -> Array:
            word = read(g)
            if select == "H0_H0":
                word = word & low | word << shift
            elif select in ("H1_H1", "H1"):
                word = word & ~low | word >> shift
            if absolute:
                word = word & np.uint32(0x7FFF7FFF)
            if flip:
                word = word ^ flip
            return word if word.shape[1] == LANES else np.broadcast_to(word, (len(word), LANES))

        return packed

    def predicate(self, name: str) -> Read:
        """A predicate operand, inversion applied, `bool`; an absent operand reads true."""
        if not self.has(name):
            return lambda _: TRUE
        slot = self.slot(name)
        assert isinstance(slot, Predicate)
        return self.predicate_by_number(slot.space, self.field(name), bool(self.field(f"{name}.not", 0)))

    def predicate_by_number(self, space: str, index: int, inverted: bool) -> Read:
        """P or UP by number, inverted or not; 7 reads true."""
        if index == PT_INDEX:
            value = np.full((1, 1), not inverted)
            return lambda _: value
        row = (self.machine.predicates if space == "P" else self.machine.uniform_predicates)[index]
        if inverted:
            return lambda g: ~row[g.select]
        return lambda g: row[g.select]

    def guard(self) -> Read | None:
        """The guard, or None where every lane executes."""
        slot = self.encoding.guard
        index, inverted = self.instruction["guard"], bool(self.instruction["guard.not"])
        if index == PT_INDEX and not inverted:
            return None
        return self.predicate_by_number(slot.space, index, inverted)

    # destinations

    def destination(self, name: str = "D", part: int = 0) -> Write:
        """Writes 32 bits to a general or uniform register of the operand; `part`: which of a pair or quad."""
        slot = self.slot(name)
        index = self.field(slot.fields[0].name)
        if isinstance(slot, UniformRegister):
            return self.write_uniform(index + part if index != slot.zero else RZ_INDEX)
        return self.write_register(index + part if index != RZ_INDEX else RZ_INDEX)

    def destination64(self, name: str = "D") -> Write:
        """Writes 64 bits to a pair."""
        low, high = self.destination(name), self.destination(name, 1)

        def write(g: Group, value: Array) -> None:
            low(g, (value & _LOW).astype(np.uint32))
            high(g, (value >> _32).astype(np.uint32))

        return write

    def write_register(self, index: int) -> Write:
        """Writes a general register by number."""
        if index == RZ_INDEX:
            return nowhere
        if self.machine.sink is not None:
            return self.machine.sink("R", index)
        return row_writer(self.machine.registers[index])

    def write_uniform(self, index: int) -> Write:
        """Writes a uniform register by number; per-lane values must be alike, lane 0 of the mask decides."""
        if index >= len(self.machine.uniform):
            return nowhere
        if self.machine.sink is not None:
            return self.machine.sink("UR", index)
        return uniform_writer(self.machine.uniform[index])

    def destination_predicate(self, name: str = "Pd") -> Write:
        """Writes a predicate; PT and an absent operand swallow it."""
        if not self.has(name) or self.field(name) == PT_INDEX:
            return nowhere
        slot = self.slot(name)
        assert isinstance(slot, Predicate)
        return self.predicate_writer(slot.space, self.field(name))

    def predicate_writer(self, space: str, index: int) -> Write:
        """Writes P or UP by number."""
        if self.machine.sink is not None:
            return self.machine.sink(space, index)
        if space == "UP":
            return uniform_writer(self.machine.uniform_predicates[index])
        return row_writer(self.machine.predicates[index])

    def address(self, name: str = "address") -> AddressOperand:
        """The address operand."""
        slot = next((s for s in self.encoding.operands if isinstance(s, AddressOperand) and s.name == name), None)
        if slot is None:
            slot = next((s for s in self.encoding.operands if isinstance(s, AddressOperand)), None)
        if slot is None:
            raise Refusal(f"{self.encoding.name}: the emulator looks for an address operand")
        return slot


def _signed_offset(packed: int) -> int:
    words = packed & 0x3FFF
    return (words - (words >> 13 << 14)) * 4
