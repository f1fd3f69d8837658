"""The half format of a program: written in f16, brought to bf16 instruction for instruction.

SM86 has bf16 forms of HFMA2, HMNMX2, HMMA and the packing F2FP only.  Where the same operation does not
exist, it is what compiled code uses: a sum is HFMA2 with ones, a product HFMA2 with minus zero, a low
half widens by a multiply with 2^16, a high half by a mask.  What has no counterpart is refused by name.

A replacement on another pipe may need other distances: only the stalls between it and its neighbours
grow, every other control word stays.
"""

from __future__ import annotations

import re

from coppelius.isa.parser import parse
from coppelius.isa.printer import texts
from coppelius.isa.refusal import Refusal
from coppelius.isa.word import WORD_BYTES
from coppelius.program.listing import listing_text, parse_listing
from coppelius.program.program import Instruction, Program
from coppelius.schedule.schedule import retime

FORMATS = ("bf16", "f16")

_REGISTER = r"[-|]*(?:RZ|R\d+)(?:\.H[01]_H[01])?[|]?(?:\.reuse)?(?:\.H[01]_H[01])?"


def _rule(pattern: str, result: str) -> tuple[re.Pattern[str], str]:
    return re.compile(pattern.replace("<r>", _REGISTER)), result


# f16 text -> bf16 text, the first that matches (facts 2.4: how compiled code writes each)
# fmt: off
_RULES = [
    _rule(r"F2FP\.(RELU\.)?PACK_AB (.+)",                       r"F2FP.\1BF16.PACK_AB \2"),
    _rule(r"HADD2\.F32 (<r>), -RZ, (R\d+(?:\.reuse)?)\.H0_H0",  r"IMAD.U32 \1, \2, 0x10000, RZ"),
    _rule(r"HADD2\.F32 (<r>), -RZ, (R\d+(?:\.reuse)?)\.H1_H1",  r"LOP3.LUT \1, \2, 0xffff0000, RZ, 0xc0, !PT"),
    _rule(r"HADD2 (<r>), (<r>), (<r>)",                         r"HFMA2.BF16_V2 \1, \2, 1, 1, \3"),
    _rule(r"HMUL2 (<r>), (<r>), (<r>)",                         r"HFMA2.BF16_V2 \1, \2, \3, -RZ.H0_H0"),
    _rule(r"HFMA2(\.RELU)? (.+)",                               r"HFMA2.BF16_V2\1 \2"),
    _rule(r"HMNMX2(\.NAN|\.XORSIGN)? (.+)",                     r"HMNMX2.BF16_V2\1 \2"),
    _rule(r"HMMA\.(16816|1688)\.F32 (.+)",                      r"HMMA.\1.F32.BF16 \2"),
]
# fmt: on
# mnemonics whose meaning depends on the half format
_HALVES = re.compile(r"^(?:HADD2|HMUL2|HFMA2|HMNMX2|HSETP2|HSET2|HMMA|F2FP)\b|\.F16\b")
_BF16 = re.compile(r"\.BF16\b|\.BF16_V2\b")


def with_half_format(program: Program, half: str) -> tuple[Program, list[int]]:
    """The program in that half format, and each instruction's ordinal in the input.

    Refuses an unknown format, a program that is not in f16, and an instruction without a counterpart.
    """
    if half not in FORMATS:
        raise Refusal(f"half format {half!r} is unknown; known: {', '.join(FORMATS)}")
    rows = list(program)
    lines = texts(program.decoded)
    for ordinal, line in enumerate(lines):
        if _BF16.search(_bare(line)[1].split(" ")[0]):
            raise Refusal(f"instruction {ordinal} ({line}) is already bf16; kernels are written in f16")
    if half == "f16":
        return program, list(range(len(program)))
    changed: set[int] = set()
    for ordinal, line in enumerate(lines):
        if _HALVES.search(_bare(line)[1]):
            old = rows[ordinal]
            rows[ordinal] = _counterpart(program, old, line, ordinal)
            if rows[ordinal].encoding.pipe != old.encoding.pipe:
                changed.add(ordinal)
    return _retime(Program.of(rows, program.table), changed), list(range(len(rows)))


def _bare(line: str) -> tuple[str, str]:
    """(guard with its space, the rest)."""
    guard, space, rest = line.partition(" ") if line.startswith("@") else ("", "", line)
    return guard + space, rest


def _counterpart(program: Program, row: Instruction, line: str, ordinal: int) -> Instruction:
    guard, text = _bare(line)
    for pattern, result in _RULES:
        match = pattern.fullmatch(text)
        if match is None:
            continue
        try:
            encoding, values = parse(program.table, guard + match.expand(result), ordinal * WORD_BYTES)
        except Refusal as refusal:
            raise Refusal(f"instruction {ordinal} ({line}): no bf16 counterpart: {refusal}") from None
        return Instruction(encoding, tuple(values)).with_control(row.control)
    raise Refusal(f"instruction {ordinal} ({line}): no bf16 counterpart on {program.table.target}")


def _retime(program: Program, changed: set[int]) -> Program:
    """Raise the stalls that replacements on another pipe need; others stay."""
    if not changed:
        return program
    retimed, missing = retime(program, frozenset(changed))
    if missing:
        raise Refusal(f"bf16 needs cycles before instructions {missing} that no stall can give")
    return retimed


def halve(listing: str, half: str) -> tuple[str, list[int]]:
    """The halve step: a listing in f16 to one in `half`, and each instruction's ordinal in the input."""
    program, origin = with_half_format(parse_listing(listing), half)
    return listing_text(program), origin
