"""What we read from code is what ptxas recorded of it, in every optimised kernel of the tests' compiled code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coppelius.container.code_facts import facts_of
from coppelius.container.cubin import Kernel, read_cubin
from coppelius.container.info import Attribute
from coppelius.isa.latency import stem
from coppelius.isa.refusal import Refusal
from coppelius.program.listing import parse_listing
from coppelius.program.program import Program

CUDA = Path(__file__).resolve().parents[1] / "data" / "cuda"
EXIT = "[B------:R-:W-:-:S05] EXIT"


def kernels() -> Iterator[Kernel]:
    """Without those of -O0, whose meetings lie in functions of their own, and those with indirect branches."""
    for path in sorted(CUDA.rglob("*.cubin")):
        if path.parent.name not in ("O0", "relocatable"):
            for kernel in read_cubin(path.read_bytes(), f"{path.parent.name}/{path.name}").kernels:
                if kernel.is_entry and kernel.architecture == 86 and not kernel.indirect_branches:
                    yield kernel


def recorded(kernel: Kernel) -> dict[str, Any]:
    """What the vendor's records say."""
    own: dict[str, Attribute] = {row.name: row for row in kernel.attributes}
    meetings = own["COOP_GROUP_INSTR_OFFSETS"].words("") if "COOP_GROUP_INSTR_OFFSETS" in own else ()
    return {
        "exits": tuple(sorted(kernel.exits)),
        "cooperative": tuple(sorted(meetings)),
        "barriers": kernel.barriers,
        "reads_block_z": "CTAIDZ_USED" in own,
        "divergent": "CRS_STACK_SIZE" in own,
    }


# instructions that only one of the two counts as meetings, and why
NOT_IN_THE_WORDS = {
    ("ptxas", "NOP"): "where no thread can be elsewhere, the meeting that the source asks for takes no instruction",
    ("ptxas", "BAR"): "that meeting is just before, and the barrier's place",
    ("ptxas", "CALL"): "part of a warp may meet in a function, where it is elsewhere",
    ("ours", "VOTE"): "inside that function",
    ("ours", "REDUX"): "the compiler made it for an atomic instruction, and lists it elsewhere",
}


def test_facts_are_those_of_the_records() -> None:
    read = list(kernels())
    facts = facts_of("sm86", [kernel.code for kernel in read], [kernel.name for kernel in read])
    found: Counter[tuple[str, str]] = Counter()
    elsewhere = 0
    for kernel, ours in zip(read, facts, strict=True):
        theirs = recorded(kernel)
        for fact in ("exits", "barriers", "reads_block_z"):
            assert getattr(ours, fact) == theirs[fact], (kernel.origin, kernel.name, fact)
        assert theirs["divergent"] or not ours.divergent, kernel.name
        elsewhere += theirs["divergent"] != ours.divergent
        program, meetings = Program.decode(kernel.code), set(theirs["cooperative"])
        for who, only in (("ptxas", meetings - set(ours.cooperative)), ("ours", set(ours.cooperative) - meetings)):
            found.update((who, stem(program[at // 16].encoding)) for at in only)
    assert found.keys() == NOT_IN_THE_WORDS.keys(), found
    assert len(read) > 500
    # a compiler also notes divergence that needs no BSSY: paths that only end
    assert elsewhere < len(read) / 20


def test_an_indirect_branch_is_refused_by_name() -> None:
    branching = next(k for k in read_cubin((CUDA / "cubins/O3/control.cubin").read_bytes()).kernels
                     if k.indirect_branches)  # fmt: skip
    code = parse_listing(f".target sm86\n{EXIT}\n").encode()
    with pytest.raises(Refusal, match="second: BRX branches where only a compiler knows"):
        facts_of("sm86", [code, branching.code], ["first", "second"])


def test_a_word_outside_the_table_is_refused_by_name() -> None:
    code = parse_listing(f".target sm86\n{EXIT}\n").encode()
    with pytest.raises(Refusal, match=r"second: offset .* refused"):
        facts_of("sm86", [code, code + b"\xff" * 16], ["first", "second"])


def test_facts_are_each_kernels_own() -> None:
    lines = ["S2R R0, SR_CTAID.Z", "BAR.SYNC.DEFER_BLOCKING 0x2", "VOTE.ANY R1, PT, PT", "VOTE.ANY R1, PT, P0", "EXIT"]
    busy = parse_listing(".target sm86\n" + "".join(f"[B------:R-:W-:-:S05] {line}\n" for line in lines)).encode()
    idle = parse_listing(f".target sm86\n{EXIT}\n").encode()
    first, second, third = facts_of("sm86", [idle, busy, idle], ["a", "b", "c"])
    assert first == third
    assert (first.exits, first.cooperative, first.barriers, first.reads_block_z) == ((0,), (), 0, False)
    assert (second.exits, second.cooperative, second.barriers, second.reads_block_z) == ((64,), (48,), 3, True)
