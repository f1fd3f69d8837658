"""Placement against the fold it must equal, and the plans on which nothing can be placed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coppelius.arena.addresses import address, nearest
from coppelius.arena.placement import check_plan, place
from coppelius.isa.refusal import Refusal


def padding(cursor: int) -> int:
    """The original definition of the gap before an image at 256-byte alignment."""
    return (256 - cursor % 256) % 256


@given(st.lists(st.integers(1, 500).map(lambda n: 16 * n), min_size=1, max_size=48))
def test_offsets_equal_the_original_fold(sizes: list[int]) -> None:
    cursor, end = 0, 0
    for size in sizes:
        offset = place(end, size, 256)
        assert offset == cursor + padding(cursor)
        cursor += padding(cursor) + size
        end = offset + size


# fmt: off
@pytest.mark.parametrize(("end", "size", "alignment", "offset"), [
    (0, 16, 256, 0), (16, 16, 256, 256), (256, 16, 256, 256), (257, 16, 256, 512), (4096, 1, 4096, 4096),
])
def test_place(end: int, size: int, alignment: int, offset: int) -> None:
    assert place(end, size, alignment) == offset
# fmt: on


def test_a_length_under_the_same_aligned_end_moves_nothing() -> None:
    assert place(place(0, 272, 256) + 272, 16, 256) == place(place(0, 512, 256) + 512, 16, 256) == 512


# fmt: off
@pytest.mark.parametrize(("base", "alignment", "says"), [
    (0,           256,  r"^base 0x0: an address of 0 names no image"),
    (-256,        256,  r"^base -0x100: an address of 0 names no image"),
    (0x100000080, 256,  r"^base 0x100000080: not a multiple of 256; 0x100000000 is one"),
    (0x100000080, 128,  r"^base 0x100000080: not a multiple of 256"),
    (0x100000100, 4096, r"^base 0x100000100: not a multiple of 4096"),
    (0x100000000, 0,    r"^alignment 0: give a power of two, at least 128"),
    (0x100000000, -256, r"^alignment -256"),
    (0x100000000, 64,   r"^alignment 64"),
    (0x100000000, 384,  r"^alignment 384"),
])
def test_bad_plan(base: int, alignment: int, says: str) -> None:
    with pytest.raises(Refusal, match=says):
        check_plan(base, alignment)
# fmt: on


def test_good_plans() -> None:
    check_plan(0x100000000, 256)
    check_plan(256, 128)
    check_plan(0x7F0000000000, 4096)


def test_nothing_of_no_bytes_is_placed() -> None:
    with pytest.raises(Refusal, match="never empty"):
        place(0, 0, 256)


MANIFEST = {
    "base": 0x100000000,
    "images": [{"identity": "fill", "offset": 0}, {"identity": "copy", "offset": 0x300}],
}


def test_address_is_base_plus_offset_and_zero_for_an_unknown_image() -> None:
    assert address(MANIFEST, "fill") == 0x100000000
    assert address(MANIFEST, "copy") == 0x100000300
    assert address(MANIFEST, "copi") == 0
    assert address(MANIFEST, "") == 0


def test_nearest() -> None:
    known = ["gather", "loss-target-gather", "fill"]
    assert nearest("gahter", known) == "gather"
    assert nearest("zzz", known) == ""
