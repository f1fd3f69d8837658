import math

import numpy as np
import pytest

from coppelius.emulator.numerics import mufu
from coppelius.emulator.numerics.rounding import F32, Rounding

pytestmark = pytest.mark.filterwarnings("error")  # no warning may leak
NAN, INF, ONE = 0x7FFFFFFF, 0x7F800000, 0x3F800000
NEGATIVE = 0x80000000
TINY, SMALL = 0x00000001, 0x00800000

# function -> (input, result), by the tables of the PTX manual
SPECIAL = {
    "RCP": [(0, INF), (NEGATIVE, 0xFF800000), (INF, 0), (0xFF800000, NEGATIVE), (0x7FC00001, NAN), (TINY, INF)],
    "RSQ": [(0, INF), (NEGATIVE, 0xFF800000), (INF, 0), (0xBF800000, NAN), (TINY, INF), (0x40800000, 0x3F000000)],
    "SQRT": [(0, 0), (NEGATIVE, NEGATIVE), (INF, INF), (0xBF800000, NAN), (TINY, 0), (0x40800000, 0x40000000)],
    "LG2": [(0, 0xFF800000), (NEGATIVE, 0xFF800000), (TINY, 0xFF800000), (ONE, 0), (0xBF800000, NAN), (INF, INF)],
    "EX2": [(0, ONE), (TINY, ONE), (0xFF800000, 0), (INF, INF), (0xC3000000, 0), (0x43000000, INF), (0xFFC00000, NAN)],
    "SIN": [(0, 0), (NEGATIVE, NEGATIVE), (INF, NAN), (0x3E800000, ONE), (0x3F400000, 0xBF800000), (ONE, 0)],
    "COS": [(0, ONE), (NEGATIVE, ONE), (INF, NAN), (0x3E800000, 0), (0x3F000000, 0xBF800000), (0x4B000001, ONE)],
    "TANH": [(0, 0), (NEGATIVE, NEGATIVE), (TINY, TINY), (INF, ONE), (0xFF800000, 0xBF800000), (0x7FC00000, NAN)],
}


@pytest.mark.parametrize("function", SPECIAL)
def test_special_values(function):
    given, want = zip(*SPECIAL[function], strict=True)
    got = mufu.mufu(np.array(given, np.uint32), function).tolist()
    # an exact zero of COS and the sign of a whole turn's SIN are not pinned by the tables
    assert [g & 0x7FFFFFFF if w == 0 else g for g, w in zip(got, want, strict=True)] == list(want)


EXACT = {"RCP": lambda x: 1 / x, "RSQ": lambda x: 1 / math.sqrt(x), "SQRT": math.sqrt, "LG2": math.log2}
EXACT |= {"EX2": lambda x: 2.0**x, "TANH": math.tanh}
EXACT |= {"SIN": lambda x: math.sin(2 * math.pi * x), "COS": lambda x: math.cos(2 * math.pi * x)}


@pytest.mark.parametrize("function", EXACT)
def test_results_lie_within_half_a_unit_of_the_libm(function, twin):
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.normal(size=200), rng.uniform(-1, 1, 100)]).astype(np.float32)
    x = np.abs(x) if function in ("RSQ", "SQRT", "LG2") else x
    got = mufu.mufu(x.view(np.uint32), function)
    for value, bits in zip(x.tolist(), got.tolist(), strict=True):
        want = EXACT[function](value)
        # the libm's own error and the reduction's differ in the last bits of a double
        slack = abs(want) * 1e-14 + (1e-15 if function in ("SIN", "COS") else 0)
        near = [twin.encode(twin.Fraction(want + d), F32, Rounding.RN) for d in (-slack, slack)]
        assert min(near) <= bits <= max(near), (value, hex(bits))


def test_results_and_inputs_are_flushed():
    big = np.float32(2.0**127).view(np.uint32)
    assert mufu.mufu(np.array([big, big | NEGATIVE], np.uint32), "RCP").tolist() == [0, NEGATIVE]
    assert mufu.mufu(np.float32(-126.5).view(np.uint32), "EX2").tolist() == [0]
    assert mufu.mufu(np.float32(-126).view(np.uint32), "EX2").tolist() == [SMALL]


def test_high_words_of_doubles():
    values = np.array([1.0, 3.0, -0.5, 2.0**-1030, np.inf, 0.0, -0.0, np.nan, 1e300])
    high = (values.view(np.uint64) >> np.uint64(32)).astype(np.uint32)
    got = mufu.mufu(high, "RCP64H").tolist()
    assert got[3:8] == [0x7FF00000, 0, 0x7FF00000, 0xFFF00000, 0x7FFFFFFF]
    assert got[0] == 0x3FF00000
    assert got[2] == 0xC0000000
    for function, power in (("RCP64H", -1), ("RSQ64H", -0.5)):
        x = np.array([1.0, 3.0, 7e-5, 1e300])
        top = (x.view(np.uint64) >> np.uint64(32)).astype(np.uint32)
        seen = (top.astype(np.uint64) << np.uint64(32)).view(np.float64)
        result = (mufu.mufu(top, function).astype(np.uint64) << np.uint64(32)).view(np.float64)
        assert (np.abs(result / seen**power - 1) <= 2.0**-21).all()
    assert mufu.mufu(np.array([0xBFF00000], np.uint32), "RSQ64H").tolist() == [0x7FFFFFFF]


def test_f16_variants_keep_subnormals():
    x = np.array([0x0001, 0x8001, 0x0000, 0x7C00, 0x7E00, 0xCC00], np.uint16)
    assert mufu.mufu_f16(x, "TANH").tolist() == [0x0001, 0x8001, 0, 0x3C00, 0x7FFF, 0xBC00]
    assert mufu.mufu_f16(x, "EX2").tolist() == [0x3C00, 0x3C00, 0x3C00, 0x7C00, 0x7FFF, 0x0100]


def test_every_function_has_a_bound():
    assert set(mufu.FUNCTIONS) | {"EX2.F16", "TANH.F16"} == set(mufu.BOUNDS)
