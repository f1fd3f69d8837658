"""The macros every kernel needs: what they emit, and once where once is enough."""

from typing import Any

import pytest

from coppelius.builder.assemble import assemble
from coppelius.builder.kernel import Kernel
from coppelius.isa.operands import RZ, Address, R
from coppelius.isa.printer import texts
from coppelius.isa.refusal import Refusal


@pytest.fixture
def k() -> Kernel:
    return Kernel({"out": ("pointer", "f32", 0x160), "count": ("scalar", "u32", 0x168)}, block_x=256)


def emitted(k: Kernel) -> list[str]:
    """The kernel's text, its closing EXIT and BRA left out."""
    k.finish()
    return texts(assemble(k.draft, k.table, registers=100).program.decoded)[:-2]


def test_the_descriptor_is_loaded_once_and_never_under_a_guard(k: Kernel) -> None:
    p = k.compare("p", "LT", RZ, 1)
    with k.when(p):
        first = k.descriptor()
    assert k.descriptor() is first
    assert [t for t in emitted(k) if "ULDC" in t] == ["ULDC.64 UR0, c[0x0][0x118]"]


def test_an_elements_address_is_base_plus_index_times_size(k: Kernel) -> None:
    pointer = k.element("pointer", "out", k.thread_index(), 4)
    k.STG_E(k.at(pointer, 8), RZ)
    text = emitted(k)
    assert "IMAD.WIDE.U32 R0, R0, R1, c[0x0][0x160]" in text
    assert text[-1] == "STG.E [R0.64+0x8], RZ {ur=0}"


@pytest.mark.parametrize(
    ("value", "text"),
    [(5, "0x5"), (1.0, "0x3f800000"), (float("-inf"), "0xff800000"), (0xFFFFFFFF, "0xffffffff"), (-1, "0xffffffff")],
)
def test_a_number_is_moved_as_its_bits(k: Kernel, value: object, text: str) -> None:
    k.move("x", value)
    assert emitted(k) == [f"MOV R0, {text}"]


def test_comparisons_make_a_predicate_signed_or_not(k: Kernel) -> None:
    k.compare("a", "GE", RZ, 4)
    k.compare("b", "GE", RZ, 4, unsigned=False)
    k.compare_f32("c", "NEU", RZ, float("-inf"))
    assert [t.replace("P0", "P") for t in emitted(k)] == [
        "ISETP.GE.U32.AND P, PT, RZ, 0x4, PT",
        "ISETP.GE.AND P, PT, RZ, 0x4, PT",
        "FSETP.NEU.AND P, PT, RZ, -INF , PT",
    ]


def test_the_end_is_an_exit_and_a_branch_to_itself_that_drains(k: Kernel) -> None:
    k.finish()
    built = assemble(k.draft, k.table, registers=8)
    assert texts(built.program.decoded) == ["EXIT", "BRA 0x10"]
    assert built.pins[1] == {"stall": 0, "keep": 0}


def test_sources_stand_beside_the_instructions(k: Kernel) -> None:
    with k.region("here"):
        k.shuffle_xor("x", RZ, 1)
    k.finish()
    source = assemble(k.draft, k.table, registers=8).sources[0]
    assert source.file.endswith("tests/builder/test_kernel.py")
    assert source.region == "here"


def test_an_empty_kernel_is_refused() -> None:
    with pytest.raises(Refusal, match="the kernel emits no instruction"):
        assemble(Kernel({}).draft, Kernel({}).table, registers=8)


@pytest.mark.parametrize(
    ("pins", "reason"),
    [
        ({"stall": 16}, "stall 16 is not 0..15"),
        ({"stall": -1}, "stall -1 is not 0..15"),
        ({"stall": 12, "keep": 1}, r"stall 12 needs the yield \(keep off\): only 1..11 go without it"),
        ({"write_barrier": 6}, "write barrier 6 is not 0..5"),
        ({"wait": 64}, "wait mask 0x40 names more than six scoreboards"),
        ({"stall": "4"}, "stall '4' is no number"),
        ({"barrier": 0}, "no control field barrier; fields: keep, read_barrier, stall, wait, write_barrier"),
    ],
)
def test_a_pin_that_no_control_word_holds_is_refused_where_it_stands(k: Kernel, pins: Any, reason: str) -> None:
    with pytest.raises(Refusal, match=rf"tests/builder/test_kernel.py:\d+: MOV: {reason}$"):
        k.MOV("x", RZ, **pins)


def test_pins_leave_the_other_fields_free(k: Kernel) -> None:
    k.MOV("x", RZ, stall=15)
    k.MOV("x", RZ, stall=0)
    k.MOV("x", RZ, keep=1, wait=63)


def test_what_the_language_lacks_is_no_attribute(k: Kernel) -> None:
    with pytest.raises(AttributeError, match="the kernel language has no 'shuffle'"):
        k.shuffle("x", RZ)


def test_an_address_in_shared_memory_scales_its_index(k: Kernel) -> None:
    k.STS(Address(k.move("warp", 1), 32, scale=4), RZ)
    assert emitted(k)[-1] == "STS [R0.X4+0x20], RZ"
    assert isinstance(k.vector("pair", 2)[1], R)
