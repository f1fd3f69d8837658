"""Special registers, barriers of a thread block, fences, scoreboard waits.

S2R answers late (a scoreboard), CS2R in fixed time.  BAR takes its number and its count from the word or from registers.
A barrier that reduces reads a predicate whose all-zero bits mean P0, not PT.
"""

from __future__ import annotations

from collections.abc import Sequence

from coppelius.isa.bits import Bits, Field, bits
from coppelius.isa.form import ALU, CONTROL, FIXED, NO_RESULT, SYSTEM, VARIABLE, Form, Operand
from coppelius.isa.forms.special_registers import SPECIAL_REGISTERS
from coppelius.isa.slots import READ, WRITE, Columns, Predicate, Register, Slot, Values
from coppelius.isa.values import HEX, Immediate, Modifier, Named, Suffix

_D = Register("D", bits[23:16], WRITE)
_SPECIAL = Named("special", bits[79:72], SPECIAL_REGISTERS)
_CS2R_SIZE = Modifier("SIZE", bits[80], {1: "", 0: ".32"}, default=1)
_CS2R_D = Register("D", bits[23:16], WRITE, width=("SIZE", {0: 1, 1: 2}))


class Both(Register):
    """One register printed twice: it holds the barrier's number and, 16 bits up, its count."""

    tokens = 2

    def render(self, columns: Columns) -> list[str]:
        return [f"{t}, {t}" for t in super().render(columns)]

    def parse(self, text: str) -> Values | None:
        first, _, second = text.partition(", ")
        return super().parse(first) if first == second else None


class ScoreboardSet(Slot):
    """`{4,3,0}`: scoreboards by number, the highest first; nothing where the set is empty."""

    def __init__(self, name: str, place: Bits) -> None:
        self.name = name
        self.fields = (Field(name, place),)
        self.absent = {name: 0}

    def render(self, columns: Columns) -> list[str]:
        return [self._text(mask) for mask in columns[self.name]]

    def _text(self, mask: int) -> str:
        inside = ",".join(str(n) for n in range(5, -1, -1) if mask >> n & 1)
        return f"{{{inside}}}" if inside else ""

    def parse(self, text: str) -> Values | None:
        inside = text.strip()
        if not (inside.startswith("{") and inside.endswith("}")):
            return None
        numbers = inside[1:-1].split(",")
        return self.accept([int(n) for n in numbers]) if all(n in tuple("012345") for n in numbers) else None

    def accept(self, value: object) -> Values | None:
        """Scoreboard numbers."""
        if not isinstance(value, Sequence) or not all(isinstance(n, int) and 0 <= n < 6 for n in value):
            return None
        return {self.name: sum(1 << n for n in set(value))}


_ID = Immediate("barrier", bits[57:54], HEX)
_ID_REGISTER = Register("barrier", bits[39:32], READ)
_COUNT = Immediate("count", bits[53:42], HEX)
_COUNT_OPTIONAL = Immediate("count", bits[53:42], HEX, absent=0)
_COUNT_REGISTER = Register("count", bits[39:32], READ)
_BOTH = Both("barrier", bits[39:32], READ)
_VOTED = Predicate("Ps", bits[89:87], READ, inverted=bits[90])
_DEFER = Modifier("DEFER", bits[80], {0: "", 1: ".DEFER_BLOCKING"})
_REDUCE = Modifier("REDUCE", bits[75:74], {0: ".POPC", 1: ".AND", 2: ".OR"})


def _mode(code: int, text: str) -> Modifier:
    return Modifier("MODE", bits[79:77], {code: text}, default=code)


def _bar_rows(variant: str, opcode: int, always: tuple[Operand, ...], optional: tuple[Operand, ...]) -> list[Form]:
    """The modes of one way to name barrier and count; `always` where the count prints even if it is zero."""
    return [
        Form("BAR", opcode, CONTROL, NO_RESULT, optional, (_mode(0, ".SYNC"), _DEFER), variant=f"sync-{variant}", fixed={bits[91]: 0}),
        Form("BAR", opcode, CONTROL, NO_RESULT, always, (_mode(1, ".ARV"),), variant=f"arv-{variant}", fixed={bits[91]: 0}),
        Form("BAR", opcode, CONTROL, NO_RESULT, (*optional, _VOTED), (_mode(2, ".RED"), _REDUCE, _DEFER), variant=f"red-{variant}", fixed={bits[91]: 0}),
        Form("BAR", opcode, CONTROL, NO_RESULT, (*always, _VOTED), (_mode(3, ".SCAN"),), variant=f"scan-{variant}", fixed={bits[91]: 0}),
    ]  # fmt: skip


_SCOPE = Modifier("SCOPE", bits[78:76], {0: ".CTA", 1: ".SM", 2: ".GPU", 3: ".SYS", 5: ".VC"})
_SEMANTICS = Modifier("SEM", bits[80:79], {0: ".SC", 1: ".ALL", 2: "", 3: ".MMIO"})
_SCOREBOARD = Named("scoreboard", bits[46:44], {n: f"SB{n}" for n in range(6)})
_SET = ScoreboardSet("set", bits[37:32])

# fmt: off
FORMS = [
    Form("NOP",  0x918, CONTROL, NO_RESULT),
    Form("S2R",  0x919, SYSTEM, VARIABLE, (_D, _SPECIAL)),
    Form("CS2R", 0x805, ALU,    FIXED,    (_CS2R_D, _SPECIAL), (_CS2R_SIZE,)),

    *_bar_rows("immediate", 0xb1d, (_ID, _COUNT), (_ID, _COUNT_OPTIONAL)),
    *_bar_rows("id-register", 0x51d, (_ID_REGISTER, _COUNT), (_ID_REGISTER, _COUNT_OPTIONAL)),
    *_bar_rows("count-register", 0x91d, (_ID, _COUNT_REGISTER), (_ID, _COUNT_REGISTER)),
    *_bar_rows("register", 0x31d, (_BOTH,), (_BOTH,)),
    Form("BAR",  0xb1d, CONTROL, NO_RESULT, (), (_mode(4, ".SYNCALL"), _DEFER), variant="syncall", fixed={bits[91]: 0}),
    Form("B2R",  0x31c, SYSTEM, VARIABLE, (_D, _ID), fixed={bits[79:78]: 0}),
    Form("B2R",  0x31c, SYSTEM, VARIABLE, (_D, Predicate("Pd", bits[83:81], WRITE, optional={"Pd": 7})), (Suffix(".RESULT"),),
         fixed={bits[79:78]: 1}, variant="result"),
    Form("B2R",  0x31c, SYSTEM, VARIABLE, (_D,), (Suffix(".WARP"),), fixed={bits[79:78]: 2}, variant="warp"),

    Form("MEMBAR", 0x992, SYSTEM, NO_RESULT, (), (_SEMANTICS, _SCOPE)),
    Form("ERRBAR", 0x9ab, SYSTEM, NO_RESULT),
    Form("DEPBAR", 0x91a, CONTROL, NO_RESULT, (_SCOREBOARD, Immediate("count", bits[43:38], HEX), _SET), (Suffix(".LE"),), fixed={bits[47]: 1}, variant="le"),
    Form("DEPBAR", 0x91a, CONTROL, NO_RESULT, (_SET,), fixed={bits[47]: 0}),
]
# fmt: on
