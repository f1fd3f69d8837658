"""Constants as the uniform datapath loads them: by byte, since it loads bytes and halves too.

`c[bank][offset]` has a signed offset, bits [53:38]; `c[bank][UR+offset]` adds a uniform register;
`cx[UR][offset]` takes the bank from a uniform register pair, its offset unsigned.
"""

from __future__ import annotations

import re

from coppelius.isa.bits import Bits, Field, bits
from coppelius.isa.operands import URZ_INDEX, Constant
from coppelius.isa.slots import READ, Access, Columns, Slot, Values

_BANK = bits[58:54]
_OFFSET = bits[53:38]
_TEXT = re.compile(
    r"^c(?:\[(?P<bank>0x[0-9a-f]+)\]|x\[UR(?P<pair>Z|\d+)\])\[(?:UR(?P<index>Z|\d+)\+?)?(?P<offset>-?0x[0-9a-f]+)?\]$"
)


class UniformConstant(Slot):
    """One of the three shapes: neither, `index` or `pair` is where a uniform register lies."""

    def __init__(
        self,
        name: str,
        *,
        index: Bits | None = None,
        pair: Bits | None = None,
        place: Bits = _OFFSET,
        always: bool = False,
    ) -> None:
        """place: of the offset.  always: the index is never URZ."""
        self.name = name
        self.offset = Field(f"{name}.offset", place, signed=pair is None)
        self.bank = None if pair is not None else Field(f"{name}.bank", _BANK)
        self.index = (
            None
            if index is None
            else Field(
                f"{name}.index",
                index,
                frozenset(range(URZ_INDEX)) if always else None,
                default=0 if always else URZ_INDEX,
            )
        )
        self.pair = None if pair is None else Field(f"{name}.pair", pair, default=URZ_INDEX)
        self.fields = tuple(f for f in (self.offset, self.bank, self.index, self.pair) if f is not None)
        self.accesses = tuple(
            Access(name, "UR", f.name, READ, width) for f, width in ((self.index, 1), (self.pair, 2)) if f is not None
        )

    def render(self, columns: Columns) -> list[str]:
        return [self._compose(*key) for key in zip(*(columns[f.name] for f in self.fields), strict=True)]

    @property
    def _zero(self) -> int:
        place = self.index or self.pair
        return URZ_INDEX if place is None else place.high

    def _name(self, index: int) -> str:
        return "URZ" if index == self._zero else f"UR{index}"

    def _compose(self, offset: int, place: int, index: int | None = None) -> str:
        text = f"-{-offset:#x}" if offset < 0 else f"{offset:#x}"
        if self.pair is not None:
            return f"cx[{self._name(place)}][{text}]"
        if index is not None:
            text = f"{self._name(index)}+{text}" if offset else self._name(index)
        return f"c[{place:#x}][{text}]"

    def parse(self, text: str) -> Values | None:
        match = _TEXT.match(text.strip())
        if not match or bool(match["pair"]) != bool(self.pair) or bool(match["index"]) != bool(self.index):
            return None
        values = {self.offset.name: int(match["offset"] or "0", 16)}
        if self.bank is not None:
            values[self.bank.name] = int(match["bank"], 16)
        if self.index is not None:
            values[self.index.name] = self._zero if match["index"] == "Z" else int(match["index"])
        if self.pair is not None:
            values[self.pair.name] = self._zero if match["pair"] == "Z" else int(match["pair"])
        return values if all(f.admits(values[f.name]) for f in self.fields) else None

    def accept(self, value: object) -> Values | None:
        if not isinstance(value, Constant) or self.bank is None or self.index is not None:
            return None
        if value.negate or value.absolute or value.half:
            return None
        values = {self.offset.name: value.offset, self.bank.name: value.bank}
        return values if all(f.admits(values[f.name]) for f in self.fields) else None
