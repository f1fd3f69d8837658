"""Two 16-bit floats a register: IEEE halves, bfloat16 only where the mnemonic says BF16_V2."""

from __future__ import annotations

from coppelius.isa.bits import bits
from coppelius.isa.form import FIXED, HALF, Flexible, Form
from coppelius.isa.forms.shared import COMPARE, FLUSH, SATURATE, Pd, Pd2, Ps, Rd
from coppelius.isa.slots import READ, Predicate, Register
from coppelius.isa.values import BF16, F16, F16_LOW, Modifier, Style, Suffix

_Ra = Register("A", bits[31:24], READ, negate=bits[72], absolute=bits[73], half=bits[75:74], reuse=bits[122])
_PLACES = (bits[61:60], bits[82:81])
# HFMA2's B may negate one half: a third bit of its select
_B_PLACES = (bits[86] + bits[61:60], bits[86] + bits[82:81])
_FLUSH_OR_ZERO = Modifier("FMZ", bits[76] + bits[80], {0: "", 1: ".FTZ", 2: ".FMZ"})
_TO_FLOAT = Modifier("F32", bits[78], {0: "", 1: ".F32"})
_RELU = Suffix(".RELU")
_PsOptional = Predicate("Ps", bits[89:87], READ, inverted=bits[90], optional={"Ps": 7, "Ps.not": 0})
_NAN = Modifier("NAN", bits[81], {0: "", 1: ".NAN"})
_XORSIGN = Modifier("XORSIGN", bits[82], {0: "", 1: ".XORSIGN"})


def _only(style: Style, *, addend: bool = False) -> Flexible:
    reuse = bits[124] if addend else bits[123]
    return Flexible("X", style, negate=True, absolute=True, halves=_PLACES, reuse=reuse, spaced=True)


def _factors(style: Style) -> tuple[Flexible, Flexible]:
    b = Flexible("B", style, negate=True, absolute=True, halves=_B_PLACES, spaced=True)
    c = Flexible("C", style, negate=True, absolute=True, halves=_PLACES, spaced=True)
    return b, c


_RaWidened = Register("A", bits[31:24], READ, negate=bits[72], half=bits[75:74])
_RaWhole = Register("A", bits[31:24], READ, negate=bits[72], absolute=bits[73], reuse=bits[122])
_WHOLE = (
    Flexible("B", F16, negate=True, absolute=True, upper_signs=True),
    Flexible("C", F16, negate=True, absolute=True, upper_signs=True),
)
_BOOLEAN = Modifier("BOOL", bits[70:69], {0: ".AND", 1: ".OR", 2: ".XOR"})

# fmt: off
FORMS = [
    Form("HADD2", 0x030, HALF, FIXED, (Rd, _Ra, _only(F16, addend=True)), (FLUSH, SATURATE), "1237", fixed={bits[78]: 0}),
    # widens to FP32: an immediate is its low half
    Form("HADD2.F32", 0x030, HALF, FIXED, (Rd, _RaWidened, _only(F16_LOW, addend=True)), (FLUSH, SATURATE), "1237", fixed={bits[78]: 1}),
    Form("HMUL2", 0x032, HALF, FIXED, (Rd, _Ra, _only(F16)), (_TO_FLOAT, _FLUSH_OR_ZERO, SATURATE), "1456"),
    # RELU excludes SAT and reads a predicate that nothing else reads
    Form("HFMA2", 0x031, HALF, FIXED, (Rd, _Ra, *_factors(F16)), (_TO_FLOAT, _FLUSH_OR_ZERO, SATURATE), "1234567",
         fixed={bits[85]: 0, bits[79]: 0, bits[90:87]: 0}),
    Form("HFMA2", 0x031, HALF, FIXED, (Rd, _Ra, *_factors(F16), _PsOptional), (_TO_FLOAT, _FLUSH_OR_ZERO, _RELU), "1234567",
         fixed={bits[85]: 0, bits[79]: 1, bits[77]: 0}, variant="relu"),
    Form("HFMA2.BF16_V2", 0x031, HALF, FIXED, (Rd, _Ra, *_factors(BF16)), (_FLUSH_OR_ZERO, SATURATE), "1234567",
         fixed={bits[85]: 1, bits[79:78]: 0, bits[90:87]: 0}),
    Form("HFMA2.BF16_V2", 0x031, HALF, FIXED, (Rd, _Ra, *_factors(BF16), _PsOptional), (_FLUSH_OR_ZERO, _RELU), "1234567",
         fixed={bits[85]: 1, bits[79:77]: 4}, variant="relu"),
    # through the matrix unit; no half select
    Form("HFMA2.MMA", 0x035, HALF, FIXED, (Rd, _RaWhole, *_WHOLE), (_FLUSH_OR_ZERO, SATURATE), "1234567",
         fixed={bits[79]: 0, bits[90:87]: 0}),
    Form("HFMA2.MMA", 0x035, HALF, FIXED, (Rd, _RaWhole, *_WHOLE, _PsOptional), (_FLUSH_OR_ZERO, _RELU), "1234567",
         fixed={bits[79]: 1, bits[77]: 0}, variant="relu"),
    Form("HSET2", 0x033, HALF, FIXED, (Rd, _Ra, _only(F16, addend=True), Ps),
         (Modifier("BF", bits[71], {0: "", 1: ".BF"}), COMPARE, FLUSH, _BOOLEAN), "1237"),
    Form("HSETP2", 0x034, HALF, FIXED, (Pd, Pd2, _Ra, _only(F16, addend=True), Ps),
         (COMPARE, Modifier("H_AND", bits[71], {0: "", 1: ".H_AND"}), FLUSH, _BOOLEAN), "1237"),
    Form("HMNMX2", 0x040, HALF, FIXED, (Rd, _Ra, _only(F16), Ps), (_TO_FLOAT, FLUSH, _NAN, _XORSIGN), "1456", fixed={bits[85]: 0}),
    Form("HMNMX2.BF16_V2", 0x040, HALF, FIXED, (Rd, _Ra, _only(BF16), Ps), (FLUSH, _NAN, _XORSIGN), "1456", fixed={bits[85]: 1}),
]
# fmt: on
