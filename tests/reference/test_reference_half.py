"""Half rounding against three independent sources: struct, numpy's float16, and a bit-level bf16."""

import struct
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coppelius.reference import half as halves

ALL = np.arange(65536, dtype=np.uint16)
HALVES = ("bf16", "f16")


def bf16_of_f32(words: np.ndarray) -> np.ndarray:
    """The usual integer rounding of f32 bits to bf16, NaN apart."""
    words = words.astype(np.uint64)
    return ((words + 0x7FFF + ((words >> 16) & 1)) >> 16).astype(np.uint16)


def test_every_f16_pattern_widens_as_struct_says() -> None:
    wide = halves.from_bits(ALL, "f16")
    expected = np.array([struct.unpack("<e", struct.pack("<H", bits))[0] for bits in range(65536)])
    assert np.array_equal(wide, expected, equal_nan=True)


def test_every_bf16_pattern_widens_to_the_upper_half_of_an_f32() -> None:
    wide = halves.from_bits(ALL, "bf16")
    expected = np.array([struct.unpack("<f", struct.pack("<I", bits << 16))[0] for bits in range(65536)])
    assert np.array_equal(wide, expected, equal_nan=True)


@pytest.mark.parametrize("half", HALVES)
def test_every_pattern_comes_back(half: str) -> None:
    back = halves.to_bits(halves.from_bits(ALL, half), half)
    nan = halves.is_nan(ALL, half)
    assert np.array_equal(back[~nan], ALL[~nan])
    assert set(back[nan]) == {halves.NAN_BITS}
    assert np.count_nonzero(nan) == 2 * {"bf16": 127, "f16": 1023}[half]


@pytest.mark.parametrize("half", HALVES)
def test_ties_go_to_even_and_either_side_of_a_tie_does_not(half: str) -> None:
    top = {"bf16": 0x7F7F, "f16": 0x7BFF}[half]  # the largest finite half
    low = np.arange(top, dtype=np.uint16)
    lower, upper = halves.from_bits(low, half), halves.from_bits(low + 1, half)
    middle = (lower + upper) / 2
    assert np.array_equal(halves.to_bits(middle, half), low + (low & 1))
    assert np.array_equal(halves.to_bits(np.nextafter(middle, 0), half), low)
    assert np.array_equal(halves.to_bits(np.nextafter(middle, np.inf), half), low + 1)
    assert np.array_equal(halves.to_bits(-middle, half), 0x8000 | (low + (low & 1)))


# fmt: off
SPECIAL = [
    ("f16",  65519.99,       0x7BFF), ("f16",  65520.0,        0x7C00), ("f16", -1e300,  0xFC00),
    ("f16",  2.0**-25,       0x0000), ("f16",  1.5 * 2.0**-25, 0x0001), ("f16", -0.0,    0x8000),
    ("f16",  np.inf,         0x7C00), ("f16",  np.nan,         0x7FFF), ("f16",  1.0,    0x3C00),
    ("bf16", 3.3895e38,      0x7F7F), ("bf16", 3.3961776e38,   0x7F80), ("bf16", -1e300, 0xFF80),
    ("bf16", 2.0**-134,      0x0000), ("bf16", 1.5 * 2.0**-134, 0x0001), ("bf16", -0.0,  0x8000),
    ("bf16", -np.inf,        0xFF80), ("bf16", np.nan,         0x7FFF), ("bf16", 1.0,    0x3F80),
]
# fmt: on


@pytest.mark.parametrize(("half", "value", "bits"), SPECIAL)
def test_edges(half: str, value: float, bits: int) -> None:
    assert int(halves.to_bits(value, half)) == bits


@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=200))
def test_f32_patterns_round_as_numpy_and_as_integers_do(words: list[int]) -> None:
    bits = np.array(words, np.uint32)
    values = bits.view(np.float32)
    real = ~np.isnan(values)
    with np.errstate(over="ignore"):
        assert np.array_equal(halves.to_bits(values, "f16")[real], values.astype(np.float16).view(np.uint16)[real])
    assert np.array_equal(halves.to_bits(values, "bf16")[real], bf16_of_f32(bits)[real])


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(HALVES))
def test_float64_rounds_once(value: float, half: str) -> None:
    bits = int(halves.to_bits(value, half)) & 0x7FFF
    if bits >= int(halves.to_bits(np.inf, half)):
        return
    exact = abs(Fraction(value))
    error = abs(Fraction(float(halves.from_bits(np.array([bits]), half)[0])) - exact)
    for near in (bits - 1, bits + 1):
        other = float(halves.from_bits(np.array([near & 0xFFFF]), half)[0]) if near >= 0 else np.inf
        if np.isfinite(other):
            assert error <= abs(Fraction(other) - exact)


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(ValueError, match=r"half format 'fp8': known formats are bf16, f16"):
        halves.to_bits(1.0, "fp8")
