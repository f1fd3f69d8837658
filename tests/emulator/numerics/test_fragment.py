import numpy as np
import pytest

from coppelius.emulator.numerics.fragment import accumulator, operand_a, operand_b

pytestmark = pytest.mark.filterwarnings("error")  # no warning may leak

# every layout that an instruction of SM86 uses, and its registers
LAYOUTS = [
    (operand_a(16, 16, 16), 4),
    (operand_b(16, 16), 2),
    (operand_a(16, 8, 16), 2),
    (operand_b(8, 16), 1),
    (operand_a(16, 8, 32), 4),
    (operand_b(8, 32), 2),
    (operand_a(16, 4, 32), 2),
    (operand_b(4, 32), 1),
    (operand_a(16, 32, 8), 4),
    (operand_b(32, 8), 2),
    (operand_a(16, 16, 8), 2),
    (operand_b(16, 8), 1),
    (operand_a(8, 16, 8), 1),
    (operand_a(8, 4, 64), 2),
    (operand_b(4, 64), 2),
    (accumulator(16, 32), 4),
    (accumulator(16, 16), 2),
    (accumulator(8, 32), 2),
    (accumulator(8, 64), 4),
]


@pytest.mark.parametrize(("layout", "registers"), LAYOUTS)
def test_a_layout_is_a_permutation_of_the_registers(layout, registers):
    assert layout.registers == registers
    assert sorted(layout.places.reshape(-1)) == list(range(32 * registers * 32 // layout.bits))
    words = np.random.default_rng(0).integers(0, 1 << 32, (3, 32, registers), dtype=np.uint32)
    assert (layout.scatter(layout.gather(words)) == words).all()


def place(layout, lane, register, part=0):
    """The (row, column) that a lane's register holds, by the published tables."""
    index = (lane * layout.registers + register) * 32 // layout.bits + part
    row, column = np.argwhere(layout.places == index)[0]
    return int(row), int(column)


def test_published_places():
    lane, g, t = 22, 5, 2
    a = operand_a(16, 16, 16)
    assert [place(a, lane, r) for r in range(4)] == [(g, 2 * t), (g + 8, 2 * t), (g, 2 * t + 8), (g + 8, 2 * t + 8)]
    assert place(a, lane, 3, 1) == (g + 8, 2 * t + 9)
    assert [place(operand_b(16, 16), lane, r, 1) for r in range(2)] == [(2 * t + 1, g), (2 * t + 9, g)]
    tf32 = operand_a(16, 8, 32)
    assert [place(tf32, lane, r) for r in range(4)] == [(g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4)]
    assert place(operand_b(8, 32), lane, 1) == (t + 4, g)
    s8 = operand_a(16, 32, 8)
    assert [place(s8, lane, r, 3)[1] for r in range(4)] == [4 * t + 3, 4 * t + 3, 4 * t + 19, 4 * t + 19]
    assert [place(s8, lane, r)[0] for r in range(4)] == [g, g + 8, g, g + 8]
    c = accumulator(16, 32)
    assert [place(c, lane, r) for r in range(4)] == [(g, 2 * t), (g, 2 * t + 1), (g + 8, 2 * t), (g + 8, 2 * t + 1)]
    assert place(accumulator(16, 16), lane, 1, 1) == (g + 8, 2 * t + 1)
