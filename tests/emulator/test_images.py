"""The first images, built and encoded, on the emulator: bits against numpy, schedules honoured.

Counts around every edge of a block run strictly; the count that the images are meant for runs fast.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from coppelius import catalog
from coppelius.emit import emit
from coppelius.emulator.launch import Report, launch
from coppelius.emulator.memory import Memory
from coppelius.emulator.parameters import pack_parameters
from coppelius.program.encoding import encode_listing

EDGES = (1, 3, 255, 1023, 1025)
MEANT = 6_291_456


@cache
def _built(identity: str) -> tuple[dict[str, Any], bytes]:
    image = next(i for i in catalog.IMAGES if i.identity == identity)
    declared = catalog.declaration(image)
    emitted = emit(
        image.kernel,
        image.options,
        parameters=declared["parameters"],
        registers=declared["registers"],
        block_x=declared["block_x"],
    )
    return declared, encode_listing(emitted.listing)


def _run(identity: str, grid: tuple[int, int, int], *values: Any, mode: str = "strict") -> Report:
    declared, code = _built(identity)
    memory = Memory()
    rows = [(p["kind"], p["type"], p["offset"]) for p in declared["parameters"]]
    return launch(
        code,
        grid=grid,
        block=(declared["block_x"], 1, 1),
        parameters=pack_parameters(rows, values, memory),
        memory=memory,
        shared_bytes=declared["shared_bytes"],
        kernel=identity,
        mode=mode,
    )


@pytest.fixture(params=[*EDGES, MEANT])
def count(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def _elementwise(identity: str, count: int, *values: Any) -> None:
    _run(identity, (-(-count // 1024), 1, 1), *values, mode="fast" if count == MEANT else "strict")


def test_moves(count: int, random: np.random.Generator) -> None:
    out, source = np.zeros(count, np.uint32), random.integers(0, 2**32, count, dtype=np.uint32)
    _elementwise("fill", count, out, count, 0xDEAD)
    assert (out == 0xDEAD).all()
    _elementwise("copy", count, out, source, count)
    np.testing.assert_array_equal(out, source)


def test_arithmetic(count: int, random: np.random.Generator) -> None:
    a, b = (random.normal(size=count).astype(np.float32) for _ in range(2))
    a[: count // 3] *= np.float32(1e-38)  # subnormals are kept
    out = np.zeros(count, np.float32)
    _elementwise("add", count, out, a, b, count)
    np.testing.assert_array_equal(out, a + b)
    _elementwise("scale", count, out, a, 0.3, count)
    np.testing.assert_array_equal(out, a * np.float32(0.3))


def test_casts(count: int, random: np.random.Generator) -> None:
    x, half = random.normal(size=count).astype(np.float32) * 1000, np.zeros(count, np.float16)
    _elementwise("cast-down", count, half, x, count)
    np.testing.assert_array_equal(half, x.astype(np.float16))
    out = np.zeros(count, np.float32)
    _elementwise("cast-up", count, out, half, count)
    np.testing.assert_array_equal(out, half.astype(np.float32))


def test_gather_writes_zeros_for_unknown_tokens(random: np.random.Generator) -> None:
    table, tokens = random.normal(size=(90, 512)).astype(np.float32), random.integers(0, 100, 40, dtype=np.uint32)
    out = np.ones((40, 512), np.float32)
    _run("gather", (40, 1, 1), out, table, tokens, 90)
    expected = np.where((tokens < 90)[:, None], table[np.minimum(tokens, 89)], 0)
    np.testing.assert_array_equal(out, expected)


def test_layernorm(random: np.random.Generator) -> None:
    rows = 24
    x = (random.normal(size=(rows, 512)) * 3 + 7).astype(np.float32)
    gain, bias = (random.normal(size=512).astype(np.float32) for _ in range(2))
    out, mean, rstd = np.zeros((rows, 512), np.float16), np.zeros(rows, np.float32), np.zeros(rows, np.float32)
    _run("layernorm-forward", (rows, 1, 1), out, mean, rstd, x, gain, bias, 1e-5)
    wide = x.astype(np.float64)
    m, r = wide.mean(axis=1), 1 / np.sqrt(wide.var(axis=1) + 1e-5)
    np.testing.assert_allclose(mean, m, atol=2e-6 * np.abs(x).max())
    np.testing.assert_allclose(rstd, r, rtol=2e-6)
    np.testing.assert_allclose(out, (wide - m[:, None]) * r[:, None] * gain + bias, rtol=2**-10, atol=2e-5)


def test_transpose(random: np.random.Generator) -> None:
    source, out = random.integers(0, 65536, (8, 1024, 64), dtype=np.uint16), np.zeros((8, 64, 1024), np.uint16)
    _run("transpose-g8-r1024-c64", (16, 8, 1), out, source)
    np.testing.assert_array_equal(out, source.transpose(0, 2, 1))


def test_loss_target_gather(random: np.random.Generator) -> None:
    logits, targets = (
        random.normal(size=(300, 12288)).astype(np.float32),
        random.integers(0, 12300, 300).astype(np.uint32),
    )
    targets[7], out = 12288, np.ones(300, np.float32)
    _run("loss-target-gather", (2, 1, 1), out, logits, targets, 300)
    expected = np.where(targets < 12288, logits[np.arange(300), np.minimum(targets, 12287)], 0)
    np.testing.assert_array_equal(out, expected)


def test_blocks_alone_at_the_real_grid(random: np.random.Generator) -> None:
    declared, code = _built("copy")
    source, out, memory = random.integers(0, 9, 5000, dtype=np.uint32), np.zeros(5000, np.uint32), Memory()
    rows = [(p["kind"], p["type"], p["offset"]) for p in declared["parameters"]]
    parameters = pack_parameters(rows, [out, source, 5000], memory)
    launch(code, grid=(5, 1, 1), block=(256, 1, 1), parameters=parameters, memory=memory, blocks=[1, 4])
    np.testing.assert_array_equal(out[1024:2048], source[1024:2048])
    np.testing.assert_array_equal(out[4096:], source[4096:])
    assert not out[:1024].any()
    assert not out[2048:4096].any()
