"""Fixtures of the scheduler's tests: programs from listing lines, random ones, and what the checkers object to."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from coppelius.program.listing import listing_lines, parse_listing
from coppelius.program.program import Program
from coppelius.schedule.schedule import schedule

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "kernels"))  # the images' harness

_CONTROL = "[B------:R-:W-:-:S01]"


def parsed(lines: Sequence[str]) -> Program:
    """Lines with or without control words; a label is a line `name:`, its use `name` at a line's end."""
    places: dict[str, int] = {}
    rows: list[str] = []
    for line in lines:
        if line.endswith(":"):
            places[line[:-1]] = 16 * len(rows)
        else:
            rows.append(line)
    out = []
    for row in rows:
        words = row.rsplit(" ", 1)
        text = f"{words[0]} {places[words[1]]:#x}" if len(words) > 1 and words[1] in places else row
        out.append(text if text.startswith("[") else f"{_CONTROL} {text}")
    return parse_listing("\n".join([".target sm86", *out, ""]))


@pytest.fixture(scope="session")
def program_of() -> Callable[[str], Program]:
    """Text, an instruction or a label a line -> the program."""
    return lambda text: parsed([line.strip() for line in text.strip().splitlines()])


@pytest.fixture(scope="session")
def scheduled_lines(program_of: Callable[[str], Program]) -> Callable[..., list[str]]:
    """Text -> the listing lines of its schedule."""

    def lines(text: str, **options: bool) -> list[str]:
        program = program_of(text)
        return listing_lines(schedule(program, [{}] * len(program), **options)[0])

    return lines


# d, a, b: registers; q: an aligned quad; w, v: aligned pairs; p: a predicate; n: an offset
_PALETTE = (
    "IADD3 {d}, {a}, {b}, RZ",
    "FADD {d}, {a}, {b}",
    "FFMA {d}, {a}, {b}, {d}",
    "IMAD {d}, {a}, {b}, RZ",
    "IMAD.WIDE.U32 {w}, {a}, {b}, {v}",
    "HADD2 {d}, {a}, {b}",
    "HADD2.F32 {d}, -RZ, {a}.H0_H0",
    "LOP3.LUT {d}, {a}, {b}, RZ, 0xc0, !PT",
    "MOV {d}, {a}",
    "SEL {d}, {a}, {b}, {p}",
    "ISETP.LT.AND {p}, PT, {a}, {b}, PT",
    "MUFU.RCP {d}, {a}",
    "POPC {d}, {a}",
    "DADD {w}, {v}, {w}",
    "SHFL.BFLY PT, {d}, {a}, 0x1, 0x1f",
    "S2R {d}, SR_TID.X",
    "LDS {d}, [{a}+{n}]",
    "LDS.64 {w}, [{a}+{n}]",
    "STS [{a}+{n}], {b}",
    "LDG.E {d}, [{w}.64+{n}]",
    "LDG.E.128 {q}, [{w}.64+{n}]",
    "STG.E [{w}.64+{n}], {b}",
    "ULDC UR{u}, c[0x0][0x160]",
    "IADD3 {d}, {a}, UR{u}, RZ",
    "UIADD3 UR{u}, UR4, UR5, URZ",
    "HMMA.16816.F32 {q}, {q}, {w}, {q}",
    "BAR.SYNC.DEFER_BLOCKING 0x0",
)
_UNGUARDED = ("BAR", "U", "HMMA")


def random_lines(seed: int, count: int) -> list[str]:
    """Instructions of every latency class on few registers, guards, forward and backward branches."""
    pick = random.Random(seed)
    lines: list[str] = []
    for n in range(count):
        if pick.random() < 0.06:
            lines.append(f"L{n}:")
        shape = pick.choice(_PALETTE)
        wide = 2 * pick.randrange(6)
        names = {
            "d": f"R{pick.randrange(12)}",
            "a": f"R{pick.randrange(12)}",
            "b": f"R{pick.randrange(12)}",
            "q": f"R{4 * pick.randrange(3)}",
            "w": f"R{wide}",
            "v": f"R{2 * pick.randrange(6)}",
            "p": f"P{pick.randrange(3)}",
            "n": hex(4 * pick.randrange(1, 9)),
            "u": pick.choice((4, 5, 6)),
        }
        guard = f"@{pick.choice(('', '!'))}P{pick.randrange(3)} " if pick.random() < 0.2 else ""
        lines.append(("" if shape.startswith(_UNGUARDED) else guard) + shape.format(**names))
        if pick.random() < 0.05:
            lines.append(f"@P{pick.randrange(3)} BRA ?")
    labels = [line[:-1] for line in lines if line.endswith(":")] or ["L"]
    lines = [line.replace("?", pick.choice(labels)) for line in lines]
    return [*([] if "L" not in labels else ["L:"]), *lines, "EXIT"]


@pytest.fixture(scope="session")
def random_program() -> Callable[..., Program]:
    """(seed, count=40) -> a program whose control words say nothing."""
    return lambda seed, count=40: parsed(random_lines(seed, count))
