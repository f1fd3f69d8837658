"""Literals as nvdisasm writes them, pinned from its output, and exact both ways but for NaN payloads."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coppelius.isa import literals

# read from nvdisasm 13.5.37: FSEL, HADD2.F32, HMNMX2.BF16_V2 and DMUL immediates
F32 = {
    0x00000000: "0",
    0x80000000: "-0.0",
    0x3F800000: "1",
    0x3DCCCCCD: "0.10000000149011611938",
    0x00000001: "1.4012984643248170709e-45",
    0x38D1B717: "9.9999997473787516356e-05",
    0x4E6E6B27: "999999936",
    0x4E6E6B28: "1.00000000000000000000e+09",
    0x4F000000: "2.14748364800000000000e+09",
    0xFF7FFFFF: "-3.40282346638528859812e+38",
    0x7F800000: "+INF",
    0xFF800000: "-INF",
    0x7FC00000: "+QNAN",
    0xFFC00000: "-QNAN",
    0x7FA00000: "+SNAN",
    0xFFFFFFF0: "-QNAN",
}
F16 = {0x0001: "5.9604644775390625e-08", 0x3C00: "1", 0xFC00: "-INF", 0x7C01: "+SNAN", 0x7E00: "+QNAN", 0x8000: "-0.0"}
BF16 = {0x3F80: "1", 0x0001: "9.183549615799121156e-41", 0x7C01: "2.67922517900397105632e+36", 0x7FFF: "+QNAN"}
F64 = {
    0x3FE00000: "0.5",
    0x40000000: "2",
    0x00000002: "4.2439915819305446302e-314",
    0x41D00000: "1.07374182400000000000e+09",
    0x7FF00000: "+INF",
    0x7FF80000: "+QNAN",
    0x7FF00001: "+SNAN",
}


@pytest.mark.parametrize(
    ("text", "parse", "known"),
    [
        (literals.f32_text, literals.parse_f32, F32),
        (literals.f16_text, literals.parse_f16, F16),
        (literals.bf16_text, literals.parse_bf16, BF16),
        (literals.f64_high_text, literals.parse_f64_high, F64),
    ],
)
def test_texts_that_nvdisasm_prints(text: object, parse: object, known: dict[int, str]) -> None:
    assert callable(text)
    assert callable(parse)
    assert {code: text(code).strip() for code in known} == known
    payload_free = {c: t for c, t in known.items() if "NAN" not in t}
    assert {parse(t): t for t in payload_free.values()} == payload_free


def test_a_named_literal_and_negative_zero_are_followed_by_a_space() -> None:
    for code in (0x80000000, 0x7F800000, 0xFFC00000):
        assert literals.f32_text(code).endswith(" ")
    assert not literals.f32_text(0x3F800000).endswith(" ")


def _nan(code: int, exponent: int) -> bool:
    return code & exponent == exponent and code & (exponent & -exponent) - 1 != 0


@pytest.mark.parametrize(
    ("text", "parse", "exponent"),
    [(literals.f16_text, literals.parse_f16, 0x7C00), (literals.bf16_text, literals.parse_bf16, 0x7F80)],
)
def test_all_16_bit_patterns_come_back(text: object, parse: object, exponent: int) -> None:
    assert callable(text)
    assert callable(parse)
    lost = [code for code in range(1 << 16) if parse(text(code)) != code and not _nan(code, exponent)]
    assert lost == []


@given(st.integers(0, (1 << 32) - 1))
def test_32_bit_patterns_come_back(code: int) -> None:
    if not _nan(code, 0x7F800000):
        assert literals.parse_f32(literals.f32_text(code)) == code
    if not _nan(code, 0x7FF00000):
        assert literals.parse_f64_high(literals.f64_high_text(code)) == code


@pytest.mark.parametrize("text", ["", ".5", "0x10", "INF", "nan", "1e400", "+QNAN1", "1,0"])
def test_other_texts_are_no_float(text: str) -> None:
    assert literals.parse_f32(text) is None


def test_a_number_that_the_format_rounds_is_no_literal_of_its_upper_half() -> None:
    assert literals.parse_bf16("0.10000000149011611938") is None
    assert literals.parse_f64_high("0.1") is None


@pytest.mark.parametrize(("text", "value"), [("0x1f", 31), ("-0x4", -4), ("12", 12), ("x", None), ("", None)])
def test_integers(text: str, value: int | None) -> None:
    assert literals.parse_integer(text) == value
