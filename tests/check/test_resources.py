"""Registers, half format, ends and shared bytes against a declaration, in both directions."""

from collections.abc import Callable
from typing import Any

import pytest

Verdict = Callable[..., dict[str, Any]]

END = "[B------:R-:W-:Y:S05] EXIT"


def program(*texts: str) -> str:
    """Spaced far enough apart that only resources are judged."""
    return "\n".join([*(f"[B012345:R0:W1:Y:S15] {text}" for text in texts), END])


def rules(verdict: dict[str, Any]) -> list[str]:
    return [f"{h['rule']} {h['ordinal']}" for h in verdict["hazards"]]


def unbounded(verdict: dict[str, Any]) -> int:
    """Notes on shared accesses whose addresses are not bounded."""
    return sum(note["rule"] == "shared bytes" for note in verdict["notes"])


# fmt: off
DEMANDS = [
    # text                                    general uniform predicates barriers
    ("FADD R4, R1, R2",                            5, 0, 0, 0),
    ("FADD RZ, R1, RZ",                            2, 0, 0, 0),
    ("LDS.128 R4, [R1]",                           8, 0, 0, 0),
    ("LDG.E R4, [R8.64]",                         10, 6, 0, 0),
    ("IMAD.WIDE R4, R1, R2, R6",                   8, 0, 0, 0),
    ("@P5 IADD3 R0, P2, R1, R2, RZ",               3, 0, 6, 0),
    ("BSSY B3, 0x10",                              0, 0, 0, 4),
]
# fmt: on


@pytest.mark.parametrize(("text", "general", "uniform", "predicates", "barriers"), DEMANDS)
def test_demand(text: str, general: int, uniform: int, predicates: int, barriers: int, verdict_of: Verdict) -> None:
    demand = verdict_of(program(text))["demand"]
    assert (demand["general"], demand["uniform"], demand["predicates"], demand["barriers"]) == (
        general, uniform, predicates, barriers,
    )  # fmt: skip


def test_two_registers_are_the_hardwares(verdict_of: Verdict) -> None:
    text = program("FADD R5, R1, R2")
    assert rules(verdict_of(text, registers=8)) == []
    assert rules(verdict_of(text, registers=None)) == []
    short = verdict_of(text, registers=7)
    assert rules(short) == ["registers 0"]
    assert (short["hazards"][0]["register"], short["checks"]["resources"]) == ("R5", "refused")


def test_the_last_usable_register_is_r252(verdict_of: Verdict) -> None:
    assert rules(verdict_of(program("FADD R252, R1, R2"), registers=255)) == []
    assert rules(verdict_of(program("FADD R253, R1, R2"))) == ["registers 0"]


HALF = ["HADD2 R4, R1, R2", "HMUL2 R4, R1, R2", "HFMA2 R4, R1, R2, R3", "HMNMX2 R4, R1, R2, PT", "MUFU.EX2.F16 R4, R1"]
BRAIN = ["HFMA2.BF16_V2 R4, R1, R2, R3", "HMNMX2.BF16_V2 R4, R1, R2, PT"]
NEITHER = ["FADD R4, R1, R2", "HFMA2 R4, -RZ, RZ, 1, 1", "PRMT R4, R1, 0x5410, R2"]


@pytest.mark.parametrize(("texts", "half"), [(HALF, "f16"), (BRAIN, "bf16"), (NEITHER, None)])
def test_half_format(texts: list[str], half: str | None, verdict_of: Verdict) -> None:
    for declared in ("f16", "bf16"):
        expected = [] if half in (None, declared) else [f"half format {n}" for n in range(len(texts))]
        assert rules(verdict_of(program(*texts), half=declared)) == expected
    assert rules(verdict_of(program(*texts))) == []


def test_every_path_ends(verdict_of: Verdict) -> None:
    assert rules(verdict_of("[B------:R-:W-:Y:S05] @P0 EXIT")) == ["end 0"]
    # what lies after the last EXIT is padding
    assert rules(verdict_of(f"{END}\n[B------:R-:W-:Y:S00] BRA 0x10\n[B------:R-:W-:Y:S00] NOP")) == []


# fmt: off
SHARED = [
    # what is known of the address                    access                   bytes inside proved
    ((),                                              "LDS R4, [0x20]",           0x24, 0x24),
    ((),                                              "STS.128 [0x20], R4",       0x30, 0x30),
    (("MOV R1, 0x40",),                               "LDS R4, [R1+0x8]",         0x4c, 0x4c),
    (("S2R R1, SR_TID.X", "IMAD.SHL.U32 R1, R1, 0x4, RZ"), "STS [R1], R4",        1, 0x200),
    (("S2R R1, SR_TID.X",),                           "STS [R1.X4+0x10], R4",     0x11, 0x210),
    (("S2R R1, SR_TID.X", "LOP3.LUT R1, R1, 0x1f, RZ, 0xc0, !PT"), "STS [R1.X4], R4", 1, 0x80),
    (("S2R R1, SR_TID.X", "SHF.R.U32.HI R1, RZ, 0x5, R1"), "STS [R1.X4], R4",     1, 0x10),
    (("S2R R1, SR_LANEID", "LEA R1, R1, 0x100, 0x4"), "STS.128 [R1], R4",         0x101, 0x300),
]
# fmt: on


@pytest.mark.parametrize(("known", "access", "least", "proved"), SHARED)
def test_shared_bytes(known: tuple[str, ...], access: str, least: int, proved: int, verdict_of: Verdict) -> None:
    """`proved` bytes are enough and known to be; below `least` no address can be inside."""
    text = program(*known, access)
    enough = verdict_of(text, shared_bytes=proved, block_x=128)
    assert (rules(enough), enough["shared_bytes"], unbounded(enough)) == ([], proved, 0)
    if least > 1:
        assert rules(verdict_of(text, shared_bytes=least - 1, block_x=128)) == [f"shared bytes {len(known)}"]
    if proved > least:
        between = verdict_of(text, shared_bytes=proved - 1, block_x=128)
        assert (rules(between), unbounded(between)) == ([], 1)


def test_an_unknown_address_is_only_a_note(verdict_of: Verdict) -> None:
    unknown = verdict_of(program("STS [R1], R4"), shared_bytes=4)
    assert (rules(unknown), unbounded(unknown)) == ([], 1)


def test_no_shared_bytes_means_no_shared_access(verdict_of: Verdict) -> None:
    assert rules(verdict_of(program("STS [R1], R4"), shared_bytes=0)) == ["shared bytes 0"]
    assert rules(verdict_of(program("LDSM.16.M88.4 R4, [R1]"), shared_bytes=0)) == ["shared bytes 0"]
    # the filler before LDGSTS touches nothing
    assert rules(verdict_of(program("@!PT LDS RZ, [RZ]"), shared_bytes=0)) == []


def test_a_counter_in_a_loop_is_given_up(verdict_of: Verdict) -> None:
    text = "\n".join([
        "[B------:R-:W-:Y:S15] MOV R1, 0x0",
        "[B------:R0:W-:Y:S15] STS [R1], R4",
        "[B0-----:R-:W-:Y:S15] IADD3 R1, R1, 0x4, RZ",
        "[B------:R-:W-:Y:S05] @P0 BRA 0x10",
        END,
    ])  # fmt: skip
    verdict = verdict_of(text, shared_bytes=64)
    assert (unbounded(verdict), verdict["accepted"]) == (1, True)
