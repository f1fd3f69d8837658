"""How undefined bytes pass through one instruction: a register's mask has a bit for each of its four bytes.

In general a result is undefined, whole, where any byte of a source is.  Known better, because compiled code
counts on it: moves, selections and shuffles carry each byte; a permutation takes the bytes its selector names; a
logical operation is undefined only where the truth table lets an undefined bit through; a product with RZ is its
addend; a shift by whole bytes moves them; packing keeps its halves apart; an operand that selects a byte or a half
reads only that; P2R reads the predicates under its mask.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from coppelius.emulator.flight import Timed
from coppelius.emulator.group import LANES, Group
from coppelius.emulator.numerics import bitwise
from coppelius.emulator.operation import Operation
from coppelius.emulator.semantics.warp import shuffle_source
from coppelius.isa.access import Touch
from coppelius.isa.operands import RZ_INDEX
from coppelius.isa.slots import Register
from coppelius.isa.values import Immediate

Array = npt.NDArray[Any]
Masks = npt.NDArray[np.uint8]
Of = Callable[[Sequence[Touch]], Masks]

NONE: Masks = np.zeros((1, 1), np.uint8)
WHOLE = np.uint8(15)
# mask -> the bits of those bytes, and the same as 1 for each byte
BITS = np.array([sum(0xFF << 8 * k for k in range(4) if m >> k & 1) for m in range(16)], np.uint32)
_BY_SELECT = {f"B{k}": 1 << k for k in range(4)} | {"H0_H0": 3, "H0": 3, "H1_H1": 12, "H1": 12}


def passed(operation: Operation, t: Timed, reads: Sequence[Touch], part: Group, of: Of) -> Masks:
    """The result's mask, `[warps, 32]` or less, from those of what the instruction reads."""
    rule = _RULES.get(t.stem)
    if rule is not None:
        found = rule(operation, reads, part, of)
        if found is not None:
            return found
    return spread(of(reads))


def spread(mask: Masks) -> Masks:
    """Undefined, whole, where any byte is."""
    return NONE if not mask.any() else np.where(mask != 0, WHOLE, np.uint8(0))


def of_slot(reads: Sequence[Touch], name: str) -> list[Touch]:
    """The registers read through one operand."""
    return [r for r in reads if r.slot == name]


def _moved(operation: Operation, reads: Sequence[Touch], part: Group, of: Of) -> Masks | None:  # noqa: ARG001
    return of(reads)


def _select(operation: Operation, reads: Sequence[Touch], part: Group, of: Of) -> Masks | None:
    if operation.has("C"):
        return None
    a, b, p = (of(of_slot(reads, name)) for name in ("A", "B", "Ps"))
    return np.where(operation.predicate("Ps")(part), a, b) | spread(p)


def _shuffle(operation: Operation, reads: Sequence[Touch], part: Group, of: Of) -> Masks | None:
    data = np.broadcast_to(of(of_slot(reads, "A")), (part.count, LANES))
    source, _ = shuffle_source(operation.suffix("MODE"), operation.word("B")(part), operation.word("C")(part))
    source = np.broadcast_to(source, (part.count, LANES)).astype(np.intp)
    moved: Masks = np.take_along_axis(data, source, axis=1)
    return moved | spread(of([r for r in reads if r.slot != "A"]))


def _product(operation: Operation, reads: Sequence[Touch], part: Group, of: Of) -> Masks | None:  # noqa: ARG001
    """IMAD: with RZ for a factor, the addend as it is."""
    if operation.mnemonic != "IMAD" or len({r.slot for r in reads}) > 1:
        return None
    factors = (operation.slot(name) for name in "AB")
    if any(isinstance(s, Register) and operation.field(s.fields[0].name) == RZ_INDEX for s in factors):
        return of(of_slot(reads, "C"))
    return None


def _logic(operation: Operation, reads: Sequence[Touch], part: Group, of: Of) -> Masks | None:
    """Where flipping an unknown bit flips the result; of several unknown bits, any may let the others through."""
    unknown = [BITS[of(of_slot(reads, name))] for name in "ABC"]
    if not any(u.any() for u in unknown):
        return spread(of(reads))
    table = operation.field("LUT")
    a, b, c = (operation.integer(name)(part) for name in "ABC")
    plain = bitwise.lop3(a, b, c, table)
    out = unknown[0] & unknown[1] | unknown[0] & unknown[2] | unknown[1] & unknown[2]
    for k, flipped in enumerate(((~a, b, c), (a, ~b, c), (a, b, ~c))):
        x, y, z = flipped
        out = out | unknown[k] & (plain ^ bitwise.lop3(x, y, z, table))
    return _bytes(out) | spread(of([r for r in reads if r.slot not in "ABC"]))


def _bytes(bits: Array) -> Masks:
    """The bytes of each word that have a bit."""
    out = np.zeros(bits.shape, np.uint8)
    for k in range(4):
        out |= ((bits >> np.uint32(8 * k) & np.uint32(0xFF)) != 0).astype(np.uint8) << np.uint8(k)
    return out


def _permute(operation: Operation, reads: Sequence[Touch], part: Group, of: Of) -> Masks | None:
    """The same permutation of the unknown bits."""
    a, selector, c = (of(of_slot(reads, name)) for name in "ABC")
    if not a.any() and not c.any():
        return spread(selector)
    codes = operation.word("B")(part)
    return _bytes(bitwise.prmt(BITS[a], codes, BITS[c], operation.suffix("MODE") or "IDX")) | spread(selector)


def _shift(operation: Operation, reads: Sequence[Touch], part: Group, of: Of) -> Masks | None:
    """The same shift of the unknown bits; an unknown sign fills."""
    a, amount, c = (of(of_slot(reads, name)) for name in "ABC")
    if not a.any() and not c.any():
        return spread(amount)
    kind = operation.suffix("TYPE") or "S64"
    modes: dict[str, Any] = {
        "right": operation.suffix("SIDE") == "R",
        "signed": kind.startswith("S"),
        "wide": kind.endswith("64"),
        "wrap": "W" in operation.suffix("WRAP"),
        "take_high": operation.suffix("HI") == "HI",
    }
    return _bytes(bitwise.shf(BITS[a], operation.word("B")(part), BITS[c], **modes)) | spread(amount)


def _pack(operation: Operation, reads: Sequence[Touch], part: Group, of: Of) -> Masks | None:  # noqa: ARG001
    """F2FP: A above B, where it packs two."""
    if not operation.marked(".PACK_AB"):
        return None
    a, b = (spread(of(of_slot(reads, name))) for name in "AB")
    return (a & np.uint8(12)) | (b & np.uint8(3))


def _predicates(operation: Operation, reads: Sequence[Touch], part: Group, of: Of) -> Masks | None:  # noqa: ARG001
    if not isinstance(operation.slot("B"), Immediate):
        return None
    wanted = operation.field("B")
    return spread(of([r for r in reads if r.space not in ("P", "UP") or wanted >> r.number & 1]))


def _converted(operation: Operation, reads: Sequence[Touch], part: Group, of: Of) -> Masks | None:  # noqa: ARG001
    """Operands that name a byte or half of their register; the lowest is not named."""
    out, lowest = NONE, {"U8": 1, "S8": 1, "U16": 3, "S16": 3}.get(operation.suffix("SRC"))
    for name in dict.fromkeys(r.slot for r in reads):
        mask = of(of_slot(reads, name))
        chosen = _BY_SELECT.get(operation.selected(name), lowest) if operation.has(name) else None
        out = out | (mask if chosen is None else mask & np.uint8(chosen))
    return spread(out)


_RULES: dict[str, Callable[[Operation, Sequence[Touch], Group, Of], Masks | None]] = {
    "MOV": _moved,
    "UMOV": _moved,
    "SEL": _select,
    "FSEL": _select,
    "USEL": _select,
    "SHFL": _shuffle,
    "IMAD": _product,
    "LOP3": _logic,
    "ULOP3": _logic,
    "PRMT": _permute,
    "UPRMT": _permute,
    "SHF": _shift,
    "USHF": _shift,
    "F2FP": _pack,
    "P2R": _predicates,
    "UP2UR": _predicates,
    **dict.fromkeys(("I2F", "I2FP", "I2I", "F2F", "F2I", "HADD2", "HMUL2", "HFMA2"), _converted),
}
