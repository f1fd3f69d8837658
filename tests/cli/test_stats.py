"""Figures of an image against what is counted by hand."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from coppelius.cli import stats
from coppelius.cli.commands import run
from coppelius.emulator.traffic import Access
from coppelius.program.cycles import modelled_cycles
from coppelius.program.listing import parse_listing
from coppelius.program.program import Program

DECLARED: dict[str, Any] = {"registers": 40, "block_x": 256, "shared_bytes": 0}


def program(*lines: str) -> Program:
    return parse_listing(".target sm86\n" + "".join(f"[B------:R-:W-:-:S04] {line}\n" for line in lines))


def traffic(*lines: str) -> dict[str, int]:
    return stats.traffic(list(program(*lines)))


def test_bytes_by_space_and_direction() -> None:
    assert traffic(
        "LDG.E.128 R4, [R2.64]",
        "LDG.E.U16 R8, [R2.64]",
        "@P0 LDG.E R8, [R2.64]",
        "STG.E.64 [R2.64], R4",
        "LDS R0, [R1]",
        "STS.128 [R1], R4",
        "FADD R0, R1, R2",
    ) == {"global loaded": 22, "global stored": 8, "shared loaded": 4, "shared stored": 16}


def test_a_copy_into_shared_memory_counts_on_both_sides() -> None:
    assert traffic("LDGSTS.E.128 [R0], [R2.64]") == {"global loaded": 16, "shared stored": 16}


def test_a_matrix_load_gives_a_lane_four_bytes_of_each_matrix() -> None:
    assert traffic("LDSM.16.M88.4 R4, [R0]", "LDSM.16.M88 R8, [R0]") == {"shared loaded": 20}


@pytest.mark.parametrize(
    ("line", "conflicts"),
    [
        ("FFMA R0, R2, R4, R6", 1),
        ("FFMA R0, R1, R3, R5", 1),
        ("FFMA R0, R2, R4, R5", 0),
        ("FFMA R0, R2, R2, R4", 0),
        ("FFMA R0, R2, R4, RZ", 0),
        ("FADD R0, R2, R4", 0),
        ("STG.E.64 [R2.64], R4", 0),
        ("HMMA.16816.F32 R0, R4, R8, R12", 0),
    ],
)
def test_three_registers_of_one_bank(line: str, conflicts: int) -> None:
    assert stats.bank_conflicts(list(program(line))) == conflicts


def test_what_a_reuse_flag_kept_is_not_read_again() -> None:
    second = "FFMA R1, R2, R10, R12"
    assert stats.bank_conflicts(list(program("FMUL R0, R2.reuse, R5", second))) == 0
    assert stats.bank_conflicts(list(program("FMUL R0, R2, R5", second))) == 1
    # another read through that slot and bank drops it, and so does a new value
    assert stats.bank_conflicts(list(program("FMUL R0, R2.reuse, R5", "FMUL R0, R4, R5", second))) == 1
    assert stats.bank_conflicts(list(program("FMUL R0, R2.reuse, R5", "MOV R2, R3", second))) == 1


# registers, block, shared bytes -> warps an SM, limit (published: 65,536 registers, 1,536 threads, 16 blocks, 100 KiB)
@pytest.mark.parametrize(
    ("registers", "block_x", "shared_bytes", "warps", "limit"),
    [
        (40, 256, 0, 48, "threads"),
        (41, 256, 0, 40, "registers"),
        (64, 128, 0, 32, "registers"),
        (255, 256, 0, 8, "registers"),
        (40, 1024, 0, 32, "threads"),
        (16, 32, 0, 16, "blocks"),
        (40, 128, 33_000, 12, "shared bytes"),
        (40, 512, 101_376, 16, "shared bytes"),
    ],
)
def test_warps_an_sm_holds(registers: int, block_x: int, shared_bytes: int, warps: int, limit: str) -> None:
    declared = {"registers": registers, "block_x": block_x, "shared_bytes": shared_bytes}
    made = stats.statistics_of(program("EXIT"), declared)
    assert (made.warps, made.limit) == (warps, limit)


def test_a_loop_counts_once_and_a_skipped_part_counts() -> None:
    made = stats.statistics_of(
        program(
            "@P0 BRA 0x20",
            "LDG.E R0, [R2.64]",
            "LDG.E.64 R4, [R2.64]",
            "@P1 BRA 0x20",
            "STG.E [R2.64], R0",
            "EXIT",
        ),
        DECLARED,
    )
    assert made.traffic == {"global loaded": 12, "global stored": 4}
    assert made.instructions == 6
    assert made.pipes == {"control": 3, "memory": 3}
    assert made.demand == 8
    assert made.cycles[400] - made.cycles[32] < 400


def test_the_roofline_is_an_sms_part_of_the_bandwidth() -> None:
    assert pytest.approx(6.734, abs=1e-3) == stats.SM_BYTES_A_CYCLE
    rows = ("[B------:R-:W0:-:S04] LDG.E R4, [R2.64]", "[B0-----:R-:W-:-:S04] EXIT")
    made = parse_listing(".target sm86\n" + "".join(f"{line}\n" for line in rows))
    # four warps, one a sub-core: 128 bytes each in what one takes, of 6.73 bytes a cycle
    cycles = modelled_cycles(made, [0, 1], memory=400)
    share = 4 * 128 / cycles / stats.SM_BYTES_A_CYCLE
    assert 0.1 < share < 0.2
    assert stats.roofline(made, [0, 1], 4, {"global loaded": 4}) == pytest.approx(share)
    assert stats.roofline(made, [0, 1], 4, {"global loaded": 4, "local stored": 4}) == pytest.approx(2 * share)
    assert stats.roofline(made, [0, 1], 4, {"global loaded": 400}) == pytest.approx(100 * share)
    assert stats.roofline(made, [0, 1], 48, {"shared loaded": 16}) is None


def test_a_wait_for_each_load_leaves_bandwidth_unused() -> None:
    chain = ("[B------:R-:W0:-:S04] LDG.E R4, [R2.64]", "[B0-----:R-:W0:-:S04] LDG.E R5, [R4.64]")
    waiting = parse_listing(".target sm86\n" + "".join(f"{line}\n" for line in (*chain, "[B0-----:R-:W-:-:S04] EXIT")))
    alone = stats.statistics_of(waiting, {"registers": 255, "block_x": 32, "shared_bytes": 0})
    many = stats.statistics_of(waiting, {"registers": 40, "block_x": 256, "shared_bytes": 0})
    assert alone.roofline is not None
    assert many.roofline is not None
    assert alone.roofline < many.roofline
    assert many.occupancy == 1.0
    assert alone.occupancy == pytest.approx(8 / 48)


@pytest.mark.parametrize("registers", [None, 40])
def test_rows_of_the_table(registers: int | None) -> None:
    made = stats.statistics_of(program("FFMA R0, R2, R4, R6", "EXIT"), {**DECLARED, "registers": registers})
    rows = dict(stats.as_rows(made))
    assert rows["registers"] == ("10 (demand 10)" if registers is None else "40 (demand 10)")
    assert rows["register bank conflicts"] == "1"
    assert rows["occupancy"] == "100% of 48 warps"
    assert rows["memory roofline that the schedule allows"] == "moves nothing"
    assert rows["instructions"] == "2 (control 1, fma 1)"


@pytest.mark.parametrize(
    ("width", "shown"), [("", "38%"), (".64", "75%"), (".128", "100% (asks for 1.5 times what memory gives)")]
)
def test_the_share_is_shown_with_what_is_asked_for_beyond_it(width: str, shown: str) -> None:
    lines = (f"[B------:R-:W0:-:S04] LDG.E{width} R4, [R2.64]", "[B0-----:R-:W-:-:S04] EXIT")
    made = parse_listing(".target sm86\n" + "".join(f"{line}\n" for line in lines))
    few = {"registers": 255, "block_x": 32, "shared_bytes": 0}  # eight warps
    rows = dict(stats.as_rows(stats.statistics_of(made, few)))
    assert rows["memory roofline that the schedule allows"] == shown


def test_each_shared_access_has_its_degree_and_global_ones_an_efficiency() -> None:
    made = program("LDG.E R4, [R2.64]", "STS [R1], R4", "LDS.64 R6, [R1]", "LDS R5, [R1]", "STS [R1], R5", "EXIT")
    accesses = [
        Access("global", 0, "LDG", taken=12, fewest=8, worst=2.0),
        Access("shared", 1, "STS", taken=4, fewest=4),
        Access("shared", 2, "LDS", taken=10, fewest=2, worst=8.0),
        Access("shared", 4, "STS", taken=4, fewest=4),
    ]
    figures = stats.statistics_of(made, DECLARED, accesses)
    assert (figures.global_efficiency, figures.conflict_degree) == (1.5, 8.0)
    rows = stats.as_rows(figures)
    assert ("global sectors touched over needed", "1.50 (12 for 8)") in rows
    assert [row for row in rows if row[0].startswith("shared bank")] == [
        ("shared bank conflict degree, STS", "1 (2 places)"),
        ("shared bank conflict degree, 0x0020 LDS.64", "8"),
    ]
    nothing = dict(stats.as_rows(stats.statistics_of(made, DECLARED)))
    assert nothing["shared bank conflict degree"] == "touches nothing"
    assert nothing["global sectors touched over needed"] == "touches nothing"


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout in which `fill` is an image whose lanes store a word each, every other one."""
    head = ("ULDC.64 UR4, c[0x0][0x118]", "S2R R0, SR_TID.X", "MOV R1, 0x8")
    lines = (*head, "IMAD.WIDE.U32 R2, R0, R1, c[0x0][0x160]", "STG.E [R2.64], R0", "EXIT")
    for name in ("dodo.py", "coppelius/catalog.py", "build/sm86/fill/material.bin"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(program(*lines).encode() if name.endswith("bin") else b"")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("built")
def test_the_command_prints_a_table_or_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", "fill", "--stats"]) == 0
    shown = capsys.readouterr().out
    rows = [line.split(maxsplit=1) for line in shown.splitlines()]
    assert ["figure", "fill"] in rows
    assert ["instructions", "6 (alu 1, control 1, memory 1, system 1, uniform 1, wide 1)"] in rows
    assert ["registers", "16 (demand 6)"] in rows
    assert "global sectors touched over needed 2.00 (64 for 32)" in re.sub(" +", " ", shown)
    assert run(["show", "fill", "--stats", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["identity"], made["instructions"], made["pipes"]["memory"], made["warps"]) == ("fill", 6, 1, 48)
    assert (made["sectors"], made["global_efficiency"], made["conflict_degree"]) == ([64, 32], 2.0, None)
    assert made["shared_accesses"] == []


def test_the_command_refuses_what_is_not_encoded(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (built / "build/sm86/fill/material.bin").unlink()
    assert run(["show", "fill", "--stats"]) == 1
    assert "fill: not built as far as encode; run doit encode:fill" in capsys.readouterr().err
