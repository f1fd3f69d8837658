"""Matrix multiply-accumulate.  A shape and a type decide how many registers each fragment has, so a row is one of both.

Fragments start at a multiple of their width.  The uniform predicate at the end is stored inverted: zero
is always.  A sparse operation also reads one register of indices.
"""

from __future__ import annotations

from collections.abc import Iterable

from coppelius.isa.bits import Field, bits
from coppelius.isa.form import FIXED, FP64, SHARED, TENSOR, VARIABLE, Form
from coppelius.isa.forms.shared import ROUNDING, RaPlain, Rd
from coppelius.isa.slots import READ, WRITE, Predicate, Register, Slot
from coppelius.isa.values import Immediate, Modifier, Suffix

_PREDICATE = Predicate(
    "Ps", bits[89:87], READ, inverted=bits[90], uniform=True, stored_inverted=True, optional={"Ps": 7, "Ps.not": 0}
)
_METADATA = (Register("M", bits[47:40], READ, reuse=bits[50]), Immediate("SELECT", bits[49:48]))
_ROW, _COLUMN = {0: ".ROW"}, {1: ".COL"}


def _float_operands(a: int, b: int, c: int, *, sparse: bool = False) -> tuple[Slot, ...]:
    return (
        Register("D", bits[23:16], WRITE, width=c),
        Register("A", bits[31:24], READ, width=a, negate=bits[72], reuse=bits[122]),
        Register("B", bits[39:32], READ, width=b, negate=bits[63], reuse=bits[123]),
        Register("C", bits[71:64], READ, width=c),
        _PREDICATE,
        *(_METADATA if sparse else ()),
    )


def _integer_operands(a: int, b: int, c: int, *, sparse: bool = False) -> tuple[Slot, ...]:
    row = Field("A.layout", bits[73], codes=frozenset(_ROW))
    column = Field("B.layout", bits[74], codes=frozenset(_COLUMN), default=1)
    return (
        Register("D", bits[23:16], WRITE, width=c),
        Register("A", bits[31:24], READ, width=a, reuse=bits[122], tail=(row, _ROW)),
        Register("B", bits[39:32], READ, width=b, reuse=bits[123], tail=(column, _COLUMN)),
        Register("C", bits[71:64], READ, width=c),
        _PREDICATE,
        *(_METADATA if sparse else ()),
    )


def _hmma(rows: Iterable[tuple[str, int, int, int, int, int]], *, sparse: bool) -> list[Form]:
    """Rows of (shape, its bits 78 and 75, type code, registers of A, of B, FP32 accumulator only)."""
    names = {0: "", 1: ".BF16", 2: ".TF32"}
    stem = "HMMA.SP" if sparse else "HMMA"
    return [
        Form(
            f"{stem}.{shape}.{'F32' if wide else 'F16'}{names[kind]}", 0x23C, TENSOR, FIXED,
            _float_operands(a, b, 4 if wide else 2, sparse=sparse),
            fixed={bits[78] + bits[75]: code, bits[83:82]: kind, bits[76]: wide, bits[73]: int(sparse), bits[91]: 0},
        )
        for shape, code, kind, a, b, only in rows
        for wide in ((1,) if only else (1, 0))
    ]  # fmt: skip


_SIZES = {"8816": 0, "8832": 2, "16816": 4, "16832": 5, "16864": 6, "168128": 7}
_TYPES = {0: ".U{0}.U{0}", 1: ".S{0}.U{0}", 2: ".U{0}.S{0}", 3: ".S{0}.S{0}"}
_SATURATE = Modifier("SAT", bits[82], {0: "", 1: ".SAT"})


def _imma(rows: Iterable[tuple[str, int, int, int, int]], *, sparse: bool) -> list[Form]:
    """Rows of (shape, bits of an element, registers of A, of B, of C)."""
    stem = "IMMA.SP" if sparse else "IMMA"
    return [
        Form(
            f"{stem}.{shape}", 0x237, TENSOR, FIXED, _integer_operands(a, b, c, sparse=sparse),
            (Modifier("TYPE", bits[78] + bits[76], {n: t.format(width) for n, t in _TYPES.items()}), _SATURATE),
            fixed={bits[86:85] + bits[75]: _SIZES[shape], bits[84:83]: 3 if width == 4 else 0, bits[72]: int(sparse), bits[91]: 0},
            variant=f"{width}",
        )
        for shape, width, a, b, c in rows
    ]  # fmt: skip


_BINARY = Modifier("OP", bits[78:77], {0: ".XOR", 2: ".AND"})
_DA = Register("A", bits[31:24], READ, width=2, negate=bits[72], absolute=bits[73], reuse=bits[122])
_DB = Register("B", bits[39:32], READ, width=2, negate=bits[63], absolute=bits[62], reuse=bits[123])
_DC = Register("C", bits[71:64], READ, width=4, negate=bits[75], absolute=bits[74])

# fmt: off
FORMS = [
    #       shape   code type A  B  FP32 only
    *_hmma((("1688",  0, 0, 2, 1, 0), ("16816", 1, 0, 4, 2, 0), ("1688",  0, 1, 2, 1, 1), ("16816", 1, 1, 4, 2, 1),
            ("1684",  2, 2, 2, 1, 1), ("1688",  0, 2, 4, 2, 1)), sparse=False),
    *_hmma((("16816", 1, 0, 2, 2, 0), ("16832", 3, 0, 4, 4, 0), ("16816", 1, 1, 2, 2, 1), ("16832", 3, 1, 4, 4, 1),
            ("1688",  0, 2, 2, 2, 1), ("16816", 1, 2, 4, 4, 1)), sparse=True),
    *_imma((("8816", 8, 1, 1, 2), ("16816", 8, 2, 1, 4), ("16832", 8, 4, 2, 4),
            ("8832", 4, 1, 1, 2), ("16832", 4, 2, 1, 4), ("16864", 4, 4, 2, 4)), sparse=False),
    *_imma((("16832", 8, 2, 2, 4), ("16864", 8, 4, 4, 4), ("16864", 4, 2, 2, 4), ("168128", 4, 4, 4, 4)), sparse=True),
    *(Form(f"BMMA.{shape}", 0x23d, TENSOR, FIXED, _integer_operands(a, b, c), (_BINARY, Suffix(".POPC")),
           fixed={bits[76:75]: code, bits[80]: 1, bits[91]: 0})
      for shape, code, a, b, c in (("88128", 0, 1, 1, 2), ("168128", 1, 2, 1, 4), ("168256", 2, 4, 2, 4))),
    Form("DMMA.884", 0x23f, FP64, VARIABLE, (Register("D", bits[23:16], WRITE, width=4), _DA, _DB, _DC, _PREDICATE), (ROUNDING,),
         fixed={bits[76]: 0, bits[91]: 0}),
    # a transpose across the warp
    Form("MOVM.16", 0x23a, SHARED, VARIABLE, (Rd, RaPlain), (Modifier("MODE", bits[79:78], {0: ".MT88", 1: ".M832", 2: ".M864"}),)),
]
# fmt: on
