"""Constants: where bank 0 keeps its words on another target, and constant operands as uniform registers.

SM86 reads a constant bank as an operand of almost any instruction; SM120 does not, and the compiler for SM90 avoids it.
The form with a uniform register exists for the same instructions and the same place, so each distinct constant is
loaded once, at the entry, into uniform registers that the program does not use: two adjacent words as one pair.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from coppelius.isa.form import Encoding
from coppelius.isa.refusal import Refusal
from coppelius.isa.slots import Slot
from coppelius.isa.targets.layout import DOUBLE_WORDS, Layout
from coppelius.isa.values import BindlessConstant, ConstantOperand
from coppelius.program.program import Instruction

WORD = 4
LOADED_BYTES = {0: 1, 1: 1, 2: 2, 3: 2, 5: 8}  # by SIZE of LDC and ULDC; else a word


@dataclass(frozen=True, order=True)
class Constant:
    """`words` words of a bank from an offset on, as the target keeps them."""

    bank: int
    offset: int
    words: int = 1


def moved_offset(source: Layout, target: Layout, bank: int, offset: int, size: int, what: str) -> int:
    """Where the target keeps those `size` bytes of a bank; refuses what bank 0 of the target does not hold as one."""
    if bank != 0 or source.words == target.words:
        return offset
    first = _moved_byte(source, target, offset, what)
    last = offset + size - 1
    if _moved_byte(source, target, last, what) - first != last - offset:
        raise Refusal(f"{what}: {target.target} does not keep the {size} bytes at c[0x0][{offset:#x}] side by side")
    if offset % size == 0 and first % size:
        raise Refusal(f"{what}: {target.target} keeps c[0x0][{offset:#x}] at {first:#x}, no multiple of {size}")
    return first


def _moved_byte(source: Layout, target: Layout, offset: int, what: str) -> int:
    """Where the target keeps that byte of bank 0; refuses one that has no known place."""
    if offset >= source.parameters:
        return offset - source.parameters + target.parameters
    for meaning, place in source.words.items():
        size = 8 if meaning in DOUBLE_WORDS else WORD
        if place <= offset < place + size:
            if meaning not in target.words or (meaning == "shared window" and target.reserved != source.reserved):
                instead = "; use loads and stores of that space" if "window" in meaning else ""
                raise Refusal(f"{what}: {target.target} keeps no {meaning} in constant bank 0{instead}")
            return target.words[meaning] + offset - place
    raise Refusal(f"{what}: c[0x0][{offset - offset % WORD:#x}] has no known place on {target.target}")


def constant_slot(encoding: Encoding) -> Slot | None:
    """The operand that is a constant, if there is one; refuses a bank that a register names."""
    for slot in encoding.operands:
        if isinstance(slot, BindlessConstant):
            raise Refusal(f"{encoding.name}: a constant bank named by a register cannot be lowered")
        if isinstance(slot, ConstantOperand):
            return slot
    return None


def constant_of(row: Instruction, slot: Slot, source: Layout, target: Layout, words: int) -> Constant:
    """What that operand reads, as the target keeps it."""
    packed = row[slot.name]
    bank, place = packed >> 14, packed & 0x3FFF
    offset = (place - (place >> 13 << 14)) * WORD
    size, name = WORD * words, row.encoding.name
    if offset % size:
        raise Refusal(f"{name}: c[{bank:#x}][{offset:#x}] is no multiple of {size}, and a pair is loaded as one")
    return Constant(bank, moved_offset(source, target, bank, offset, size, name), words)


def used_uniform_registers(rows: Iterable[Instruction]) -> set[int]:
    """Every uniform register that the program touches."""
    return {t.number for row in rows for t in (*row.reads, *row.writes) if t.space == "UR"}


def place_constants(
    wanted: Iterable[Constant], used: set[int], limit: int
) -> tuple[dict[Constant, int], list[Constant]]:
    """(each constant's first uniform register, the loads that fill them), in registers that are free.

    Adjacent words share a load where they make an aligned pair.  Refuses where the registers do not suffice.
    """
    loads = _loads(wanted)
    free = [n for n in range(limit) if n not in used]
    at: dict[Constant, int] = {}
    for load in sorted(loads, key=lambda c: (-c.words, c)):
        first = next((n for n in free if n % load.words == 0 and all(n + k in free for k in range(load.words))), None)
        if first is None:
            few = f"{len(loads)} constants need more uniform registers than the {len(free)} that are free"
            raise Refusal(f"{few}; load some of them by LDC")
        free = [n for n in free if not first <= n < first + load.words]
        at[load] = first
    places = {}
    for constant in wanted:
        load = next(c for c in at if _holds(c, constant))
        places[constant] = at[load] + (constant.offset - load.offset) // WORD
    return places, sorted(at, key=lambda c: at[c])


def _holds(load: Constant, constant: Constant) -> bool:
    """Whether the load gives the constant, in registers aligned as it needs."""
    inside = (
        load.offset <= constant.offset and constant.offset + WORD * constant.words <= load.offset + WORD * load.words
    )
    return load.bank == constant.bank and inside and (constant.offset - load.offset) // WORD % constant.words == 0


def _loads(wanted: Iterable[Constant]) -> list[Constant]:
    """Pairs as they are wanted; single words, two by two where they lie in one aligned pair."""
    pairs = {c for c in wanted if c.words > 1}
    singles = sorted({c for c in wanted if c.words == 1 and not any(_holds(p, c) for p in pairs)})
    out = sorted(pairs)
    while singles:
        first = singles.pop(0)
        after = Constant(first.bank, first.offset + WORD)
        if first.offset % (2 * WORD) == 0 and singles[:1] == [after]:
            singles.pop(0)
            out.append(Constant(first.bank, first.offset, 2))
        else:
            out.append(first)
    return out


def load_fields(constant: Constant, register: int) -> dict[str, int]:
    """The fields of its load."""
    return {"D": register, "B.bank": constant.bank, "B.offset": constant.offset, "SIZE": 3 + constant.words}
