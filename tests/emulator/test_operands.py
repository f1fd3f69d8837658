"""Every way an operand may come: register, constant, immediate, uniform register, sign, magnitude, half, guard, RZ, PT.

One instruction a launch, on random and extreme words, in whole warps, part of them, and part of their lanes.
"""

# ruff: noqa: ARG005 - the formulas of one table share their arguments

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from coppelius.emulator.launch import launch
from coppelius.emulator.memory import Memory
from coppelius.emulator.parameters import pack_naturally

Assemble = Callable[..., bytes]
N = 256
EXTREME = [0, 1, 2, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x7F800000, 0xFF800000, 0x7FC00001, 0x3F800000, 0x00000001]
CONSTANT, SCALAR = 0x40490FDB, np.float32(np.pi)


def _inputs(random: np.random.Generator) -> np.ndarray:
    x = random.integers(0, 2**32, (N, 4), dtype=np.uint32)
    x[::3] = random.choice(np.array(EXTREME, np.uint32), x[::3].shape)
    x[1::3] = random.normal(size=x[1::3].shape).astype(np.float32).view(np.uint32)
    return x


# R8..R11 hold the thread's four words, R0 its index, UR8 and c[0x0][0x170] the constant; the result goes to R12 and R13
HEAD = (
    "S2R R0, SR_TID.X",
    "MOV R4, 0x10",
    "IMAD.WIDE.U32 R2, R0, R4, c[0x0][0x168]",
    "LDG.E.128 R8, [R2]",
    "MOV R4, 0x8",
    "IMAD.WIDE.U32 R2, R0, R4, c[0x0][0x160]",
    "ULDC UR8, c[0x0][0x170]",
    "MOV R12, 0x7",
    "MOV R13, 0x7",
    "ISETP.GE.AND P1, PT, R0, 0x30, PT",
)
TAIL = ("STG.E.64 [R2], R12", "EXIT")


def _result(assembled: Assemble, x: np.ndarray, *lines: str) -> np.ndarray:
    out, memory = np.zeros((N, 2), np.uint32), Memory()
    parameters = pack_naturally([out, x, np.uint32(CONSTANT)], memory)
    launch(
        assembled(*HEAD, *lines, *TAIL),
        grid=(1, 1, 1),
        block=(N, 1, 1),
        parameters=parameters,
        memory=memory,
    )
    return out


def _floats(x: np.ndarray) -> tuple[np.ndarray, ...]:
    return tuple(np.ascontiguousarray(x[:, k]).view(np.float32) for k in range(4))


def _same_floats(bits: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_array_equal(np.ascontiguousarray(bits).view(np.float32), expected.astype(np.float32))


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        ("FADD R12, R8, R9", lambda a, b, c: a + b),
        ("FADD R12, -R8, |R9|", lambda a, b, c: -a + np.abs(b)),
        ("FADD R12, -|R8|, -R9", lambda a, b, c: -np.abs(a) - b),
        ("FADD R12, R8, c[0x0][0x170]", lambda a, b, c: a + SCALAR),
        ("FADD R12, R8, -|c[0x0][0x170]|", lambda a, b, c: a - SCALAR),
        ("FADD R12, R8, UR8", lambda a, b, c: a + SCALAR),
        ("FADD R12, R8, -UR8", lambda a, b, c: a - SCALAR),
        ("FADD R12, R8, 1.5", lambda a, b, c: a + np.float32(1.5)),
        ("FADD R12, RZ, R9", lambda a, b, c: np.float32(0) + b),
        ("FMUL R12, R8, c[0x0][0x170]", lambda a, b, c: a * SCALAR),
        ("FMUL R12, -R8, UR8", lambda a, b, c: -a * SCALAR),
        ("FFMA R12, RZ, R9, R10", lambda a, b, c: np.float32(0) * b + c),
        ("FFMA R12, R8, 1, -R10", lambda a, b, c: a - c),
        ("FFMA R12, R8, R9, RZ", lambda a, b, c: a * b + np.float32(0)),
        ("FSEL R12, R8, -R9, P1", lambda a, b, c: np.where(np.arange(N) >= 0x30, a, -b)),
        ("FSEL R12, R8, R9, !P1", lambda a, b, c: np.where(np.arange(N) < 0x30, a, b)),
    ],
)
def test_floats(assembled: Assemble, random: np.random.Generator, text: str, formula: Callable[..., Any]) -> None:
    x = _inputs(random)
    a, b, c, _ = _floats(x)
    with np.errstate(all="ignore"):
        expected = formula(a, b, c)
    _same_floats(_result(assembled, x, text)[:, 0], expected)


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        ("IADD3 R12, R8, R9, R10", lambda a, b, c: a + b + c),
        ("IADD3 R12, -R8, R9, -R10", lambda a, b, c: b - a - c),
        ("IADD3 R12, R8, -0x4, RZ", lambda a, b, c: a - np.uint32(4)),
        ("IADD3 R12, R8, -c[0x0][0x170], RZ", lambda a, b, c: a - np.uint32(CONSTANT)),
        ("IADD3 R12, R8, UR8, R10", lambda a, b, c: a + np.uint32(CONSTANT) + c),
        ("IMAD R12, R8, R9, -R10", lambda a, b, c: a * b - c),
        ("IMAD R12, R8, c[0x0][0x170], R10", lambda a, b, c: a * np.uint32(CONSTANT) + c),
        ("IMAD R12, R8, R9, c[0x0][0x170]", lambda a, b, c: a * b + np.uint32(CONSTANT)),
        ("IMAD R12, R8, -0x3, R10", lambda a, b, c: c - np.uint32(3) * a),
        ("LOP3.LUT R12, R8, 0xff00ff, R10, 0x1e, !PT", lambda a, b, c: a ^ (np.uint32(0xFF00FF) | c)),
        ("LOP3.LUT R12, R8, UR8, R10, 0x80, !PT", lambda a, b, c: a & np.uint32(CONSTANT) & c),
        ("SEL R12, R8, 0x5, P1", lambda a, b, c: np.where(np.arange(N) >= 0x30, a, 5)),
        ("@P1 MOV R12, R8", lambda a, b, c: np.where(np.arange(N) >= 0x30, a, 7)),
        ("@!P1 MOV R12, c[0x0][0x170]", lambda a, b, c: np.where(np.arange(N) < 0x30, CONSTANT, 7)),
        ("@!PT MOV R12, R8", lambda a, b, c: np.full(N, 7)),
        ("MOV RZ, R8", lambda a, b, c: np.full(N, 7)),
        ("LEA R12, R8, R9, 0x3", lambda a, b, c: (a << np.uint32(3)) + b),
        ("SHF.R.S32.HI R12, RZ, 0x4, R8", lambda a, b, c: (a.view(np.int32) >> 4).view(np.uint32)),
        ("IMNMX R12, R8, R9, PT", lambda a, b, c: np.minimum(a.view(np.int32), b.view(np.int32)).view(np.uint32)),
        ("IMNMX.U32 R12, R8, R9, !PT", lambda a, b, c: np.maximum(a, b)),
    ],
)
def test_integers(assembled: Assemble, random: np.random.Generator, text: str, formula: Callable[..., Any]) -> None:
    x = _inputs(random)
    expected = np.broadcast_to(formula(*(np.ascontiguousarray(x[:, k]) for k in range(3))), (N,))
    out = _result(assembled, x, text)
    np.testing.assert_array_equal(out[:, 0], expected.astype(np.uint32))
    np.testing.assert_array_equal(out[:, 1], 7)


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        ("IMAD.WIDE.U32 R12, R8, R9, R10", lambda u, s, pair: u[0] * u[1] + pair),
        ("IMAD.WIDE R12, R8, R9, -R10", lambda u, s, pair: s[0] * s[1] - pair),
        ("IMAD.WIDE R12, R8, -0x5, RZ", lambda u, s, pair: s[0] * -5),
        ("DADD R12, RZ, R10", None),
        ("DMUL R12, R10, 2", None),
    ],
)
def test_pairs(assembled: Assemble, random: np.random.Generator, text: str, formula: Any) -> None:
    x = _inputs(random)
    out = np.ascontiguousarray(_result(assembled, x, text)).view(np.uint64)[:, 0]
    pair = np.ascontiguousarray(x[:, 2:]).view(np.uint64)[:, 0]
    if formula is None:
        value = pair.view(np.float64)
        with np.errstate(all="ignore"):
            expected = 0.0 + value if "ADD" in text else value * 2
        np.testing.assert_array_equal(out.view(np.float64), expected)
        return
    u = [[int(v) for v in x[:, k]] for k in range(2)]
    s = [[int(v) for v in np.ascontiguousarray(x[:, k]).view(np.int32)] for k in range(2)]
    expected = [formula((u[0][i], u[1][i]), (s[0][i], s[1][i]), int(pair[i])) % 2**64 for i in range(N)]
    np.testing.assert_array_equal(out, np.array(expected, np.uint64))


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        ("HADD2 R12, R8, R9", lambda a, b: a + b),
        ("HADD2 R12, R8.H0_H0, R9.H1_H1", lambda a, b: a[:, [0, 0]] + b[:, [1, 1]]),
        ("HADD2 R12, -|R8|, R9.H0_H0", lambda a, b: -np.abs(a) + b[:, [0, 0]]),
        ("HMUL2 R12, R8.H1_H1, R9", lambda a, b: a[:, [1, 1]] * b),
        ("HADD2 R12, R8, 2, -3", lambda a, b: a + np.array([-3, 2], np.float16)),
    ],
)
def test_halves(assembled: Assemble, random: np.random.Generator, text: str, formula: Callable[..., Any]) -> None:
    x = _inputs(random)
    a, b = (np.ascontiguousarray(x[:, k]).view(np.float16).reshape(N, 2) for k in (0, 1))
    out = np.ascontiguousarray(_result(assembled, x, text)[:, 0]).view(np.float16).reshape(N, 2)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(out, formula(a, b))


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        ("PLOP3.LUT P2, PT, R8.SIGN, R9.SIGN, R10.SIGN, 0x96, 0x0", lambda a, b, c: a ^ b ^ c),
        ("PLOP3.LUT P2, PT, P1, R9.SIGN, R10.SIGN, 0x80, 0x0", lambda a, b, c: (np.arange(N) >= 0x30) & b & c),
        ("PLOP3.LUT P2, PT, P1, R9.SIGN, PT, 0x20, 0x0", lambda a, b, c: (np.arange(N) >= 0x30) & ~b),
        ("PLOP3.LUT P2, PT, PT, R9.SIGN, P1, 0x40, 0x0", lambda a, b, c: b & (np.arange(N) < 0x30)),
    ],
)
def test_sign_bits(assembled: Assemble, random: np.random.Generator, text: str, formula: Callable[..., Any]) -> None:
    x = _inputs(random)
    signs = (x[:, k] >> 31 != 0 for k in range(3))
    out = _result(assembled, x, text, "SEL R12, R8, 0x5, P2")
    np.testing.assert_array_equal(out[:, 0], np.where(formula(*signs), x[:, 0], 5))


def test_apart_and_together_compute_the_same(assembled: Assemble, random: np.random.Generator) -> None:
    """The same instructions after a split by lanes, by warps, and in whole warps."""
    x = _inputs(random)
    lines = ("FFMA R12, R8, R9, R10", "PRMT R13, R8, 0x7250, R9")
    whole = _result(assembled, x, *lines)
    for lanes in ("R0, 0x1", "R0, 0x20", "R0, 0x43"):
        apart = (
            f"LOP3.LUT P2, RZ, {lanes}, RZ, 0xc0, !PT",
            "BSSY B0, 0x120",
            "@P2 BRA 0x100",
            *lines,
            "BRA 0x120",
            *lines,
            "BSYNC B0",
        )
        np.testing.assert_array_equal(_result(assembled, x, *apart), whole, err_msg=lanes)
