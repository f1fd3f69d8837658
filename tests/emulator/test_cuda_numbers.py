"""Integer, float, half and conversion kernels by nvcc, each compiled four ways, on random and extreme inputs.

Where numpy has the operation exactly, bits are compared; library functions are held to a few ulp in double.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Run = Callable[..., object]
N = 512
EXTREME = np.array([0, 1, 2, 31, 32, 33, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF])


def _words(random: np.random.Generator) -> np.ndarray:
    """Random words, extremes and small numbers among them."""
    x = random.integers(0, 2**32, N, dtype=np.uint32)
    x[: N // 4] = random.choice(EXTREME, N // 4)
    x[N // 4 : N // 2] = random.integers(-40, 40, N // 4).astype(np.uint32)
    return random.permutation(x)


def _floats(random: np.random.Generator) -> np.ndarray:
    """Ordinary floats, random bits, zeros, subnormals, infinities and NaN."""
    x = random.normal(size=N).astype(np.float32)
    x[: N // 4] = random.integers(0, 2**32, N // 4, dtype=np.uint32).view(np.float32)
    special = [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        1.0,
        -1.0,
        2.5,
        3.5,
        1e-45,
        -1e-40,
        3.4e38,
        0.5,
        127.5,
        255.5,
        65504.0,
    ]
    x[N // 4 : N // 2] = random.choice(np.array(special, np.float32), N // 4)
    return random.permutation(x)


def _launch(run: Run, source: str, kernel: str, dtype: type, operations: int, *inputs: np.ndarray) -> np.ndarray:
    out = np.zeros((operations, N), dtype)
    run(source, kernel, 4, 128, out, *inputs, np.int32(N))
    return out


def _same(got: np.ndarray, expected: list[np.ndarray | None]) -> None:
    """Every operation at once: which differ, and the first place of each."""
    wrong = {}
    for k, value in enumerate(expected):
        if value is None:
            continue
        with np.errstate(all="ignore"):
            wanted = np.broadcast_to(value, (N,)).astype(got.dtype)
        differs = ~((got[k] == wanted) | ((got[k] != got[k]) & (wanted != wanted)))
        if differs.any():
            at = int(differs.argmax())
            wrong[k] = f"{int(differs.sum())} differ, at {at}: {got[k][at]!r} is not {wanted[at]!r}"
    assert not wrong, wrong


def test_integers_of_32_bits(run: Run, random: np.random.Generator) -> None:
    u = [_words(random) for _ in range(3)]
    x, y, z = (v.view(np.int32).astype(np.int64) for v in u)
    ux, uy, uz = (v.astype(np.int64) for v in u)
    low24 = [(v << 40) >> 40 for v in (x, y)]
    expected = [x + y, x - y, x * y, x * y + z, (x * y) >> 32, (ux * uy).astype(np.uint64) >> np.uint64(32)]
    expected += [low24[0] * low24[1], (ux & 0xFFFFFF) * (uy & 0xFFFFFF), np.abs(x), -x]
    expected += [np.minimum(x, y), np.maximum(x, y), np.minimum(ux, uy), np.maximum(ux, uy)]
    expected += [(x + y) >> 1, (x + y + 1) >> 1, (ux + uy) >> 1, np.abs(x - y) + z, np.abs(ux - uy) + uz]
    expected += [x * 12 + y * 8 + z, (x + y) * 5 - (z << 4)]
    got = _launch(run, "integer", "arithmetic_s32", np.uint32, 21, *u)
    _same(got, [v.astype(np.uint64).astype(np.uint32) for v in expected])


def test_division_of_32_bits(run: Run, random: np.random.Generator) -> None:
    a, b = _words(random), _words(random)
    b[b == 0] = 3
    a[(a == 0x80000000) & (b == 0xFFFFFFFF)] = 5
    x, y = (v.view(np.int32).astype(np.int64) for v in (a, b))
    ux, uy = a.astype(np.int64), b.astype(np.int64)

    def quotient(p: np.ndarray, q: np.ndarray | int) -> np.ndarray:
        return np.sign(p) * np.sign(q) * (np.abs(p) // np.abs(q))

    expected = [quotient(x, y), x - quotient(x, y) * y, ux // uy, ux % uy, quotient(x, 7), x - 7 * quotient(x, 7)]
    expected += [ux // 10, quotient(x, 16), x - 16 * quotient(x, 16)]
    _same(_launch(run, "integer", "division_s32", np.int32, 9, a, b), [v.astype(np.int32) for v in expected])


def test_integers_of_64_bits(run: Run, random: np.random.Generator) -> None:
    x, y = (random.integers(-(2**63), 2**63, N, dtype=np.int64) for _ in range(2))
    x[:100], y[50:150] = random.integers(-999, 999, 100), random.integers(1, 999, 100)
    y[y == 0] = 1
    pairs = list(zip(x.tolist(), y.tolist(), strict=True))
    mask = 2**64 - 1

    def each(formula: Callable[[int, int], int]) -> np.ndarray:
        return np.array([formula(a, b) & mask for a, b in pairs], np.uint64).view(np.int64)

    def quotient(a: int, b: int) -> int:
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)

    formulas = [
        lambda a, b: a + b,
        lambda a, b: a - b,
        lambda a, b: a * b,
        lambda a, b: a * b >> 64,
        lambda a, b: (a & mask) * (b & mask) >> 64,
        quotient,
        lambda a, b: a - quotient(a, b) * b,
        lambda a, b: (a & mask) // (b & mask),
        lambda a, b: (a & mask) % (b & mask),
        lambda a, b: a << (b & 63),
        lambda a, b: a >> (b & 63),
        lambda a, b: (a & mask) >> (b & 63),
        min,
        lambda a, b: max(a & mask, b & mask),
        lambda a, b: 1 if a < b else 2 if (a & mask) < (b & mask) else 3,
        lambda a, _: abs(a),
        lambda a, _: -a,
        lambda a, b: _signed32(a) * _signed32(b),
        lambda a, b: (a & 0xFFFFFFFF) * (b & 0xFFFFFFFF) + (b & mask),
        lambda a, _: quotient(a, 1000),
    ]
    _same(_launch(run, "integer", "arithmetic_s64", np.int64, 20, x, y), [each(f) for f in formulas])


def _signed32(value: int) -> int:
    return (value & 0xFFFFFFFF ^ 0x80000000) - 0x80000000


def test_logic(run: Run, random: np.random.Generator) -> None:
    x, y, z = (_words(random) for _ in range(3))
    s, by = x.view(np.int32), y & np.uint32(31)
    expected = [x & y, x | y, x ^ y, ~x, x & ~y, (x & y) | (y & z) | (x & z), x ^ y ^ z, (x & y) | (~x & z)]
    expected += [x << by, x >> by, (s >> by.astype(np.int32)).view(np.uint32), x << np.uint32(7)]
    expected += [(s >> 9).view(np.uint32), (x << np.uint32(13)) | (x >> np.uint32(19)), x & np.uint32(0x00FF00FF)]
    expected += [(x & np.uint32(0xF0F0F0F0)) ^ (y | np.uint32(0x12345678))]
    _same(_launch(run, "integer", "logic_u32", np.uint32, 16, x, y, z), expected)


def test_bits(run: Run, random: np.random.Generator) -> None:
    x, y = _words(random), _words(random)
    pairs = list(zip(x.tolist(), y.tolist(), strict=True))

    def each(formula: Callable[[int, int], int]) -> np.ndarray:
        return np.array([formula(a, b) & 0xFFFFFFFF for a, b in pairs], np.uint32)

    def lowest(v: int) -> int:
        return (v & -v).bit_length()

    def differing(v: int) -> int:
        return (v ^ 0xFFFFFFFF if v >> 31 else v).bit_length() - 1

    def field(a: int, b: int) -> int:
        return a >> (b & 31) & ((1 << (b >> 8 & 31)) - 1)

    def permuted(a: int, b: int, selector: int) -> int:
        pair = a | b << 32
        out = 0
        for k in range(4):
            code = selector >> 4 * k & 15
            byte = pair >> 8 * (code & 7) & 255
            out |= (255 * (byte >> 7) if code & 8 else byte) << 8 * k
        return out

    wide = [a << 32 | b for a, b in pairs]
    expected: list[np.ndarray | None] = [
        each(lambda a, _: a.bit_count()),
        each(lambda a, _: 32 - a.bit_length()),
        each(lambda a, _: lowest(a)),
        each(lambda a, _: int(f"{a:032b}"[::-1], 2)),
        np.array([w.bit_count() for w in wide]),
        np.array([64 - w.bit_length() for w in wide]),
        np.array([lowest(w) for w in wide]),
        np.array([int(f"{w:064b}"[::-1], 2) & 0xFFFFFFFF for w in wide]),
        each(lambda a, _: a.bit_length() - 1),
        each(lambda a, _: differing(a)),
        each(lambda a, _: 32 - a.bit_length() if a else -1),
        each(field),
    ]
    expected += [None] * (22 - 12)
    expected += [each(lambda a, b: permuted(a, b, 0x5410)), each(lambda a, b: permuted(a, b, a & 0x7777))]
    expected += [None] * 6
    a, b, c = (v.astype(np.uint64) for v in (x, y, x + y))
    table = sum((0x6B >> k & 1) * _minterm(a, b, c, k) for k in range(8))
    expected.append(table & np.uint64(0xFFFFFFFF))
    _same(_launch(run, "integer", "bits_u32", np.uint32, 31, x, y), expected)


def _minterm(a: np.ndarray, b: np.ndarray, c: np.ndarray, k: int) -> np.ndarray:
    chosen = [v if k >> shift & 1 else ~v for v, shift in ((a, 2), (b, 1), (c, 0))]
    return chosen[0] & chosen[1] & chosen[2] & np.uint64(0xFFFFFFFF)


def test_carry_chains(run: Run, random: np.random.Generator) -> None:
    x, y = (random.integers(0, 2**32, (N, 4), dtype=np.uint32) for _ in range(2))
    x[:64, :3] = 0xFFFFFFFF
    out = np.zeros((N, 8), np.uint32)
    run("integer", "carries_u128", 4, 128, out, x, y, np.int32(N))
    for i in range(N):
        a, b = (int.from_bytes(v[i].tobytes(), "little") for v in (x, y))
        both = (a + b) % 2**128, (a - b) % 2**128
        assert out[i].tobytes() == b"".join(v.to_bytes(16, "little") for v in both), i
    u, w, product = random.integers(0, 2**64, N, dtype=np.uint64), random.integers(0, 2**64, N, dtype=np.uint64), None
    product = np.zeros((N, 2), np.uint64)
    run("integer", "multiply_u64_wide", 4, 128, product, u, w, np.int32(N))
    expected = [[int(a) * int(b) % 2**64, int(a) * int(b) >> 64] for a, b in zip(u, w, strict=True)]
    np.testing.assert_array_equal(product, np.array(expected, np.uint64))


def test_dot_products(run: Run, random: np.random.Generator) -> None:
    x, y, z = (_words(random) for _ in range(3))
    sx, sy = (v.view(np.int8).reshape(N, 4).astype(np.int64) for v in (x, y))
    ux, uy = (v.view(np.uint8).reshape(N, 4).astype(np.int64) for v in (x, y))
    hx, hux = x.view(np.int16).reshape(N, 2).astype(np.int64), x.view(np.uint16).reshape(N, 2).astype(np.int64)
    add = z.astype(np.int64)
    expected = [(sx * sy).sum(1), (ux * uy).sum(1), (sx * uy).sum(1), (hx * sy[:, :2]).sum(1), (hx * sy[:, 2:]).sum(1)]
    expected.append((hux * uy[:, :2]).sum(1))
    got = _launch(run, "integer", "dot_products_s32", np.uint32, 6, x, y, z)
    _same(got, [((v + add) & 0xFFFFFFFF).astype(np.uint32) for v in expected])


def test_single_precision(run: Run, random: np.random.Generator) -> None:
    x, y, z = (_floats(random) for _ in range(3))
    with np.errstate(all="ignore"):
        total = (x.astype(np.float64) * y + z).astype(np.float32)
        exact = [x + y, None, None, None, x - y, x * y, None, None, None, None, None, None, None]
        exact += [np.nan_to_num(np.clip(x, 0, 1), nan=0.0), None, np.abs(x) + -y, np.fmin(x, y), np.fmax(x, y)]
        exact += [np.minimum(x, y), np.maximum(x, y), None, np.copysign(x, y), None]
    got = _launch(run, "floating", "arithmetic_f32", np.float32, 23, x, y, z)
    _same(got, exact)
    ordinary = np.isfinite(x) & np.isfinite(y) & np.isfinite(z) & (np.abs(total) > 1e-30) & (np.abs(total) < 1e30)
    np.testing.assert_allclose(got[9][ordinary], total[ordinary], rtol=2**-23)
    with np.errstate(all="ignore"):
        down, up = got[3], got[2]
        finite = np.isfinite(x) & np.isfinite(y)
        true = x[finite].astype(np.float64) + y[finite]
        assert (down[finite] <= true).all()
        assert (up[finite] >= true).all()


def test_exact_division_and_roots(run: Run, random: np.random.Generator) -> None:
    x, y = np.abs(_floats(random)), _floats(random)
    with np.errstate(all="ignore"):
        expected = [x / y, None, None, None, np.float32(1) / x, None, np.sqrt(x), None, None]
    _same(_launch(run, "floating", "exact_f32", np.float32, 9, x, y), expected)


def test_comparisons(run: Run, random: np.random.Generator) -> None:
    x, y = _floats(random), _floats(random)
    nan = np.isnan(x) | np.isnan(y)
    with np.errstate(all="ignore"):
        expected = [x < y, x <= y, x == y, x != y, ~(x < y), ~(x >= y), nan, np.isfinite(x) & (x > 0)]
        expected += [np.isinf(x) ^ np.signbit(y), (x > 0) & (y > 0) & (x + y < 10)]
        expected += [((x < 1) | (y < 1)) != (x * y > 2), ((x < y) | nan) * 0xFFFFFFFF]
        expected += [np.where((x > 0) & (y < 1), 3, 5), np.where(x >= 0, 7, 9)]
    _same(_launch(run, "floating", "compare_f32", np.uint32, 14, x, y), [np.asarray(v, np.uint32) for v in expected])


def test_double_precision(run: Run, random: np.random.Generator) -> None:
    x, y, z = (_floats(random).astype(np.float64) * random.normal(size=N) for _ in range(3))
    with np.errstate(all="ignore"):
        expected = [x + y, None, None, None, x * y, None, None, None, None, np.fmin(x, y), np.fmax(x, y)]
        expected += [np.abs(x) - y, x / y, None, np.sqrt(x), None, 1 / y, None, np.where(x < y, x, z), None]
    _same(_launch(run, "floating", "arithmetic_f64", np.float64, 20, x, y, z), expected)


def test_library_functions(run: Run, random: np.random.Generator) -> None:
    x, y = random.uniform(-9, 9, N).astype(np.float32), random.uniform(-0.9, 0.9, N).astype(np.float32)
    got = _launch(run, "floating", "functions_f32", np.float32, 12, x, y)
    a, b = x.astype(np.float64), y.astype(np.float64)
    expected = [np.sin(a), np.cos(a), np.tan(b), np.arcsin(b), np.arctan2(a, b), np.exp(a), np.exp2(a), np.expm1(a)]
    expected += [np.log(abs(a)), np.log2(abs(a)), np.log1p(abs(a)), abs(a) ** b]
    for k, value in enumerate(expected):
        np.testing.assert_allclose(got[k], value, rtol=1e-6, atol=2e-7, err_msg=f"function {k}")
    doubles = np.zeros((7, N))
    run("floating", "functions_f64", 4, 128, doubles, a, b, np.int32(N))
    for k, value in enumerate([np.exp(a), np.log(abs(a)), np.sin(b), np.cos(b), abs(a) ** b, np.arctan(a)]):
        np.testing.assert_allclose(doubles[k], value, rtol=1e-14, atol=1e-15, err_msg=f"double function {k}")


def test_pairs_of_halves(run: Run, random: np.random.Generator) -> None:
    x, y, z = (random.normal(size=2 * N).astype(np.float16) for _ in range(3))
    x[:32] = np.array([0, -0.0, np.inf, -np.inf, np.nan, 65504, 6e-8, 1], np.float16).repeat(4)
    out = np.zeros((15, 2 * N), np.float16)
    run("half", "half2_arithmetic", 4, 128, out, x, y, z, np.int32(N))
    with np.errstate(all="ignore"):
        fused = (x.astype(np.float64) * y + z).astype(np.float16)
        clip = [np.nan_to_num(np.clip(v, 0, 1), nan=0.0) for v in (x + y, x * y, fused)]
        relu = np.where(np.isnan(fused), fused, np.maximum(fused, 0))
        expected = [x + y, x - y, x * y, fused, relu, *clip, -x, np.abs(x), np.fmin(x, y), np.fmax(x, y)]
        expected += [np.minimum(x, y), np.maximum(x, y), (-x.astype(np.float64) * y + z).astype(np.float16)]
    for k, value in enumerate(expected):
        np.testing.assert_array_equal(out[k], value, err_msg=f"operation {k}")


def test_float_to_integer(run: Run, random: np.random.Generator) -> None:
    x = _floats(random)
    x[np.isnan(x)] = 0
    got = _launch(run, "convert", "float_to_int", np.int32, 14, x)
    wide = x.astype(np.float64)

    def clamp(v: np.ndarray, low: float, high: float) -> np.ndarray:
        return np.clip(v, low, high).astype(np.int64).astype(np.uint64).astype(np.uint32).view(np.int32)

    s32, u32 = (-(2.0**31), 2.0**31 - 1), (0.0, 2.0**32 - 1)
    expected = [clamp(f(wide), *s32) for f in (np.rint, np.trunc, np.ceil, np.floor)]
    expected += [clamp(f(wide), *u32) for f in (np.rint, np.trunc)]
    expected += [None] * 4 + [clamp(np.rint(wide), -128, 127), clamp(np.trunc(wide), 0, 255)]
    _same(got, [*expected, None, (x.view(np.uint32) ^ 0x80000000).view(np.int32)])


def test_integer_to_float(run: Run, random: np.random.Generator) -> None:
    x, w = _words(random).view(np.int32), random.integers(-(2**63), 2**63, N, dtype=np.int64)
    got = _launch(run, "convert", "int_to_float", np.float32, 15, x, w)
    u = x.view(np.uint32)
    expected = [x, u, x.astype(np.int16), u.astype(np.uint16), x.astype(np.int8), u.astype(np.uint8)]
    expected += [(u >> np.uint32(8)).astype(np.uint8), (x >> 24).astype(np.int8), w, w.view(np.uint64)]
    _same(got, [v.astype(np.float32) for v in expected] + [None] * 5)
    assert (np.abs(got[10].astype(np.float64)) <= np.abs(x.astype(np.float64))).all()


def test_to_and_from_halves(run: Run, random: np.random.Generator) -> None:
    f, x = _floats(random), _words(random).view(np.int32)
    d = random.normal(size=N) * 100
    got = _launch(run, "convert", "to_half", np.uint16, 13, f, x, d)
    with np.errstate(all="ignore"):
        expected = [f.astype(np.float16), x.astype(np.float16), None, x.astype(np.int16).astype(np.float16), None]
        numbers = got.view(np.float16)
        _same(numbers[[0, 4, 5, 6, 7]], expected)
        _same(numbers[[8]], [d.astype(np.float16)])
    h, b = random.normal(size=N).astype(np.float16) * 50, random.integers(0, 0x4500, N, dtype=np.uint16)
    out = np.zeros((11, N), np.float32)
    run("convert", "from_half", 4, 128, out, h, b, np.int32(N))
    wide = (b.astype(np.uint32) << 16).view(np.float32)
    expected = [h, np.rint(h), np.trunc(h), np.ceil(h), np.floor(h), np.maximum(np.trunc(h), 0), None]
    _same(out, [*expected, np.trunc(h), wide, np.trunc(np.minimum(wide, 2**31)), h])


def test_whole_numbers_and_packing(run: Run, random: np.random.Generator) -> None:
    x, d = _floats(random), random.normal(size=N) * 1e4
    got = _launch(run, "convert", "round_whole", np.float64, 10, x, d)

    def away(v: np.ndarray) -> np.ndarray:
        return np.copysign(np.floor(np.abs(v) + 0.5), v)

    with np.errstate(all="ignore"):
        whole = np.where(np.abs(x) < 2**23, away(x.astype(np.float64)), x)
        _same(got, [np.rint(x), np.trunc(x), np.ceil(x), np.floor(x), whole, np.rint(d), np.trunc(d), np.ceil(d),
                    np.floor(d), away(d)])  # fmt: skip
    i, w = _words(random).view(np.int32), random.integers(-(2**63), 2**63, N, dtype=np.int64)
    narrow = _launch(run, "convert", "narrow_int", np.int32, 12, i, w)
    u = i.view(np.uint32)
    low = np.clip(i, -32768, 32767).astype(np.uint32) & np.uint32(0xFFFF)
    expected = [np.clip(i, -128, 127), np.clip(i, 0, 255), np.clip(i, -32768, 32767), np.minimum(u, 65535)]
    expected += [np.clip(w, -(2**31), 2**31 - 1), np.maximum(i, 0), i.astype(np.int8), i.astype(np.int16)]
    expected += [(u >> np.uint32(16)).astype(np.uint8)]
    packed = low << np.uint32(16) | np.clip(i >> 3, -32768, 32767).astype(np.uint32) & np.uint32(0xFFFF)
    _same(narrow, [*expected, packed.view(np.int32), None, None])
