"""The latency grid: whole, witnessed, and what the facts say where they say it."""

import pytest

from coppelius.isa import latency
from coppelius.isa.access import Touch, reads, writes
from coppelius.isa.form import FIXED, NO_RESULT, VARIABLE, Encoding
from coppelius.isa.parser import parse
from coppelius.isa.slots import READ, WRITE
from coppelius.isa.table import sm86

Op = tuple[Encoding, list[int]]

# classes whose results a scoreboard signals: rows of WAW and WAR columns only
SIGNALLED = {"queue", "fp64", "queue.p", "queue.u", "queue.up"}


def touches(encoding: Encoding, mode: str) -> list[Touch]:
    return [Touch(a.slot, a.space, 0) for a in encoding.accesses if a.mode == mode]


def operation(text: str) -> Op:
    encoding, values = parse(sm86(), text, 0)
    return encoding, list(values)


def test_every_cell_has_a_witness() -> None:
    for grid in (latency.RAW, latency.WAW, latency.WAR):
        assert {cell.witness for cell in grid.values()} <= set("mpa")
        assert all(cell.cycles >= 1 for cell in grid.values())


def test_every_encoding_has_its_place() -> None:
    """Each register touched by each encoding is a row or a column of the grids, or is waited for."""
    rows = {row for row, _ in latency.RAW}
    columns = {column for _, column in latency.RAW}
    second = {column for _, column in latency.WAW}
    problems = []
    for encoding in sm86().encodings:
        values = encoding.defaults
        for written in touches(encoding, WRITE):
            if written.space == "B":
                continue
            kind = latency.producer_class(encoding, values, written)
            if kind not in rows | SIGNALLED or kind not in second | {"queue.up"}:
                problems.append(f"{encoding.name} writes {written.slot} as {kind}")
            if (kind in SIGNALLED) != (encoding.latency == VARIABLE):
                problems.append(f"{encoding.name} is {encoding.latency} and writes {written.slot} as {kind}")
        for read in touches(encoding, READ):
            kind = latency.consumer_class(encoding, values, read)
            if read.space != "B" and kind not in columns:
                problems.append(f"{encoding.name} reads {read.slot} as {kind}")
    assert not problems, "\n".join(problems)


def test_late_reads_are_of_what_waits_in_a_queue() -> None:
    for encoding in sm86().encodings:
        for read in touches(encoding, READ):
            late = latency.reads_late(encoding, encoding.defaults, read)
            assert not (late and encoding.latency == FIXED), encoding.name
            assert not (late and read.space != "R"), encoding.name
            if encoding.pipe in ("memory", "shared") and encoding.latency in (VARIABLE, NO_RESULT):
                assert late or read.space != "R", encoding.name


# fmt: off
FACTS = [
    # producer                                register   consumer                                    cycles
    ("IADD3 R4, R1, R2, RZ",                  ("R", 4),  "IADD3 R5, R4, R2, RZ",                          4),
    ("FFMA R4, R1, R2, R3",                   ("R", 4),  "STG.E [R8.64], R4",                             5),
    ("IMAD.WIDE R4, R1, R2, RZ",              ("R", 5),  "IMAD.HI R6, R5, R2, RZ",                        6),
    ("HMMA.16816.F32 R4, R8, R12, R4",        ("R", 4),  "FADD R1, R4, R2",                              24),
    ("HMMA.16816.F32 R4, R8, R12, R4",        ("R", 4),  "STS [R1], R4",                                 23),
    ("HMMA.16816.F32 R4, R8, R12, R4",        ("R", 4),  "MUFU.EX2 R1, R4",                              22),
    ("HMMA.16816.F32 R4, R8, R12, R4",        ("R", 4),  "HMMA.16816.F32 R4, R8, R12, R4",               24),
    ("HMMA.1688.F32 R4, R8, R12, R4",         ("R", 4),  "FADD R1, R4, R2",                              16),
    ("HMMA.1688.F32.TF32 R4, R8, R12, R4",    ("R", 4),  "FADD R1, R4, R2",                              24),
    ("IMMA.16816.S8.S8 R4, R8.ROW, R12.COL, R4", ("R", 4), "IADD3 R1, R4, R2, RZ",                       16),
    ("FADD R4, R1, R2",                       ("R", 4),  "HMMA.16816.F32 R8, R4, R12, R8",                7),
    ("FADD R4, R1, R2",                       ("R", 4),  "DADD R8, R4, R12",                              6),
    ("IMAD.WIDE R4, R1, R2, RZ",              ("R", 4),  "DADD R8, R4, R12",                              8),
    ("ISETP.GE.AND P0, PT, R1, R2, PT",       ("P", 0),  "@P0 HMMA.16816.F32 R4, R8, R12, R4",           13),
    ("HSETP2.GE.AND P0, PT, R1, R2, PT",      ("P", 0),  "SEL R5, R1, R2, P0",                            5),
    ("UIADD3 UR4, UR5, UR6, URZ",             ("UR", 4), "IADD3 R1, R2, UR4, RZ",                         6),
    ("UIADD3 UR4, UR5, UR6, URZ",             ("UR", 4), "UIADD3 UR7, UR4, UR6, URZ",                     4),
    ("UIADD3 UR4, UR5, UR6, URZ",             ("UR", 4), "LDG.E R1, [R2.64]",                             9),
    ("UIADD3 UR4, UR5, UR6, URZ",             ("UR", 4), "FADD R1, R2, cx[UR4][0x0]",                    12),
    ("UIADD3 UR4, UR5, UR6, URZ",             ("UR", 4), "UMOV UR7, UR4",                                 7),
    ("ULDC.64 UR4, c[0x0][0x118]",            ("UR", 4), "IADD3 R1, R2, UR4, RZ",                         2),
    ("UISETP.GE.AND UP0, UPT, UR4, UR5, UPT", ("UP", 0), "@UP0 UIADD3 UR4, UR5, UR6, URZ",               11),
    ("MUFU.RCP R4, R1",                       ("R", 4),  "FADD R1, R4, R2",                               0),
]
# fmt: on


@pytest.mark.parametrize(("producer", "register", "consumer", "cycles"), FACTS)
def test_read_after_write(producer: str, register: tuple[str, int], consumer: str, cycles: int) -> None:
    first, second = operation(producer), operation(consumer)
    written = next(t for t in writes(*first) if t[1:] == register)
    read = next(t for t in reads(*second) if t[1:] == register)
    assert latency.raw_cycles(first, written, second, read) == cycles
