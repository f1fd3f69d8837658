"""The slow unit's functions: reciprocals, roots, exponentials, sines, and counts of bits.  All of variable latency."""

from __future__ import annotations

from coppelius.isa.bits import bits
from coppelius.isa.form import VARIABLE, XU, Flexible, Form
from coppelius.isa.forms.shared import Pd, PdOptional, RaPlainSigned, Rd
from coppelius.isa.values import F32, HEX, Modifier, Suffix

_FUNCTIONS = [".COS", ".SIN", ".EX2", ".LG2", ".RCP", ".RSQ", ".RCP64H", ".RSQ64H", ".SQRT", ".TANH"]
_SIGNED = Flexible("X", F32, negate=True, absolute=True, reuse=None)
_BITS = Flexible("X", HEX, negate=True, reuse=None, invert=True)

# fmt: off
FORMS = [
    Form("MUFU", 0x108, XU, VARIABLE, (Rd, _SIGNED), (Modifier("FUNC", bits[77:74], dict(enumerate(_FUNCTIONS))),), "1456",
         fixed={bits[73]: 0}),
    Form("MUFU", 0x108, XU, VARIABLE, (Rd, _SIGNED),
         (Modifier("FUNC", bits[77:74], {n: t for n, t in enumerate(_FUNCTIONS) if "64H" not in t}), Suffix(".F16")), "1456",
         fixed={bits[73]: 1}, variant="half"),
    Form("FCHK", 0x102, XU, VARIABLE, (Pd, RaPlainSigned, _SIGNED), (), "1456"),
    Form("POPC", 0x109, XU, VARIABLE, (Rd, _BITS), (), "1456"),
    Form("FLO", 0x100, XU, VARIABLE, (Rd, PdOptional, _BITS),
         (Modifier("U32", bits[73], {1: "", 0: ".U32"}, default=1), Modifier("SH", bits[74], {0: "", 1: ".SH"})), "1456"),
    Form("BREV", 0x101, XU, VARIABLE, (Rd, Flexible("X", HEX, reuse=None)), (), "1456"),
]
# fmt: on
