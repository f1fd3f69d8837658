"""Textures: sampling, gathering, loading, gradients, queries.

The texture is named by a bank and a header's number, or by a handle in a register (bindless, `.B`).  The mask says which of four
components are written, two to each destination.  How many source registers are read depends on shape and mode in ways nobody has
measured here: the sources count as the registers that every shape reads.  The ways that name texture and sampler apart or by a
uniform register, and footprints, are left out.
"""

from __future__ import annotations

from coppelius.isa.bits import Bits, bits
from coppelius.isa.form import MEMORY, VARIABLE, Form, Operand
from coppelius.isa.forms.addressing import Some
from coppelius.isa.operands import RZ_INDEX
from coppelius.isa.slots import READ, WRITE, Columns, Predicate, Register, Width
from coppelius.isa.values import HEX, Immediate, Modifier, Named, Suffix

_SHAPES = {0: "1D", 1: "2D", 2: "3D", 3: "CUBE", 4: "ARRAY_1D", 5: "ARRAY_2D", 7: "ARRAY_CUBE"}


def _shape(*codes: int) -> Named:
    return Named("shape", bits[63:61], {code: _SHAPES[code] for code in codes}, default=codes[0])


class Rest(Register):
    """A register not printed where it is RZ."""

    def __init__(self, name: str, place: Bits) -> None:
        super().__init__(name, place, READ)
        self.absent = {name: RZ_INDEX}

    def render(self, columns: Columns) -> list[str]:
        return ["" if text == "RZ" else text for text in super().render(columns)]


def _components(first: int) -> Width:
    """Registers written by the mask: the first two components, or the rest."""
    counts = {mask: bin(mask).count("1") for mask in range(16)}
    return "mask", {mask: max(1, min(n, 2) if first else n - 2) for mask, n in counts.items()}


_D = Register("D", bits[23:16], WRITE, width=_components(1))
_D2 = Register("D2", bits[71:64], WRITE, width=_components(0))
# two halves in each
_D_HALVES, _D2_HALVES = Register("D", bits[23:16], WRITE), Register("D2", bits[71:64], WRITE)
_A, _B, _B_OR_NONE = Some("A", bits[31:24]), Some("B", bits[39:32]), Rest("B", bits[39:32])
_B_ANY = Register("B", bits[39:32], READ)
_MASK = Immediate("mask", bits[75:72], HEX, absent=15, default=15)
_SPARSE = Predicate("Pd", bits[83:81], WRITE, optional={"Pd": 7})
_EVERY_MASK = Immediate("mask", bits[75:72], HEX, default=15)
_BOUND: tuple[Operand, ...] = (Immediate("bank", bits[58:54], HEX), Immediate("header", bits[53:40], HEX))

_COMPACT = Modifier("SCR", bits[60], {0: "", 1: ".SCR"})
_BINDLESS = Suffix(".B")
# where the suffix of halves comes: rows of halves have it, the others have not
_HALF = Suffix(".F16")
_ROUNDED = {1: ".F16.RN", 2: ".F16.RZ"}
_OFFSET = Modifier("AOFFI", bits[76], {0: "", 1: ".AOFFI"})
_DEPTH = Modifier("DC", bits[78], {0: "", 1: ".DC"})
_EVICT = Modifier("EVICT", bits[86:84], {1: "", 0: ".EF", 2: ".EL", 3: ".LU", 4: ".EU", 5: ".NA"}, default=1)
_NO_DERIVATIVES = Modifier("NDV", bits[77], {0: "", 1: ".NDV"})
_NO_DEPENDENCE = Modifier("NODEP", bits[90], {0: "", 1: ".NODEP"})
_LOD = Modifier("LOD", bits[89:87], {0: "", 1: ".LZ", 2: ".LB", 3: ".LL", 4: ".LC", 5: ".LB.LC", 6: ".LC.FDV"})
_LOAD_LOD = Modifier("LOD", bits[89:87], {1: ".LZ", 3: ".LL"}, default=1)
_COMPONENT = Modifier("COMPONENT", bits[88:87], {0: ".R", 1: ".G", 2: ".B", 3: ".A"})
_OFFSETS = Modifier("OFFSETS", bits[77:76], {0: "", 1: ".AOFFI", 2: ".PTP"})
_SAMPLES = Modifier("MS", bits[78], {0: "", 1: ".MS"})
_CLAMP = Modifier("CL", bits[77], {0: "", 1: ".CL"})
_LOD_CLAMP = Modifier("LC", bits[87], {0: "", 1: ".LC"})
_QUERY = Named(
    "query", bits[63:62], {0: "TEX_HEADER_DIMENSION", 1: "TEX_HEADER_TEXTURE_TYPE", 2: "TEX_HEADER_SAMPLER_POS"}
)

_TEX = (_COMPACT, _BINDLESS, _HALF, _LOD, _OFFSET, _DEPTH, _EVICT, _NO_DERIVATIVES, _NO_DEPENDENCE)
_TLD4 = (_COMPACT, _COMPONENT, _BINDLESS, _HALF, _OFFSETS, _DEPTH, _EVICT, _NO_DEPENDENCE)
_TLD = (_COMPACT, _BINDLESS, _HALF, _LOAD_LOD, _OFFSET, _EVICT, _SAMPLES, _CLAMP, _NO_DEPENDENCE)
_TXD = (_BINDLESS, _HALF, _LOD_CLAMP, _OFFSET, _EVICT, _NO_DEPENDENCE)
_TXQ = (_BINDLESS, _NO_DEPENDENCE)
_TMML = (_BINDLESS, Suffix(".LOD"), _NO_DERIVATIVES, _NO_DEPENDENCE)


def _texel_rows(
    mnemonic: str,
    opcode: int,
    second: tuple[Operand, ...],
    tail: tuple[Operand, ...],
    modifiers: tuple[Modifier, ...],
) -> list[Form]:
    """The rows of an operation that gives components, whole ones or halves."""
    whole = tuple(m for m in modifiers if m is not _HALF)
    rows = _rows(mnemonic, opcode, ((_SPARSE, _D2, _D, _A), second, tail), whole, {bits[80:79]: 0})
    for code, text in _ROUNDED.items():
        halves = tuple(Suffix(text) if m is _HALF else m for m in modifiers)
        head = (_SPARSE, _D2_HALVES, _D_HALVES, _A)
        rows += _rows(mnemonic, opcode, (head, second, tail), halves, {bits[80:79]: code}, text[-2:].lower())
    return rows


def _rows(
    mnemonic: str,
    opcode: int,
    operands: tuple[tuple[Operand, ...], tuple[Operand, ...], tuple[Operand, ...]],
    modifiers: tuple[Modifier, ...],
    fixed: dict[Bits, int] | None = None,
    variant: str = "",
) -> list[Form]:
    """Operands: before the second source, that source without and with `.B`, after the texture's name.

    The bound row, opcode 0xb.., without and with a handle besides; the bindless one, 0x3.. and one more.
    """
    head, (bound, handle), tail = operands[0], (operands[1][:-1], operands[1][-1:]), operands[2]
    plain = tuple(m for m in modifiers if m is not _BINDLESS)
    always = {bits[91]: 0} | (fixed or {})
    named, by_handle = always | {bits[59]: 0}, always | {bits[59]: 1}
    return [
        Form(mnemonic, opcode, MEMORY, VARIABLE, (*head, *bound, *_BOUND, *tail), plain, fixed=named, variant=variant),
        Form(mnemonic, opcode, MEMORY, VARIABLE, (*head, *handle, *_BOUND, *tail), modifiers, fixed=by_handle, variant=f"{variant}handle"),
        Form(mnemonic, (opcode & 0xFF | 0x300) + 1, MEMORY, VARIABLE, (*head, *handle, *tail), modifiers, fixed=by_handle, variant=f"{variant}bindless"),
    ]  # fmt: skip


_SECOND: tuple[Operand, ...] = (_B_OR_NONE, _B)

# fmt: off
FORMS = [
    *_texel_rows("TEX",  0xb60, _SECOND, (_shape(0, 1, 2, 3, 4, 5, 7), _MASK), _TEX),
    *_texel_rows("TLD4", 0xb63, _SECOND, (_shape(1, 3, 5, 7), _MASK), _TLD4),
    *_texel_rows("TLD",  0xb66, _SECOND, (_shape(0, 1, 2, 4, 5), _MASK), _TLD),
    *_rows("TMML", 0xb69, ((_D2, _D, _A), _SECOND, (_shape(0, 1, 2, 3, 4, 5, 7), _MASK)), _TMML),
    *_texel_rows("TXD",  0xb6c, (_B_ANY, _B_ANY), (_shape(0, 1, 4, 5), _MASK), _TXD),
    *_rows("TXQ",  0xb6f, ((_D2, _D, _A), (_QUERY, _QUERY), (_EVERY_MASK,)), _TXQ),
]
# fmt: on
