"""SM80, SM89, SM90, SM120 and SM121 as differences.

SM89 has SM86's words under two other names; SM80 lacks I2FP.  SM90 splits branch distances, and has other atomic
operations on floats.  SM120 names uniform registers by eight bits, reads constants by LDC and LDCU only, and moves
the fields of copies and atomics.  SM121's words are SM120's.
"""
# ruff: noqa: E501 - rows read as rows

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from coppelius.isa.address import AddressOperand
from coppelius.isa.bits import Bits, bits
from coppelius.isa.constants import UniformConstant
from coppelius.isa.form import (
    ALU,
    CONTROL,
    FIXED,
    FP64,
    HALF,
    MEMORY,
    NO_RESULT,
    SYSTEM,
    TENSOR,
    VARIABLE,
    Flexible,
    Form,
)
from coppelius.isa.forms import all_forms
from coppelius.isa.forms.addressing import COPY_ORDER, EVICT, STORE_ORDER, Ways, uniform_rows
from coppelius.isa.forms.shared import Pd, PdOptional, Ps, Ra, RaPlain, Rd, URd
from coppelius.isa.operands import PT_INDEX
from coppelius.isa.slots import READ, WRITE, Predicate, Register, Slot, UniformRegister, Values, Width
from coppelius.isa.targets.adapt import (
    carries_shown,
    never,
    spelled_out,
    unsigned,
    with_fields,
    without_half,
    without_reuse,
)
from coppelius.isa.targets.difference import (
    Difference,
    added,
    everywhere,
    gone,
    in_pipe,
    modified,
    operands,
    renamed,
    stems_gone,
    suffixed,
    suffixes,
    wide_uniform_registers,
    without_constant_operands,
    without_forms,
    without_hidden,
)
from coppelius.isa.values import HEX, Modifier, Named, Suffix

# ------------------------------------------------------------------------------------------------ SM89, SM80


def _named_packing(modifier: Modifier) -> Modifier:
    """F2FP says both formats: the half it makes, and that it makes it of 32 bits."""
    if modifier.name == "BF16":
        return Modifier("BF16", modifier.field.bits, {0: ".F16.F32", 1: ".BF16.F32"})
    return modifier


SM89 = Difference(
    "sm89",
    "",
    (
        gone("BAR:syncall"),
        modified(("F2FP",), _named_packing),
    ),
)


def _no_predicate(slot: Slot) -> Slot:
    """The uniform predicate of a matrix product, always true."""
    if not isinstance(slot, Predicate) or slot.space != "UP":
        return slot
    return never("Ps.not", 1)(never("Ps", *range(7))(slot))


SM80 = Difference(
    "sm80",
    "",
    (
        stems_gone("I2FP", "F2IP", "I2IP"),
        gone("BAR:syncall"),
        suffixes(("FMNMX", "HMNMX2", "HMNMX2.BF16_V2"), "XORSIGN", 0),
        without_forms(("HADD2.F32",), "2"),
        in_pipe(HALF, without_half(4)),
        # bits of a predicate that SM80 does not look at
        in_pipe(TENSOR, _no_predicate),
        in_pipe(FP64, _no_predicate),
    ),
)

# ------------------------------------------------------------------------------------------------------ SM90

# a relative target's lowest byte lies by itself, counted in words of four bytes as before
_SPLIT = bits[81:34] + bits[23:16]
_WHOLE = bits[81:34]
_BRANCHES = (
    "BRA", "BRX", "BRXU", "CALL:", "CALL:uniform", "CALL:register", "CALL:absolute-uniform", "CALL:absolute-register",
    "RET", "JMX", "JMXU",
)  # fmt: skip


def _split(slot: Slot) -> Slot:
    return with_fields(slot, lambda f: replace(f, bits=_SPLIT) if f.bits == _WHOLE else f)


_INTEGERS = Modifier("TYPE", bits[75:73], {0: "", 1: ".S32", 2: ".64", 3: ".S64"})
_FLOATS = Modifier("TYPE", bits[76:73], {0: ".F16x2.RN", 9: ".F32.FTZ.RN", 15: ".F64.RN"})
_BY_INTEGER: Width = ("TYPE", {0: 1, 1: 1, 2: 2, 3: 2})
_BY_FLOAT: Width = ("TYPE", {0: 1, 9: 1, 15: 2})
_OPERATIONS = {0: ".ADD", 1: ".MIN", 2: ".MAX", 3: ".INC", 4: ".DEC", 5: ".AND", 6: ".OR", 7: ".XOR"}
_REDUCE = Modifier("OP", bits[89:87], _OPERATIONS)
_FETCH = Modifier("OP", bits[90:87], _OPERATIONS | {8: ".EXCH", 9: ".SAFEADD"})
_FETCH_GENERIC = Modifier("OP", bits[90:87], _OPERATIONS | {8: ".EXCH"})
# the operations that floats have; minimum and maximum of two halves only
_FLOAT_OPERATION = Modifier("OP", bits[89:87], {0: ".ADD"})


def _reductions(
    mnemonic: str, ways: Ways, kind: Modifier, width: Width, operation: Modifier, variant: str
) -> list[Form]:
    """A reduction: an address and data."""
    data = Register("data", bits[39:32], READ, width=width)
    return uniform_rows(
        mnemonic, NO_RESULT, ways, lambda address: (address, data),
        lambda e: (e, operation, EVICT, kind, STORE_ORDER), variant,
    )  # fmt: skip


def _fetches(mnemonic: str, ways: Ways, kind: Modifier, width: Width, operation: Modifier, variant: str) -> list[Form]:
    """An atomic operation that gives the old value back."""
    data, old = Register("data", bits[39:32], READ, width=width), Register("D", bits[23:16], WRITE, width=width)
    return uniform_rows(
        mnemonic, VARIABLE, ways, lambda address: (Pd, old, address, data),
        lambda e: (e, operation, EVICT, kind, STORE_ORDER), variant,
    )  # fmt: skip


_UR = bits[69:64]


def _atomics(
    integer: tuple[Bits, Bits, Bits], float_: tuple[Bits, Bits, Bits], reduce_descriptor: Bits, offset: Bits
) -> list[Form]:
    """The atomics with a uniform register: (extend, descriptor, type) of integers and of floats."""
    whole = Modifier("TYPE", integer[2], _INTEGERS.suffixes)
    reduce = (bits[90], reduce_descriptor)
    return [
        *_reductions("REDG", Ways(0x98E, _UR, *reduce), whole, _BY_INTEGER, _REDUCE, ""),
        *_reductions("REDG", Ways(0x9A6, _UR, *reduce), _FLOATS, _BY_FLOAT, _FLOAT_OPERATION, "float-"),
        *_fetches("ATOMG", Ways(0x9A8, _UR, integer[0], integer[1], True, offset), whole, _BY_INTEGER, _FETCH, ""),
        *_fetches("ATOMG", Ways(0x9A3, _UR, float_[0], float_[1], True, offset), _FLOATS, _BY_FLOAT, _FLOAT_OPERATION, "float-"),
        *_fetches("ATOM", Ways(0x98A, _UR, integer[0], integer[1], True, offset), whole, _BY_INTEGER, _FETCH_GENERIC, ""),
        *_fetches("ATOM", Ways(0x9A2, _UR, float_[0], float_[1], True, offset), _FLOATS, _BY_FLOAT, _FLOAT_OPERATION, "float-"),
    ]  # fmt: skip


_R2UR = (
    Form("R2UR", 0x2CA, ALU, FIXED, (PdOptional, URd, RaPlain), fixed={bits[91]: 0}),
    Form("R2UR.OR", 0x2CA, ALU, FIXED, (Pd, URd, RaPlain), fixed={bits[91]: 0, bits[84]: 1}),
)
_ALSO = Predicate("Ps", bits[89:87], READ, inverted=bits[90], optional={"Ps": PT_INDEX, "Ps.not": 0})
_WARPSYNC_ALL = Form("WARPSYNC.ALL", 0x948, CONTROL, NO_RESULT, (_ALSO,), fixed={bits[91]: 0})
_SIGNED = Modifier("U32", bits[72], {1: "", 0: ".U32"}, default=1)
_VIMNMX = Form(
    "VIMNMX", 0x048, ALU, FIXED, (Rd, Ra, Flexible("X", HEX, signed=True), Ps), (_SIGNED,), "146",
    fixed={bits[83:81]: 7, bits[86:84]: 7},
)  # fmt: skip
_PLAIN_ATOMICS = ("RED:plain", "ATOMG:plain", "ATOM:plain")
_UNIFORM_ATOMICS = tuple(f"{m}:{way}" for m in ("RED", "ATOMG", "ATOM") for way in ("described", "added"))

# jumps to places further away than SM86 has, or whose operands lie elsewhere
_FAR = (
    "JMP", "CALL:absolute", "BMOV.64:immediate", "RPCMOV.64:immediate", "WARPSYNC", "SUATOM:swap", "SUATOM:swaphandle",
)  # fmt: skip

# matrices of 4-bit integers
_NIBBLES = ("IMMA.8832", "IMMA.16832:4", "IMMA.16864", "IMMA.SP.16864:4", "IMMA.SP.168128")
_ADDED = tuple(f"{m}:{v}added" for m in ("REDG", "ATOMG", "ATOM") for v in ("", "float-"))


def _without_cluster(slot: Slot) -> Slot:
    """Special registers that SM86 has no name for and that chips with clusters name."""
    special = isinstance(slot, Named) and 0x88 in slot.names
    return never(slot.name, 0x41, *range(0x86, 0x90))(slot) if special else slot


# fmt: off
SM90 = Difference("sm90", "sm89", (
    stems_gone("BMMA", "I2IP"),
    gone("R2UR", "R2UR.OR", "LDGSTS:added", *_PLAIN_ATOMICS, *_UNIFORM_ATOMICS, "ATOMS.ARRIVE.64", *_NIBBLES),
    gone("ATOMS.POPC.INC.32"),
    gone("MUFU:half."),
    operands(("P2R",), unsigned("B")),
    gone(*_FAR),
    suffixes(("HMUL2", "HMNMX2"), "F32", 0),
    in_pipe(HALF, without_half(1)),
    operands(_BRANCHES, _split),
    renamed({"DMMA.884": "DMMA.8x8x4"}),
    added(*_R2UR, _WARPSYNC_ALL, _VIMNMX,
          *_atomics((bits[70], bits[71], bits[76:73]), (bits[70], bits[71], bits[76:73]), bits[71], bits[63:40])),
    operands(("LDG:added", "LD:added", "STG:added", "ST:added", "QSPC:added", *_ADDED), never("address.base", 255)),
    everywhere(spelled_out),
    everywhere(_without_cluster),
    without_hidden("ur"),
    without_hidden("extend"),
    operands(("BAR:sync-count-register", "BAR:red-count-register"), never("count", 255)),
))
# fmt: on

# ------------------------------------------------------------------------------------------- SM120 and SM121

_CONVERGENT = Modifier("RECONVERGENT", bits[73], {0: "", 1: ".RECONVERGENT"})
_RELIABLE = Modifier("RELIABLE", bits[72], {0: "", 1: ".RELIABLE"})
_SIZE = Modifier("SIZE", bits[75:73], {0: ".U8", 1: ".S8", 2: ".U16", 3: ".S16", 4: "", 5: ".64", 6: ".128"}, default=4)
_LOADED = UniformRegister("D", bits[21:16], WRITE, width=("SIZE", {5: 2, 6: 4}))
_BYTES = bits[53:37]


class _FirstWord(UniformConstant):
    """A constant without index, whose offset of zero prints as URZ."""

    def _compose(self, offset: int, place: int, index: int | None = None) -> str:  # noqa: ARG002 - it has none
        return super()._compose(offset, place) if offset else f"c[{place:#x}][URZ]"

    def parse(self, text: str) -> Values | None:
        head, bracket, tail = text.strip().rpartition("[")
        return super().parse(f"{head}[0x0]" if bracket and tail == "URZ]" else text)


_LDCU = (
    Form("LDCU", 0x7AC, SYSTEM, VARIABLE, (_LOADED, _FirstWord("B", place=_BYTES)), (_SIZE,), uniform=True,
         fixed={bits[91]: 1, bits[31:24]: 255}),
    Form("LDCU", 0x7AC, SYSTEM, VARIABLE, (_LOADED, UniformConstant("B", place=_BYTES, index=bits[29:24], always=True)), (_SIZE,),
         uniform=True, fixed={bits[91]: 1}, variant="indexed"),
)  # fmt: skip
_COPIED = Predicate("Ps", bits[89:87], READ, inverted=bits[90], optional={"Ps": PT_INDEX, "Ps.not": 0})
_INTO = AddressOperand("shared", bits[23:16], bits[63:44], signed_alone=True)
_FROM = AddressOperand("address", bits[31:24], bits[43:32], uniform=_UR, descriptor=bits[76]).spelled_out()
_LDGSTS = Form(
    "LDGSTS", 0xFAE, MEMORY, NO_RESULT, (_INTO, _FROM, _COPIED),
    (
        Suffix(".E"),
        Modifier("ACCESS", bits[81], {0: ".BYPASS", 1: ""}),
        EVICT,
        Modifier("LTC", bits[73:72], {0: "", 1: ".LTC64B", 2: ".LTC128B", 3: ".LTC256B"}),
        Modifier("SIZE", bits[75:74], {0: "", 1: ".64", 2: ".128"}),
        Modifier("ZFILL", bits[82], {0: "", 1: ".ZFILL"}),
        COPY_ORDER,
    ),
    fixed={bits[91]: 1, bits[83]: 1},
)  # fmt: skip


def _named_sign(modifier: Modifier) -> Modifier:
    """A minimum says that it is of signed numbers, too."""
    return Modifier("U32", modifier.field.bits, {1: ".S32", 0: ".U32"}, default=1)


_CARRIES = ("IADD3", "IADD3.X", "UIADD3", "UIADD3.X")


def _without_ordered_stores(rows: Sequence[Form]) -> list[Form]:
    """The orders 13 to 15 of a store mean something else than SM86's."""

    def narrow(m: Modifier) -> Modifier:
        if m.name != "ORDER" or m.suffixes.get(4) != STORE_ORDER.suffixes[4]:
            return m
        return Modifier(m.name, m.field.bits, {c: text for c, text in m.suffixes.items() if c < 13})

    return [replace(form, modifiers=tuple(narrow(m) for m in form.modifiers)) for form in rows]


# fmt: off
SM120 = Difference("sm120", "sm90", (
    stems_gone("TEX", "TLD", "TLD4", "TXD", "TXQ", "TMML", "SULD", "SUST", "SURED", "SUATOM", "VABSDIFF", "VABSDIFF4"),
    gone("HFMA2.MMA", "IMMA.8816", "BRA:mask", "IMNMX", "ULDC", "LDGSTS", "REDG", *(f"{m}:{v}{way}" for m in ("ATOMG", "ATOM") for v in ("", "float-") for way in ("described", "added"))),
    without_constant_operands(),
    in_pipe(TENSOR, without_reuse("A", "M")),
    in_pipe(FP64, without_reuse("A", "B", "C")),
    operands(_CARRIES, carries_shown),
    suffixed(("BSSY", "BSYNC"), _CONVERGENT),
    suffixed(("BREAK",), _RELIABLE),
    _without_ordered_stores,
    modified(("VIMNMX",), _named_sign),
    added(*_LDCU, _LDGSTS,
          *_atomics((bits[63], bits[76], bits[75:73]), (bits[63], bits[90], bits[76:73]), bits[81], bits[62:40])),
    operands(_ADDED, never("address.base", 255)),
    everywhere(spelled_out),
    without_hidden("ur"),
    wide_uniform_registers(),
))
# fmt: on
SM121 = Difference("sm121", "sm120")

DIFFERENCES = {d.name: d for d in (SM80, SM89, SM90, SM120, SM121)}


def forms_of(target: str) -> list[Form]:
    """Every row of a target."""
    if not target:
        return all_forms()
    difference = DIFFERENCES[target]
    return difference.rows(forms_of(difference.base))
