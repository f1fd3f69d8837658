"""Philox against Random123's published known answers; Box-Muller and the rotary table by hand."""

import math

import numpy as np
import pytest

from coppelius.reference.random_normal import philox, random_normal, uniform
from coppelius.reference.rotary_table import model_frequencies, rotary_table

# Random123's kat_vectors, philox4x32 with 10 rounds: counter, key, answer
# fmt: off
KNOWN = [
    ((0x00000000,) * 4, (0x00000000,) * 2, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0),
     (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
]
# fmt: on


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN)
def test_philox_known_answers(counter: tuple[int, ...], key: tuple[int, int], answer: tuple[int, ...]) -> None:
    assert tuple(int(word) for word in philox([counter], key)[0]) == answer


def test_uniform_is_never_0_nor_1() -> None:
    low, high = uniform(np.array([0, 0xFFFFFFFF], np.uint32))
    assert low == 0.5 / 2**32
    assert 1 - high == 0.5 / 2**32


def test_elements_come_from_the_words_of_their_counter() -> None:
    seed, stream = 0x0123456789ABCDEF, 7
    values = random_normal(9, 0.5, seed, stream).values
    assert len(values) == 9
    for i in range(2):
        w = [int(x) for x in philox([[i, 0, stream, 0]], (0x89ABCDEF, 0x01234567))[0]]
        u = [(x + 0.5) / 2**32 for x in w]
        for at in (0, 2):
            r = math.sqrt(-2 * math.log(u[at]))
            assert values[4 * i + at] == pytest.approx(0.5 * r * math.cos(2 * math.pi * u[at + 1]), rel=1e-12)
            assert values[4 * i + at + 1] == pytest.approx(0.5 * r * math.sin(2 * math.pi * u[at + 1]), rel=1e-12)


def test_a_longer_buffer_begins_with_the_shorter_one() -> None:
    assert np.array_equal(random_normal(5, 1.0, 3, 0).values, random_normal(1025, 1.0, 3, 0).values[:5])
    assert len(random_normal(0, 1.0, 3, 0).values) == 0
    assert not np.array_equal(random_normal(5, 1.0, 3, 0).values, random_normal(5, 1.0, 3, 1).values)


def test_moments_and_bound() -> None:
    normal = random_normal(1 << 18, 2.0, 42, 0)
    assert abs(normal.values.mean()) < 0.02  # 5 standard errors
    assert abs(normal.values.std() - 2.0) < 0.015
    radius = np.hypot(normal.values[0::2], normal.values[1::2]) / 2.0
    assert np.allclose(normal.bound[0::2], 2.0 * (2.0**-20 * radius + 2.0**-23 / radius), rtol=1e-9)


def test_rotary_table_by_hand() -> None:
    table = rotary_table(model_frequencies(), 4)
    assert table.shape == (4, 32, 2)
    assert np.array_equal(table[0], np.tile([1.0, 0.0], (32, 1)))
    assert table[3, 0] == pytest.approx([math.cos(3), math.sin(3)])
    slowest = float(np.float32(10000 ** (-31 / 32)))
    assert table[3, 31] == pytest.approx([math.cos(3 * slowest), math.sin(3 * slowest)], rel=1e-14)
    assert model_frequencies().dtype == np.float32
