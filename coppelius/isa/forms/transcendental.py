"""The slow unit's functions: reciprocals, roots, exponentials, sines, and counts of bits.  All of variable latency."""

from __future__ import annotations

from coppelius.isa.bits import bits
from coppelius.isa.form import VARIABLE, XU, Flexible, Form
from coppelius.isa.forms.shared import Pd, PdOptional, RaPlainSigned, Rd
from coppelius.isa.slots import HALF_SELECT
from coppelius.isa.values import F16_LOW, F32, F64_HIGH, HEX, Modifier, Style, Suffix

_WHOLE = {0: ".COS", 1: ".SIN", 2: ".EX2", 3: ".LG2", 4: ".RCP", 5: ".RSQ", 8: ".SQRT", 9: ".TANH"}
# of the upper half of a double
_UPPER = {6: ".RCP64H", 7: ".RSQ64H"}


def _signed(style: Style) -> Flexible:
    return Flexible("X", style, negate=True, absolute=True, reuse=None)


# either half of the register
_HALF = Flexible(
    "X", F16_LOW, negate=True, absolute=True, halves=(bits[60], bits[60]), select=HALF_SELECT, spaced=True, reuse=None
)


_SIGNED = _signed(F32)
_BITS = Flexible("X", HEX, negate=True, reuse=None, invert=True)

# fmt: off
FORMS = [
    *(Form("MUFU", 0x108, XU, VARIABLE, (Rd, source), (Modifier("FUNC", bits[77:74], names, default=min(names)), *more), "1456",
           fixed={bits[73]: half}, variant=variant)
      for source, names, more, half, variant in (
          (_SIGNED, _WHOLE, (), 0, ""), (_signed(F64_HIGH), _UPPER, (), 0, "double."), (_HALF, _WHOLE, (Suffix(".F16"),), 1, "half."))),
    Form("FCHK", 0x102, XU, VARIABLE, (Pd, RaPlainSigned, _SIGNED), (), "1456"),
    Form("POPC", 0x109, XU, VARIABLE, (Rd, _BITS), (), "1456"),
    Form("FLO", 0x100, XU, VARIABLE, (Rd, PdOptional, _BITS),
         (Modifier("U32", bits[73], {1: "", 0: ".U32"}, default=1), Modifier("SH", bits[74], {0: "", 1: ".SH"})), "1456"),
    Form("BREV", 0x101, XU, VARIABLE, (Rd, Flexible("X", HEX, reuse=None)), (), "1456"),
]
# fmt: on
