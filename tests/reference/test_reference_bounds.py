"""Each bound accepts what is just inside it and objects to what is just outside."""

import numpy as np
import pytest

from coppelius.reference import bounds
from coppelius.reference import half as halves

ONE = np.float32(1.0)
MAX = np.float32(3.4028235e38)


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def test_elementwise_counts_ulps_of_the_reference() -> None:
    two, three = f32(1 + 2 * 2.0**-23), f32(1 + 3 * 2.0**-23)
    assert bounds.elementwise_f32(two, [1.0]).worst == 1.0
    assert bounds.elementwise_f32(two, [1.0])
    assert not bounds.elementwise_f32(three, [1.0])
    assert bounds.elementwise_f32(three, [1.0], ulps=4)
    assert not bounds.elementwise_f32(f32(1 + 2.0**-23), [1.0], ulps=0.5)


def test_elementwise_keeps_denormals() -> None:
    tiny = 5 * 2.0**-149
    assert bounds.elementwise_f32(f32(3 * 2.0**-149), [tiny])
    assert not bounds.elementwise_f32(f32(0.0), [tiny])
    assert bounds.elementwise_f32(f32(2 * 2.0**-149), [0.0])
    assert not bounds.elementwise_f32(f32(3 * 2.0**-149), [0.0])


def test_elementwise_cancelling_terms_widen_the_bound() -> None:
    got, reference = f32(2.0**-22), [0.0]
    assert not bounds.elementwise_f32(got, reference)
    assert bounds.elementwise_f32(got, reference, terms=[1.0])
    assert not bounds.elementwise_f32(got, reference, terms=[0.5])


def test_elementwise_overflow_is_infinity() -> None:
    assert bounds.elementwise_f32(f32(np.inf), [1e39]).worst == 0
    assert bounds.elementwise_f32(f32(MAX), [float(MAX)]).worst == 0
    assert not bounds.elementwise_f32(f32(1e38), [1e39])
    assert not bounds.elementwise_f32(f32(-np.inf), [1e39])
    assert not bounds.elementwise_f32(f32(MAX), [np.inf])
    assert not bounds.elementwise_f32(f32(np.inf), [1.0], terms=[1e38])


def test_nan_answers_nan_only() -> None:
    for reference, got, holds in ((np.nan, np.nan, True), (np.nan, 1.0, False), (1.0, np.nan, False)):
        assert bool(bounds.elementwise_f32(f32(got), [reference], terms=[1e30])) is holds
        assert bool(bounds.row_reduction(f32(got), [reference], [1.0])) is holds
        assert bool(bounds.absolute(f32(got), [reference], 1.0)) is holds
        assert bool(bounds.half_output(halves.to_bits([got], "bf16"), [reference], "bf16", [9.0])) is holds
        assert bool(bounds.attention(f32(got), [reference], "f16")) is holds


@pytest.mark.parametrize(("half", "one", "ulp"), [("bf16", 0x3F80, 2.0**-7), ("f16", 0x3C00, 2.0**-10)])
def test_half_outputs_are_within_one_half_of_the_rounded_reference(half: str, one: int, ulp: float) -> None:
    near = np.array([one, one + 1, one - 1], np.uint16)
    assert bounds.half_output(near, [1.0, 1.0, 1.0], half).worst == 1.0
    assert not bounds.half_output(near + 1, [1.0, 1.0, 1.0], half)
    # 1.49 ulp away rounds to 1 ulp away: the reference is rounded first
    assert bounds.half_output(np.array([one], np.uint16), [1 + 1.49 * ulp], half)
    assert not bounds.half_output(np.array([one], np.uint16), [1 + 1.51 * ulp], half)


def test_half_output_where_terms_cancel() -> None:
    got = halves.to_bits([1.5e-6], "bf16")
    assert not bounds.half_output(got, [0.0], "bf16")
    assert bounds.half_output(got, [0.0], "bf16", terms=[1.0])
    assert not bounds.half_output(got, [0.0], "bf16", terms=[0.5])


def test_half_overflow() -> None:
    infinity, largest = np.array([0x7C00], np.uint16), np.array([0x7BFF], np.uint16)
    assert bounds.half_output(infinity, [70000.0], "f16").worst == 0
    assert bounds.half_output(infinity, [65519.0], "f16").worst == 1.0
    assert not bounds.half_output(largest, [np.inf], "f16")
    assert not bounds.half_output(infinity, [65000.0], "f16")


def test_row_reduction_is_relative_to_the_row() -> None:
    reference = np.array([[100.0, 1e-3], [1.0, 1e-3]])
    got = reference + np.array([0.0, 1e-4])
    measured = bounds.row_reduction(got, reference)
    assert (measured.failures, measured.index) == (1, (1, 1))
    assert bounds.row_reduction(got, reference, [100.0, 60.0])
    assert bounds.row_reduction(f32(1.0), [1.0 + 1.9e-6])
    assert not bounds.row_reduction(f32(1.0), [1.0 + 2.1e-6])


def test_column_sum_is_relative_to_the_magnitudes() -> None:
    assert bounds.column_sum(f32(1e-5), [0.0], [6.0])
    assert not bounds.column_sum(f32(1e-5), [0.0], [4.0])


def test_product_bounds_the_norm_and_each_element() -> None:
    reference = np.ones((64, 64))
    whole, element = bounds.product(reference * (1 + 0.9e-5), reference, 512)
    assert (bool(whole), bool(element)) == (True, True)
    whole, element = bounds.product(reference * (1 + 1.1e-5), reference, 512)
    assert (bool(whole), bool(element)) == (False, True)
    assert all(bounds.product(reference * (1 + 3.9e-5), reference, 12288))
    one = reference.copy()
    one[3, 5] += 17e-5  # inside the norm of 4096 elements, outside its row
    whole, element = bounds.product(one, reference, 512)
    assert (bool(whole), bool(element)) == (True, False)
    assert element.index == (3, 5)
    assert element.failures == 1


def test_attention_norms() -> None:
    reference = np.ones((2, 8))
    assert bounds.attention(reference * (1 + 2.0**-9), reference, "bf16")
    assert not bounds.attention(reference * (1 + 2.0**-9), reference, "f16")
    assert not bounds.attention(reference * (1 + 2.0**-7), reference, "bf16")
    assert bounds.attention_statistics(reference * (1 + 0.9e-5), reference)
    assert not bounds.attention_statistics(reference * (1 + 1.1e-5), reference)


def test_exact_bits_sees_a_sign_of_zero_and_a_payload() -> None:
    assert bounds.exact_bits(f32(1.0, np.nan), f32(1.0, np.nan))
    assert not bounds.exact_bits(f32(-0.0), f32(0.0))
    quiet, other = (np.array([bits], np.uint32).view(np.float32) for bits in (0x7FC00000, 0x7FFFFFFF))
    assert not bounds.exact_bits(quiet, other)
    assert bounds.exact_bits(quiet, other, nan="f32")
    assert not bounds.exact_bits(quiet, f32(1.0), nan="f32")
    left, right = np.array([0x7FC0], np.uint16), np.array([0x7FFF], np.uint16)
    assert bounds.exact_bits(left, right, nan="bf16")
    assert not bounds.exact_bits(np.array([0x4000], np.uint16), right, nan="bf16")


def test_shapes_and_sizes_must_agree() -> None:
    with pytest.raises(ValueError, match="compare equal shapes"):
        bounds.absolute(f32(1.0), [1.0, 2.0], 1.0)
    with pytest.raises(ValueError, match="got float32"):
        bounds.exact_bits(f32(1.0), np.array([1], np.uint16))


def test_nothing_is_within_every_bound_and_a_failure_says_where() -> None:
    assert bounds.elementwise_f32(f32(), [])
    text = str(bounds.absolute(f32(1.0, 5.0), [1.0, 2.0], 1.0))
    assert text == "absolute: 1 of 2 over; worst 3 of the bound at [1]: got 5.0, reference 2.0"
