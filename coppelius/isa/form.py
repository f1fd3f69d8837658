"""One row of the opcode table, and the encodings it expands to.

Bits [11:0] name the operation and where its operands come from.  An ALU row is written once with
`Flexible` operands and the list of its operand forms:

    form      1         2       3       4       5       6      7
    [63:32]   reg B     imm C   const C imm B   const B UR B   UR C
    [71:64]   reg C     reg B   reg B   reg C   reg C   reg C  reg B

Sign and magnitude follow the physical place ([63], [62] for 63..32; [75], [74] for 71..64), the reuse
flag follows the operand's role (122 A, 123 B, 124 C).  A row with a single flexible operand keeps it
in [63:32] in every form.

An encoding claims every bit: opcode, guard, control, fields, fixed values; what is left is reserved
and must be zero, so decoding refuses a word that sets it.  Overlaps cannot be constructed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from coppelius.isa.bits import Bits, Field, bits
from coppelius.isa.control import CONTROL_FIELDS
from coppelius.isa.slots import READ, Access, Predicate, Register, Slot, UniformRegister, Width, guard
from coppelius.isa.values import (
    BF16,
    F16,
    BindlessConstant,
    ConstantOperand,
    Hidden,
    Immediate,
    Modifier,
    PackedHalves,
    Style,
)

# pipes: where an operation executes, hence its latency class
ALU, FMA, WIDE, HALF, FP64 = "alu", "fma", "wide", "half", "fp64"
XU, MEMORY, SHARED, TENSOR, UNIFORM, CONTROL, SYSTEM = (
    "xu",
    "memory",
    "shared",
    "tensor",
    "uniform",
    "control",
    "system",
)
PIPES = frozenset((ALU, FMA, WIDE, HALF, FP64, XU, MEMORY, SHARED, TENSOR, UNIFORM, CONTROL, SYSTEM))

FIXED = "fixed"  # the result is ready a known number of cycles after issue
VARIABLE = "variable"  # completion is signalled by a scoreboard
NO_RESULT = "none"  # writes no register

OPCODE = bits[11:0]
_UPPER = (bits[63], bits[62])


@dataclass(frozen=True)
class Flexible:
    """An ALU operand whose place depends on the operand form.

    role: "B", "C", or "X" for the only flexible operand.  style: how an immediate prints (None: no
    immediate form).  halves: bits of the 16-bit half select in [63:32] and in [71:64].
    """

    role: str
    style: Style | None = None
    negate: bool = False
    absolute: bool = False
    invert: bool = False
    signed: bool = False
    halves: tuple[Bits, Bits] | None = None
    width: Width = 1
    # where the reuse flag lies: by role, elsewhere, or nowhere
    reuse: Bits | str | None = "role"
    spaced: bool = False
    # signs of [71:64] at [84] and [83], as all 16-bit operations have them
    upper_signs: bool = False
    select: Mapping[int, str] | None = None
    suffix: str = ""

    def special_in(self, form: int) -> bool:
        """Whether this operand takes [63:32] in that form."""
        return self.role == "X" or form in ((1, 4, 5, 6) if self.role == "B" else (2, 3, 7))

    @property
    def name(self) -> str:
        return "B" if self.role == "X" else self.role

    def _marks(self, upper: bool) -> dict[str, Any]:
        """Where sign, magnitude and half select lie in [63:32] or in [71:64], and how they print."""
        negate, absolute = _UPPER if upper else (bits[75], bits[74])
        if (self.upper_signs or self.halves is not None) and not upper:
            negate, absolute = bits[84], bits[83]
        return {
            "negate": negate if self.negate or self.invert else None,
            "absolute": absolute if self.absolute else None,
            "half": None if self.halves is None else self.halves[0 if upper else 1],
            "invert": self.invert,
            "select": self.select,
            "suffix": self.suffix,
        }

    def place(self, form: int, *, uniform: bool = False) -> Slot:
        """The concrete slot in that operand form; `uniform`: of the uniform datapath, all registers uniform."""
        upper = self.special_in(form)
        marks = self._marks(upper)
        if form in (2, 4) and upper:
            if self.style is None:
                raise ValueError(f"operand {self.name} has no immediate form")
            if self.style in (F16, BF16):
                return PackedHalves(self.name, bits[63:32], self.style)
            return Immediate(self.name, bits[63:32], self.style, signed=self.signed)
        if form in (3, 5) and upper:
            return ConstantOperand(self.name, spaced=self.spaced, **marks)
        if uniform or (form in (6, 7) and upper):
            place = bits[37:32] if upper else bits[69:64]
            return UniformRegister(self.name, place, READ, width=self.width, **marks)
        reuse = self.reuse
        if isinstance(reuse, str):
            reuse = bits[123] if self.name == "B" else bits[124]
        place = bits[39:32] if upper else bits[71:64]
        return Register(self.name, place, READ, width=self.width, reuse=reuse, **marks)

    def bindless(self) -> Slot:
        """The slot of `cx[UR][offset]` in forms 3 and 5."""
        return BindlessConstant(self.name, spaced=self.spaced, **self._marks(True))


Operand = Slot | Flexible


@dataclass(frozen=True)
class Form:
    """A row: what is printed, where each field lies, what it reads and writes, how it is timed.

    opcode: bits [8:0] where `forms` lists operand forms, else all of [11:0].  fixed: values of bits that
    never vary.  hidden: fields the text does not show.  extra: fields beyond operands and modifiers.
    implicit: accesses that no operand shows.  bindless: whether constants of forms 3 and 5 may be bindless
    "too", "never" or "only".  adapt: what another target makes of each operand.
    """

    mnemonic: str
    opcode: int
    pipe: str
    latency: str
    operands: tuple[Operand, ...] = ()
    modifiers: tuple[Modifier, ...] = ()
    forms: str = ""
    fixed: Mapping[Bits, int] = field(default_factory=dict)
    hidden: tuple[Hidden, ...] = ()
    extra: tuple[Field, ...] = ()
    implicit: tuple[Access, ...] = ()
    uniform: bool = False
    variant: str = ""
    bindless: str = "too"
    adapt: Callable[[Slot], Slot] = lambda slot: slot

    def __post_init__(self) -> None:
        if self.pipe not in PIPES:
            raise ValueError(f"{self.mnemonic}: no pipe {self.pipe!r}")
        if self.bindless not in ("too", "never", "only"):
            raise ValueError(f"{self.mnemonic}: bindless {self.bindless!r} is not too, never or only")
        if self.latency not in (FIXED, VARIABLE, NO_RESULT):
            raise ValueError(f"{self.mnemonic}: no latency class {self.latency!r}")

    def expand(self) -> list[Encoding]:
        """Every encoding of this row."""
        if not self.forms:
            slots = tuple(self.adapt(o) for o in self.operands if isinstance(o, Slot))
            return [Encoding(self, self.opcode, slots, {}, self.variant)]
        out = []
        for digit in self.forms:
            form = int(digit)
            placed = (o.place(form, uniform=self.uniform) if isinstance(o, Flexible) else o for o in self.operands)
            slots = tuple(self.adapt(slot) for slot in placed)
            opcode = self.opcode | form << 9
            special = {bits[91]: int(self.uniform or form in (6, 7))}
            if self.bindless != "only":
                out.append(Encoding(self, opcode, slots, special, f"{self.variant}{form}"))
            if form in (3, 5) and not self.uniform and self.bindless != "never":
                bindless = tuple(
                    self.adapt(o.bindless()) if isinstance(o, Flexible) and o.special_in(form) else s
                    for o, s in zip(self.operands, slots, strict=True)
                )
                out.append(Encoding(self, opcode, bindless, {bits[91]: 1}, f"{self.variant}{form}x"))
        return out


class Encoding:
    """One concrete instruction word layout; `uid` is its ordinal in its table, `target` whose table that is.

    fields: in column order, the guard and control fields first.  mask, value: the bits that never vary;
    match_mask, match_value: those and the bits that all legal codes of a field agree on.
    """

    uid: int = -1
    target: str = ""

    def __init__(
        self, form: Form, opcode: int, operands: tuple[Slot, ...], fixed: Mapping[Bits, int], variant: str
    ) -> None:
        self.form = form
        self.mnemonic = form.mnemonic
        self.stem = form.mnemonic.split(".")[0]
        self.opcode = opcode
        self.name = f"{form.mnemonic}:{variant}" if variant else form.mnemonic
        self.pipe = form.pipe
        self.latency = form.latency
        self.operands = operands
        self.modifiers = form.modifiers
        self.hidden = form.hidden
        self.guard: Predicate = guard(uniform=form.uniform)
        parts: tuple[Slot | Modifier, ...] = (*operands, *form.modifiers)
        own = [f for part in parts for f in part.fields] + list(form.extra)
        self.fields: tuple[Field, ...] = (*self.guard.fields, *CONTROL_FIELDS, *own)
        self.column = {f.name: i for i, f in enumerate(self.fields)}
        self.accesses: tuple[Access, ...] = (
            *self.guard.accesses,
            *(a for slot in operands for a in slot.accesses),
            *form.implicit,
        )
        self.defaults = tuple(f.default for f in self.fields)
        self._claim(dict(form.fixed) | dict(fixed))

    def _claim(self, fixed: dict[Bits, int]) -> None:
        value = OPCODE.place(self.opcode)
        mask = OPCODE.mask
        for place, number in fixed.items():
            self._take(place.mask & mask, f"fixed bits {place.parts}")
            mask |= place.mask
            value |= place.place(number)
        for f in self.fields:
            self._take(f.bits.mask & mask, f.name)
            mask |= f.bits.mask
        if len(self.column) != len(self.fields):
            names = [f.name for f in self.fields]
            raise ValueError(f"{self.name}: field named twice: {sorted({n for n in names if names.count(n) > 1})}")
        for a in self.accesses:
            for name in (
                a.field,
                *([a.width[0]] if isinstance(a.width, tuple) else []),
                *([a.when[0]] if a.when else []),
            ):
                if name not in self.column:
                    raise ValueError(f"{self.name}: access to {name}, which is no field of it")
        claimed = sum(f.bits.mask for f in self.fields)
        self.mask = ((1 << 128) - 1) & ~claimed
        self.value = value
        self.match_mask, self.match_value = self.mask, self.value
        for f in self.fields:
            same, code = f.constant_bits()
            self.match_mask |= f.bits.place(same)
            self.match_value |= f.bits.place(code)

    def _take(self, overlap: int, what: str) -> None:
        if overlap:
            places = [n for n in range(128) if overlap >> n & 1]
            raise ValueError(f"{self.name}: {what} claims bits {places} twice")

    def __repr__(self) -> str:
        return f"<{self.name} {self.opcode:#05x}>"
