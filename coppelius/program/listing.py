"""A program as text, exact both ways: `.target`, then a line an instruction.

    [B0-----:R-:W2:Y:S04] LDG.E R5, [R2.64] {ur=4}

The control word, nvdisasm's own text, and in braces what that text hides.  Branch targets are byte
addresses, the program starting at 0.  Comments and blank lines are not part of a listing: equal
programs have equal listings, byte for byte.
"""

from __future__ import annotations

from functools import lru_cache

from coppelius.isa.control import control_text, parse_control
from coppelius.isa.parser import parse
from coppelius.isa.printer import texts
from coppelius.isa.refusal import Refusal
from coppelius.isa.table import Table, table_of
from coppelius.isa.word import WORD_BYTES
from coppelius.program.program import Instruction, Program

_CONTROL_WIDTH = len("[B------:R-:W-:-:S00]")


def listing_lines(program: Program) -> list[str]:
    """The line of each instruction, without the header."""
    first = program.table.encodings[0].column
    names = ("stall", "keep", "write_barrier", "read_barrier", "wait")
    columns = [program.values[:, first[name]].tolist() for name in names]
    controls = [control_text(*row) for row in zip(*columns, strict=True)]
    return [f"{c} {t}" for c, t in zip(controls, texts(program.decoded), strict=True)]


def listing_text(program: Program) -> str:
    """The whole listing, newline at the end."""
    return "\n".join([f".target {program.table.target}", *listing_lines(program), ""])


# a step often reads what the one before it read, and gave back as it was
@lru_cache(maxsize=4)
def parse_listing(text: str) -> Program:
    """Inverse of `listing_text`; a refusal names the line."""
    lines = text.splitlines()
    table = _table(lines)
    rows = []
    for number, line in enumerate(lines[1:], 2):
        try:
            rows.append(_parse_line(table, line, (number - 2) * WORD_BYTES))
        except Refusal as refusal:
            raise Refusal(f"line {number}: {refusal}") from None
    return Program.of(rows, table)


def _table(lines: list[str]) -> Table:
    header = lines[0].split() if lines else []
    if header[:1] != [".target"] or len(header) != 2:
        raise Refusal("line 1: a listing begins with its target, as `.target sm86`")
    try:
        return table_of(header[1])
    except Refusal as refusal:
        raise Refusal(f"line 1: {refusal}") from None


def _parse_line(table: Table, line: str, address: int) -> Instruction:
    control = _control(line[:_CONTROL_WIDTH])
    encoding, values = parse(table, line[_CONTROL_WIDTH:].strip(), address)
    return Instruction(encoding, tuple(values)).with_control(control)


_control = lru_cache(maxsize=65536)(parse_control)
