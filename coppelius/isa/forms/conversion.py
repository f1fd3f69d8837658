"""Conversions between number formats.  A row a source type, since that decides how an operand prints."""

from __future__ import annotations

from collections.abc import Mapping

from coppelius.isa.bits import Bits, Field, bits
from coppelius.isa.form import ALU, FIXED, VARIABLE, XU, Flexible, Form
from coppelius.isa.forms.shared import FLUSH, ROUNDING, Ra, Rd, RdPair
from coppelius.isa.operands import RZ_INDEX
from coppelius.isa.slots import BYTE_SELECT, HALF_SELECT, READ, WRITE, Register
from coppelius.isa.values import F16_LOW, F32, F64_HIGH, HEX, Modifier, Style, Suffix

_SELECT = (bits[61:60], bits[61:60])
_DST, _SRC = bits[76:75], bits[85:84]
_NEAREST_ZERO = Modifier("NTZ", bits[77], {0: "", 1: ".NTZ"})
_TO_INTEGER = Modifier("RND", bits[79:78], {0: "", 1: ".FLOOR", 2: ".CEIL", 3: ".TRUNC"})


def _float(style: Style, *, half: bool = False, width: int = 1) -> Flexible:
    """A signed float source of the slow unit, a half of it selectable where it is 16 bits wide."""
    halves, select = (_SELECT, HALF_SELECT) if half else (None, None)
    return Flexible(
        "X", style, negate=True, absolute=True, halves=halves, select=select, spaced=half, width=width, reuse=None
    )


_F16, _F32, _F64 = _float(F16_LOW, half=True), _float(F32), _float(F64_HIGH, width=2)
_BYTE = Flexible("X", halves=_SELECT, select=BYTE_SELECT, spaced=True, reuse=None)
_SHORT = Flexible("X", halves=_SELECT, select=HALF_SELECT, spaced=True, reuse=None)
_WORD = Flexible("X", HEX, signed=True, reuse=None)
_LONG = Flexible("X", HEX, signed=True, reuse=None, width=2)


def _types(dst: int, src: int) -> Mapping[Bits, int]:
    return {_DST: dst, _SRC: src}


_INTEGERS = {0: ".U8", 1: ".S8", 2: ".U16", 3: ".S16", 4: ".U32", 5: "", 6: ".U64", 7: ".S64"}


def _integer(codes: range) -> Modifier:
    """The integer type written, bits [76:75] its size and 72 its sign."""
    return Modifier("DST", _DST + bits[72], {n: _INTEGERS[n] for n in codes}, default=5 if 5 in codes else codes[-1])


def _signed(unsigned: str, signed: str) -> Modifier:
    return Modifier("SRC", bits[74], {0: unsigned, 1: signed}, default=1)


_D_LONG = Register("D", bits[23:16], WRITE, width=("DST", {6: 2, 7: 2}))
_D_FLOAT = Register("D", bits[23:16], WRITE, width=("DST", {3: 2}))
_FLOATS = Modifier("DST", _DST, {1: ".F16", 2: "", 3: ".F64"}, default=2)
_SHORT_FLOATS = Modifier("DST", _DST, {1: ".F16", 2: ""}, default=2)
_PACK = (
    Modifier("SATFINITE", bits[77], {0: "", 1: ".SATFINITE"}),
    Modifier("RELU", bits[75], {0: "", 1: ".RELU"}),
    Modifier("BF16", bits[76], {0: "", 1: ".BF16"}),
)
_PACK_ROUNDING = Modifier("RND", bits[80:79], {0: "", 3: ".RZ"})
_MERGED = Flexible("C", F32, halves=(bits[72], bits[72]), select=HALF_SELECT, spaced=True)
_PACKED_INTEGER = Modifier("DST", bits[77:76], {0: ".U8", 1: ".S8", 2: ".U16", 3: ".S16"})

# fmt: off
FORMS = [
    *(Form("F2F", opcode, XU, VARIABLE, (RdPair if dst == 3 else Rd, source), (FLUSH, Suffix(name), ROUNDING), "1456",
           fixed={bits[77:75]: dst, _SRC: src}, variant=name[1:].lower() + ".")
      for opcode, dst, src, source, name in (
          (0x104, 4, 2, _F32, ".BF16.F32"), (0x104, 1, 2, _F32, ".F16.F32"), (0x104, 2, 1, _F16, ".F32.F16"), (0x110, 1, 3, _F64, ".F16.F64"),
          (0x110, 2, 3, _F64, ".F32.F64"), (0x110, 3, 1, _F16, ".F64.F16"), (0x110, 3, 2, _F32, ".F64.F32"))),
    *(Form("FRND", opcode, XU, VARIABLE, (RdPair if kind == 3 else Rd, source), (FLUSH, Suffix(name), _TO_INTEGER), "1456",
           fixed=_types(kind, kind), variant=name[1:].lower())
      for opcode, kind, source, name in ((0x107, 2, _F32, ""), (0x107, 1, _F16, ".F16"), (0x113, 3, _F64, ".F64"))),
    *(Form("F2I", opcode, XU, VARIABLE, (_D_LONG, source), (FLUSH, _integer(codes), Suffix(name), _TO_INTEGER, _NEAREST_ZERO), "1456",
           fixed={_SRC: src}, variant=name[1:].lower() + ("64" if opcode == 0x111 else ""))
      for opcode, codes, src, source, name in (
          (0x105, range(6), 2, _F32, ""), (0x105, range(6), 1, _F16, ".F16"), (0x111, range(8), 3, _F64, ".F64"),
          (0x111, range(6, 8), 2, _F32, ""), (0x111, range(6, 8), 1, _F16, ".F16"))),
    *(Form("I2F", opcode, XU, VARIABLE, (_D_FLOAT, source), (dst, _signed(*names), ROUNDING), forms,
           fixed={_SRC: src}, variant=("" if opcode == 0x106 else "f64") + names[0][1:].lower() + ".")
      for opcode, dst, src, source, names, forms in (
          (0x106, _SHORT_FLOATS, 0, _BYTE, (".U8", ".S8"), "156"), (0x106, _SHORT_FLOATS, 1, _SHORT, (".U16", ".S16"), "156"),
          (0x106, _SHORT_FLOATS, 2, _WORD, (".U32", ""), "156"),
          (0x112, Modifier("DST", _DST, {3: ".F64"}, default=3), 0, _BYTE, (".U8", ".S8"), "156"),
          (0x112, Modifier("DST", _DST, {3: ".F64"}, default=3), 1, _SHORT, (".U16", ".S16"), "156"),
          (0x112, Modifier("DST", _DST, {3: ".F64"}, default=3), 2, _WORD, (".U32", ""), "156"),
          (0x112, _FLOATS, 3, _LONG, (".U64", ".S64"), "156"))),
    # an immediate prints with the sign that its type gives it
    *(Form("I2F", opcode, XU, VARIABLE, (_D_FLOAT, Flexible("X", HEX, signed=bool(sign), reuse=None)),
           (dst, Modifier("SRC", bits[74], {sign: name}, default=sign), ROUNDING), "4", fixed={_SRC: src},
           variant=("" if opcode == 0x106 else "f64") + f"{name[1:].lower()}-immediate.")
      for opcode, dst, src, sign, name in (
          (0x106, _SHORT_FLOATS, 2, 0, ".U32"), (0x106, _SHORT_FLOATS, 2, 1, ""),
          (0x112, Modifier("DST", _DST, {3: ".F64"}, default=3), 2, 0, ".U32"), (0x112, Modifier("DST", _DST, {3: ".F64"}, default=3), 2, 1, ""),
          (0x112, _FLOATS, 3, 0, ".U64"), (0x112, _FLOATS, 3, 1, ".S64"))),

    # packed results, of fixed latency.  F2FP: the first source goes to the upper half
    Form("I2FP.F32", 0x045, ALU, FIXED, (Rd, Flexible("X", HEX, signed=True)),
         (Modifier("SRC", bits[74], {0: ".U32", 1: ".S32"}, default=1), Modifier("RND", bits[79:78], {0: "", 3: ".RZ"})), "156",
         fixed={_DST: 2, _SRC: 2}),
    Form("F2FP", 0x03e, ALU, FIXED, (Rd, Ra, Flexible("X", F32)), (*_PACK, Suffix(".PACK_AB"), _PACK_ROUNDING), "1456",
         fixed={bits[78]: 0, bits[71:64]: RZ_INDEX}),
    Form("F2FP", 0x03e, ALU, FIXED, (Rd, Flexible("B", F32), _MERGED), (*_PACK, Suffix(".MERGE_C"), _PACK_ROUNDING), "1234567",
         fixed={bits[78]: 1, bits[31:24]: RZ_INDEX}, variant="merge"),
    Form("F2IP", 0x043, ALU, FIXED, (Rd, Ra, Flexible("B", F32), _MERGED),
         (Modifier("DST", bits[76], {0: ".U8", 1: ".S8"}, default=1), Suffix(".F32"), Modifier("RND", bits[79:78], {0: "", 3: ".TRUNC"}),
          Modifier("NTZ", bits[74], {0: "", 1: ".NTZ"}), Modifier("RELU", bits[75], {0: "", 1: ".RELU"})), "1234567"),
    Form("I2I", 0x038, ALU, FIXED, (Rd, Flexible("X", HEX, signed=True)), (_PACKED_INTEGER, Suffix(".S32.SAT")), "1456"),
    *(Form("I2IP", 0x039, ALU, FIXED, (Rd, Ra, Flexible("B", HEX, signed=True), Register("C", bits[71:64], READ, reuse=bits[124], tail=(Field("C.place", bits[73:72], codes=frozenset(places), default=min(places)), places))),
           (Modifier("DST", bits[78:76], types, default=max(types)), Suffix(".S32"), Modifier("SAT", bits[75:74], {0: ".SAT", 1: "", 2: ".SATRELU"})), "1456",
           variant=f"{width}.")
      for width, types, places in ((8, {0: ".U8", 1: ".S8", 2: ".U16", 3: ".S16"}, {0: "", 1: ".H1"}),
                                   (2, {4: ".U2", 5: ".S2"}, {3: ".28"}), (4, {6: ".U4", 7: ".S4"}, {2: ".24"}))),
]
# fmt: on
