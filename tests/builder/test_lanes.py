"""Lanes side by side: the same instructions as one lane after another, each kind of operand handed on."""

from coppelius.builder.kernel import Kernel
from coppelius.builder.lanes import Lanes, Together
from coppelius.isa.operands import RZ


def kernel() -> Kernel:
    return Kernel({"a": ("scalar", "f32", 0x160)}, block_x=32)


def test_each_lane_has_its_own_results_in_turn() -> None:
    k = kernel()
    side = Together(k, 2)
    x = side.FADD("x", RZ, side.parameter("a"))
    y = side.FMUL("y", -x, abs(x), guard=side.compare_f32("small", "LT", x, 1.0))
    assert isinstance(y, Lanes)
    assert len({register.index for register in (*x, *y)}) == 4
    assert [item.encoding.mnemonic for item in k.draft.items] == [
        "FADD",
        "FADD",
        "FSETP",
        "FSETP",
        "FMUL",
        "FMUL",
    ]


def test_signs_and_denials_are_each_lanes_own() -> None:
    side = Together(kernel(), 3)
    p = side.compare_f32("p", "LT", RZ, 1.0)
    x = side.FADD("x", RZ, RZ)
    assert list(~p) == [~q for q in p]
    assert list(-x) == [-v for v in x]
