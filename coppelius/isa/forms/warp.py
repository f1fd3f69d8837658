"""Lanes of one warp: shuffles, votes, matches, differences inside a quad of lanes."""

from __future__ import annotations

from coppelius.isa.bits import bits
from coppelius.isa.form import ALU, FIXED, FMA, SHARED, SYSTEM, VARIABLE, Form
from coppelius.isa.forms.shared import FLUSH, ROUNDING, Pd, Ps
from coppelius.isa.slots import READ, WRITE, Columns, Register
from coppelius.isa.values import HEX, Immediate, Modifier, Named

_D, _A = Register("D", bits[23:16], WRITE), Register("A", bits[31:24], READ)
_SHUFFLE = (Modifier("MODE", bits[59:58], {0: ".IDX", 1: ".UP", 2: ".DOWN", 3: ".BFLY"}),)
_LANE, _LANE_REGISTER = Immediate("B", bits[57:53], HEX), Register("B", bits[39:32], READ)
_BOUND, _BOUND_REGISTER = Immediate("C", bits[52:40], HEX), Register("C", bits[71:64], READ)
_MATCH_D, _MATCH_A = _D, Register("A", bits[31:24], READ, width=("SIZE", {0: 1, 1: 2}))
_MATCH_SIZE = Modifier("SIZE", bits[73], {0: "", 1: ".U64"})


class Ballot(Register):
    """A register written, not printed where it is RZ."""

    def render(self, columns: Columns) -> list[str]:
        return ["" if text == "RZ" else text for text in super().render(columns)]


_BALLOT = Ballot("D", bits[23:16], WRITE)
_BALLOT.absent = {"D": 255}
_VOTE = Modifier("MODE", bits[73:72], {0: ".ALL", 1: ".ANY", 2: ".EQ"})

# FSWZADD: what each lane of a quad does with its neighbour's value and its own: adds, subtracts either way, or takes its own
_QUAD = ("PP", "PN", "NP", "ZP")
_PATTERN = Named("pattern", bits[39:32], {
    code: "".join(_QUAD[code >> shift & 3] for shift in (6, 4, 2, 0)) for code in range(256)})  # fmt: skip
_SWIZZLE = (FLUSH, ROUNDING, Modifier("NDV", bits[77], {0: "", 1: ".NDV"}))

# fmt: off
FORMS = [
    Form("SHFL", 0x389, SHARED, VARIABLE, (Pd, _D, _A, _LANE_REGISTER, _BOUND_REGISTER), _SHUFFLE, variant="rr"),
    Form("SHFL", 0x589, SHARED, VARIABLE, (Pd, _D, _A, _LANE_REGISTER, _BOUND),          _SHUFFLE, variant="ri"),
    Form("SHFL", 0x989, SHARED, VARIABLE, (Pd, _D, _A, _LANE, _BOUND_REGISTER),          _SHUFFLE, variant="ir"),
    Form("SHFL", 0xf89, SHARED, VARIABLE, (Pd, _D, _A, _LANE, _BOUND),                   _SHUFFLE, variant="ii"),
    Form("VOTE", 0x806, ALU,    FIXED,    (_BALLOT, Pd, Ps), (_VOTE,)),
    Form("FSWZADD", 0x822, FMA, FIXED,    (_D, _A, Register("C", bits[71:64], READ), _PATTERN), _SWIZZLE, fixed={bits[91]: 0}),
    Form("MATCH", 0x3a1, SYSTEM, VARIABLE, (Pd, _MATCH_D, _MATCH_A), (Modifier("MODE", bits[79], {0: ".ALL"}), _MATCH_SIZE)),
    Form("MATCH", 0x3a1, SYSTEM, VARIABLE, (_MATCH_D, _MATCH_A), (Modifier("MODE", bits[79], {1: ".ANY"}, default=1), _MATCH_SIZE),
         fixed={bits[83:81]: 7}, variant="any"),
]
# fmt: on
