"""One rule for an instruction that its guard skips, and three that hold to it: check, schedule, strict mode.

It passes its queue all the same, so a wait for it covers earlier ones.  Witnesses in shipped code, each the only
cover of its register: `LDS R7; @P1 LDS R2 (SB0); wait SB0; STG R7` (nvjpeg), `@!P2 STG [R192]; @!P0 STG [R194] (SB2);
wait SB2; MOV R193` (a quantised GEMM).  Under `!PT` it covers nothing: nowhere in the corpus is that relied on.
"""

from collections.abc import Callable

import numpy as np
import pytest

from coppelius.check.hazard import Hazard
from coppelius.emulator.launch import launch
from coppelius.emulator.memory import Memory
from coppelius.emulator.parameters import pack_naturally
from coppelius.isa.control import NO_BARRIER
from coppelius.program.listing import parse_listing
from coppelius.program.program import Program
from coppelius.schedule.schedule import schedule

START = [
    "[B------:R-:W0:-:S02] S2R R0, SR_TID.X",
    "[B------:R-:W-:-:S05] MOV R4, 0x4",
    "[B0-----:R-:W-:-:S05] IMAD.WIDE.U32 R2, R0, R4, c[0x0][0x160]",
    "[B------:R-:W-:-:S05] SHF.L.U32 R9, R0, 0x2, RZ",
    "[B------:R-:W-:Y:S13] ISETP.{test}.AND P0, PT, RZ, RZ, PT",
]
END = "[B------:R-:W-:Y:S05] EXIT"

# what needs a cover, the later one that may be skipped, who relies on it
# fmt: off
PAIRS = {
    "late read": (
        "[B------:R-:W-:-:S04] STG.E [R2], R5",
        "[B------:R-:W1:-:S02] {guard} LDG.E R6, [R2]",
        "[B-1----:R-:W-:-:S05] MOV R5, RZ"),
    "late read by a read barrier": (
        "[B------:R-:W-:-:S04] STG.E [R2], R5",
        "[B------:R1:W-:-:S02] {guard} STS [R9], R4",
        "[B-1----:R-:W-:-:S05] MOV R5, RZ"),
    "result": (
        "[B------:R-:W-:-:S04] LDS R5, [R9]",
        "[B------:R-:W1:-:S02] {guard} LDS R6, [R9]",
        "[B-1----:R-:W-:-:S05] IADD3 R7, R5, 0x1, RZ"),
    "result of a slow unit": (
        "[B------:R-:W-:-:S04] MUFU.RCP R5, R4",
        "[B------:R-:W1:-:S02] {guard} MUFU.RCP R6, R4",
        "[B-1----:R-:W-:-:S05] FADD R7, R5, R4"),
    "counted": (
        "[B------:R-:W1:-:S04] LDS R5, [R9]\n[B------:R-:W1:-:S04] {guard} LDS R6, [R9]",
        "[B------:R-:W-:Y:S04] DEPBAR.LE SB1, 0x1",
        "[B------:R-:W-:-:S05] IADD3 R7, R5, 0x1, RZ"),
}
# fmt: on
TAKEN, SKIPPED, NEVER = ("@P0", "EQ"), ("@P0", "NE"), ("@!PT", "NE")


def lines(pair: str, guard: str, test: str) -> list[str]:
    return "\n".join([*START, *PAIRS[pair], END]).format(guard=guard, test=test).splitlines()


def strictly(text: list[str]) -> list[str]:
    """What strict mode finds in one block of 64 threads."""
    memory = Memory()
    code = parse_listing("\n".join([".target sm86", *text, ""])).encode()
    values = pack_naturally([np.zeros(64, np.uint32)], memory)
    report = launch(
        code, grid=(1, 1, 1), block=(64, 1, 1), parameters=values, memory=memory, mode="strict", collect=True,
        shared_bytes=256,
    )  # fmt: skip
    return [finding.rule for finding in report.findings if finding.rule != "initcheck"]


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("way", [TAKEN, SKIPPED])
def test_a_skipped_one_covers_earlier_ones(
    pair: str, way: tuple[str, str], hazards: Callable[..., list[Hazard]]
) -> None:
    text = lines(pair, *way)
    assert not hazards("\n".join(text))
    assert strictly(text) == []


@pytest.mark.parametrize("pair", PAIRS)
def test_one_that_never_runs_covers_nothing(pair: str, hazards: Callable[..., list[Hazard]]) -> None:
    text = lines(pair, *NEVER)
    assert [h.rule for h in hazards("\n".join(text))]
    assert strictly(text)


@pytest.mark.parametrize("pair", [p for p in PAIRS if p != "counted"])
@pytest.mark.parametrize(("way", "alone"), [(TAKEN, True), (SKIPPED, True), (NEVER, False)])
def test_the_scheduler_relies_on_it_as_well(pair: str, way: tuple[str, str], alone: bool) -> None:
    """Where the later one is waited for anyway, the earlier one raises nothing; one under `!PT` won't do for it."""
    first, second, last = PAIRS[pair]
    register = "R6" if "R6" in second else "R4"
    # the same place overwrites or reads what the later one needs
    also = f"[B------:R-:W-:-:S05] MOV {register}, RZ"
    text = "\n".join([*START, first, second, also, last, END]).format(guard=way[0], test=way[1])
    program = parse_listing(f".target sm86\n{text}\n")
    bare = Program.of([row.with_fields({"wait": 0, "write_barrier": 7, "read_barrier": 7}) for row in program])
    done, _ = schedule(bare, [{}] * len(bare))
    raised = {done[len(START)][name] for name in ("write_barrier", "read_barrier")}
    assert (raised == {NO_BARRIER}) is alone


@pytest.mark.parametrize("pair", ["late read", "result", "result of a slow unit"])
@pytest.mark.parametrize(("stall", "covered"), [(0, True), (15, False)])
def test_a_stall_of_zero_waits_for_all_of_it(
    pair: str, stall: int, covered: bool, hazards: Callable[..., list[Hazard]]
) -> None:
    first, _, last = PAIRS[pair]
    alone = first.replace("-:S04", f"Y:S{stall:02d}")
    text = "\n".join([*START, alone, last.replace("B-1-", "B---"), END]).format(test="EQ").splitlines()
    assert (not hazards("\n".join(text))) is covered
    assert (not strictly(text)) is covered
