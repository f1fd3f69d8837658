"""Operands that are places: addresses of memory, and targets of jumps through a register.

Global and generic addresses come in three ways.  Plain: `[R2+0x10]`, a register or an aligned pair.
Described: `[R2.64]`, where a uniform register holds a memory descriptor that adds nothing and that the
text hides, or shows as `desc[UR4][R2.64]`.  Added: `[R2.64+UR4+0x10]`, where a uniform register is a second
base and the first one is a pair (`.64`) or one register (`.U32`).  Shared and local addresses are a
register, sometimes scaled, sometimes plus a uniform register.  A base of RZ is not printed, and takes its
scale and width out of the text with it; braces then say them.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping
from functools import cached_property

from coppelius.isa import literals
from coppelius.isa.bits import Bits, Field
from coppelius.isa.operands import RZ_INDEX, URZ_INDEX, Address, R
from coppelius.isa.slots import READ, Access, Columns, Slot, Values, Width
from coppelius.isa.values import Hidden, Label_, hexadecimal, lru_text

_ADDRESS = re.compile(
    r"^(?:desc\[(?P<descriptor>UR(?:Z|\d+))\])?"
    r"\[(?:(?P<base>R(?:Z|\d+))(?P<scale>\.X4|\.X8|\.X16)?(?P<wide>\.64|\.U32)?)?"
    r"(?:\+?(?P<uniform>UR(?:Z|\d+)))?(?:\+?(?P<offset>-?0x[0-9a-f]+))?\]$"
)
_SCALES = {0: "", 1: ".X4", 2: ".X8", 3: ".X16"}
_SCALE_OF = {text: code for code, text in _SCALES.items()}
SCALE_CODES = {1: 0, 4: 1, 8: 2, 16: 3}

# the usual descriptor register of compiled code; another one shows in braces  # mined from the development corpus
USUAL_DESCRIPTOR = 4


class AddressOperand(Slot):
    """`[R4.X8+UR5+0x10]`; see the module's docstring for the ways.

    `descriptor` is the bit that says that the uniform register only describes, and makes the address a
    described one; `shown` the bit that prints it.  `extends` = (field, {code: ".64" or ".U32"}) is what makes
    the base of an added address a pair.  `wide` is the field whose code 1 makes the base of a plain one a
    pair.  `signed_alone`: an offset without a base prints signed.  `no_offset`: its bits are there and must
    be zero.  `needs_base`: RZ is refused.
    """

    def __init__(
        self,
        name: str,
        base: Bits,
        offset: Bits,
        *,
        uniform: Bits | None = None,
        scale: Bits | None = None,
        descriptor: Bits | None = None,
        shown: Bits | None = None,
        extends: tuple[str, Mapping[int, str]] | None = None,
        wide: str | None = None,
        local_descriptor: bool = False,
        signed_alone: bool = False,
        uniform_span: int = 1,
        no_offset: bool = False,
        needs_base: bool = False,
    ) -> None:
        self.name = name
        self.signed_alone = signed_alone
        self.spelled = False
        self.extends = extends
        self.suffix = ".64" if descriptor is not None and not local_descriptor else ""
        codes = frozenset(range(RZ_INDEX)) if needs_base else None
        self.base = Field(f"{name}.base", base, codes, default=0 if needs_base else RZ_INDEX)
        self.offset = Field(f"{name}.offset", offset, frozenset({0}) if no_offset else None, signed=True)
        usual = URZ_INDEX if descriptor is None else USUAL_DESCRIPTOR
        self._uniform: tuple[Field, ...] = (
            () if uniform is None else (Field(f"{name}.uniform", uniform, default=usual),)
        )
        self._scale: tuple[Field, ...] = () if scale is None else (Field(f"{name}.scale", scale),)
        self._descriptor: tuple[Field, ...] = (
            () if descriptor is None else (Field(f"{name}.descriptor", descriptor, frozenset({1}), default=1),)
        )
        self._shown: tuple[Field, ...] = () if shown is None else (Field(f"{name}.shown", shown),)
        self.fields = (self.base, self.offset, *self._uniform, *self._scale, *self._descriptor, *self._shown)
        width: Width = 2 if self.suffix else 1 if wide is None else (wide, {0: 1, 1: 2})
        if extends is not None:
            width = (extends[0], {code: 2 if text == ".64" else 1 for code, text in extends[1].items()})
        self.accesses: tuple[Access, ...] = (Access(name, "R", self.base.name, READ, width),)
        if self._uniform:
            span = 2 if descriptor is not None else uniform_span
            self.accesses += (Access(name, "UR", self._uniform[0].name, READ, span),)
        self.hidden = self._braces()

    @cached_property
    def _text(self) -> Callable[..., str]:
        return lru_text(self._compose)

    @property
    def _zero(self) -> int:
        """The index of URZ."""
        return self._uniform[0].high if self._uniform else URZ_INDEX

    @property
    def is_described(self) -> bool:
        """Whether its uniform register only describes."""
        return bool(self._descriptor and self._uniform)

    def spelled_out(self) -> AddressOperand:
        """The same where the text always says the descriptor, as it does from SM90 on: no bit decides it."""
        twin = copy.copy(self)
        twin.__dict__.pop("_text", None)
        twin.spelled = True
        twin._shown, twin.hidden = (), ()
        twin.fields = tuple(f for f in self.fields if f not in self._shown)
        return twin

    def _braces(self) -> tuple[Hidden, ...]:
        """What the text of this operand leaves out, for the row to list."""
        if self._descriptor and self._uniform:
            when = {self._shown[0].name: 0} if self._shown else None
            return (Hidden(self._uniform[0].name, "ur", usual=USUAL_DESCRIPTOR, when=when),)
        if self.extends is not None:
            return (Hidden(self.extends[0], "extend", usual=max(self.extends[1]), when={self.base.name: RZ_INDEX}),)
        if self._scale and not self._uniform:
            return (Hidden(self._scale[0].name, "scale", usual=0, when={self.base.name: RZ_INDEX}),)
        return ()

    def _compose(self, base: int, offset: int, uniform: int, scale: int, shown: int, extend: int) -> str:
        name = "RZ" if base == RZ_INDEX else f"R{base}"
        if self._descriptor:
            head = f"desc[{_uniform_name(uniform, self._zero)}]" if shown or self.spelled else ""
            return f"{head}[{name}{self.suffix}{'+' + hexadecimal(offset) if offset else ''}]"
        if base == RZ_INDEX and not self._uniform:
            if not self.signed_alone:
                offset &= (1 << self.offset.width) - 1
            return f"[{hexadecimal(offset)}]" if offset else "[RZ]"
        suffix = self.extends[1][extend] if self.extends else _SCALES[scale]
        parts = [name + suffix] if base != RZ_INDEX or (scale and not self.extends) else []
        if self._uniform:
            parts.append(_uniform_name(uniform, self._zero))
        if offset:
            parts.append(hexadecimal(offset))
        return f"[{'+'.join(parts)}]"

    def render(self, columns: Columns) -> list[str]:
        zeros = [0] * len(columns[self.base.name])
        more = [columns[f[0].name] if f else zeros for f in (self._uniform, self._scale, self._shown)]
        extend = columns[self.extends[0]] if self.extends else zeros
        text = self._text
        rows = zip(columns[self.base.name], columns[self.offset.name], *more, extend, strict=True)
        return [text(*key) for key in rows]

    def parse(self, text: str) -> Values | None:
        match = _ADDRESS.match(text.strip())
        if not match:
            return None
        described = bool(self._descriptor)
        if bool(match["uniform"]) != (bool(self._uniform) and not described):
            return None
        if (match["scale"] and not self._scale) or (match["descriptor"] and not (self._shown or self.spelled)):
            return None
        if self.spelled and not match["descriptor"]:
            return None
        if bool(match["wide"]) != bool(self.suffix or (self.extends and match["base"])):
            return None
        offset = int(match["offset"] or "0", 16)
        if offset > self.offset.high and not match["base"]:
            offset -= 1 << self.offset.width
        values = {self.base.name: RZ_INDEX, self.offset.name: offset}
        if match["base"] and match["base"] != "RZ":
            values[self.base.name] = int(match["base"][1:])
        if self._scale:
            values[self._scale[0].name] = _SCALE_OF[match["scale"] or ""]
        if self._shown:
            values[self._shown[0].name] = int(bool(match["descriptor"]))
        register = match["uniform"] or match["descriptor"]
        if register and self._uniform:
            values[self._uniform[0].name] = self._zero if register == "URZ" else int(register[2:])
        return values if all(f.admits(values[f.name]) for f in self.fields if f.name in values) else None

    def accept(self, value: object) -> Values | None:
        if isinstance(value, R):
            value = Address(value)
        if not isinstance(value, Address) or value.base.negate or value.base.absolute:
            return None
        values = {self.base.name: value.base.index, self.offset.name: value.offset}
        if not self.offset.admits(value.offset) or value.scale not in SCALE_CODES:
            return None
        if self._scale:
            values[self._scale[0].name] = SCALE_CODES[value.scale]
        elif value.scale != 1:
            return None
        if (value.uniform is not None) != bool(self._uniform) or value.descriptor != bool(self._descriptor):
            return None
        if value.uniform is not None:
            values[self._uniform[0].name] = value.uniform.index
        return values


def _uniform_name(index: int, zero: int) -> str:
    return "URZ" if index == zero else f"UR{index}"


class ConstantAddress(Slot):
    """`c[0x0][R4+0x10]`, `cx[UR4][R4]`: a constant bank at a register's index; the offset in bytes, 16 bits.

    The offset is signed, but for a bank named by a uniform register and no index.
    """

    def __init__(
        self, name: str, base: Bits, offset: Bits, *, bank: Bits | None = None, uniform: Bits | None = None
    ) -> None:
        self.name = name
        self.base = Field(f"{name}.base", base, default=RZ_INDEX)
        self.offset = Field(f"{name}.offset", offset, signed=True)
        self.bank = Field(f"{name}.bank", bank) if bank is not None else None
        self.uniform = Field(f"{name}.uniform", uniform, default=URZ_INDEX) if uniform is not None else None
        self.fields = tuple(f for f in (self.base, self.offset, self.bank, self.uniform) if f is not None)
        self.accesses: tuple[Access, ...] = (Access(name, "R", self.base.name, READ),)
        if self.uniform is not None:
            self.accesses += (Access(name, "UR", self.uniform.name, READ, 2),)

    @cached_property
    def _text(self) -> Callable[..., str]:
        return lru_text(self._compose)

    @property
    def _zero(self) -> int:
        return URZ_INDEX if self.uniform is None else self.uniform.high

    def _compose(self, base: int, offset: int, place: int) -> str:
        head = f"c[{place:#x}]" if self.bank is not None else f"cx[{_uniform_name(place, self._zero)}]"
        if base == RZ_INDEX and self.bank is None:
            return f"{head}[{offset & 0xFFFF:#x}]"
        if base == RZ_INDEX:
            return f"{head}[{hexadecimal(offset) if offset else 'RZ'}]"
        return f"{head}[R{base}{'+' + hexadecimal(offset) if offset else ''}]"

    def render(self, columns: Columns) -> list[str]:
        place = self.bank or self.uniform
        assert place is not None
        text = self._text
        rows = zip(columns[self.base.name], columns[self.offset.name], columns[place.name], strict=True)
        return [text(*key) for key in rows]

    def parse(self, text: str) -> Values | None:
        match = re.match(r"^c(?:\[(0x[0-9a-f]+)\]|x\[UR(Z|\d+)\])\[(?:R(Z|\d+))?\+?(-?0x[0-9a-f]+)?\]$", text.strip())
        if not match or bool(match[1]) != (self.bank is not None):
            return None
        offset = int(match[4] or "0", 16)
        if offset > self.offset.high and not match[3]:
            offset -= 1 << self.offset.width
        values = {
            self.base.name: RZ_INDEX if match[3] in (None, "Z") else int(match[3]),
            self.offset.name: offset,
        }
        if self.bank is not None:
            values[self.bank.name] = int(match[1], 16)
        if self.uniform is not None:
            values[self.uniform.name] = self._zero if match[2] == "Z" else int(match[2])
        return values if all(f.admits(values[f.name]) for f in self.fields) else None

    def accept(self, value: object) -> Values | None:
        from coppelius.isa.operands import Constant

        if not isinstance(value, Constant) or self.bank is None or value.negate or value.absolute:
            return None
        values = {self.base.name: RZ_INDEX, self.offset.name: value.offset, self.bank.name: value.bank}
        return values if all(f.admits(values[f.name]) for f in self.fields) else None


class LabelVia(Label_):
    """`R6 0x600`: a register, then the address that is added to it; one operand."""

    def __init__(self, name: str, place: Bits, via: Slot, scale: int = 4) -> None:
        super().__init__(name, place, scale)
        self.via = via
        self.fields = (*via.fields, *self.fields)
        self.accesses = via.accesses

    def render(self, columns: Columns) -> list[str]:
        return [f"{r} {t}" for r, t in zip(self.via.render(columns), super().render(columns), strict=True)]

    def parse(self, text: str) -> Values | None:
        head, _, tail = text.strip().partition(" ")
        register, target = self.via.parse(head), super().parse(tail)
        return None if register is None or target is None else register | target


class OffsetVia(Slot):
    """`R88 -0xc80`: a register, then a distance in bytes added to it; one operand, no label.

    `always`: a distance of zero prints too.
    """

    def __init__(self, name: str, place: Bits, via: Slot, *, scale: int = 4, always: bool = False) -> None:
        self.name = name
        self.scale = scale
        self.via = via
        self.always = always
        self.field = Field(name, place, signed=True)
        self.fields = (*via.fields, self.field)
        self.accesses = via.accesses

    def render(self, columns: Columns) -> list[str]:
        pairs = zip(self.via.render(columns), columns[self.name], strict=True)
        return [f"{r} {hexadecimal(v * self.scale)}" if v or self.always else r for r, v in pairs]

    def parse(self, text: str) -> Values | None:
        head, _, tail = text.strip().partition(" ")
        register, distance = self.via.parse(head), literals.parse_integer(tail or "0")
        if register is None or distance is None or distance % self.scale:
            return None
        value = distance // self.scale
        return register | {self.name: value} if self.field.admits(value) else None

    def accept(self, value: object) -> Values | None:
        """A pair (register, bytes), or the register alone."""
        register, distance = value if isinstance(value, tuple) and len(value) == 2 else (value, 0)
        found = self.via.accept(register)
        if found is None or not isinstance(distance, int) or distance % self.scale:
            return None
        return found | {self.name: distance // self.scale}


class AbsoluteTarget(Slot):
    """`0x1230`: a code address that is no distance; the field counts words of four bytes."""

    def __init__(self, name: str, place: Bits) -> None:
        self.name = name
        self.field = Field(name, place)
        self.fields = (self.field,)

    def render(self, columns: Columns) -> list[str]:
        return [f"{4 * v:#x}" for v in columns[self.name]]

    def parse(self, text: str) -> Values | None:
        value = literals.parse_integer(text)
        return self.accept(value) if value is not None else None

    def accept(self, value: object) -> Values | None:
        if not isinstance(value, int) or value % 4 or not self.field.admits(value // 4):
            return None
        return {self.name: value // 4}
