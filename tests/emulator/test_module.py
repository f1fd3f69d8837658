"""Modules as the driver loads them: code addresses in tables, virtual calls, linked functions, globals that stay."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from coppelius.emulator.module import Module, load
from coppelius.isa.refusal import Refusal

DATA = Path(__file__).resolve().parents[1] / "data" / "cuda"
N = 200


@pytest.fixture
def addresses() -> Module:
    return load(DATA / "modules" / "addresses.cubin")


def _ints(random: np.random.Generator, low: int = -500, high: int = 500) -> np.ndarray:
    return random.integers(low, high, N).astype(np.int32)


@pytest.mark.parametrize("mode", ["fast", "strict"])
def test_function_pointers_in_global_and_constant_memory(
    addresses: Module, random: np.random.Generator, mode: str
) -> None:
    which, x, y, out = _ints(random, 0, 3), _ints(random), _ints(random), np.zeros(N, np.int32)
    addresses.launch("function_table", 2, 128, out, which, x, y, N, mode=mode)
    first = np.choose(which, [x + y, x - y, x * y ^ y])
    second = np.choose(which, [x * y ^ x, x + y, y - x])
    np.testing.assert_array_equal(out, first + second)


@pytest.mark.parametrize("mode", ["fast", "strict"])
def test_virtual_calls(addresses: Module, random: np.random.Generator, mode: str) -> None:
    x, out = _ints(random, 0), np.zeros(N, np.int32)
    addresses.launch("virtual_calls", 2, 128, out, x, N, mode=mode)
    sizes = np.choose(x % 3, [x * 3, x * 5 // 2, x])
    np.testing.assert_array_equal(out, sizes * 10 + np.choose(x % 3, [4, 3, 0]))


def test_pointers_among_globals(addresses: Module) -> None:
    out, zeros = np.ones(32, np.int32), np.ones(32, np.float32)
    addresses.launch("initialised_pointer", 1, 32, out, zeros)
    np.testing.assert_array_equal(out, [(4, 1)[i & 1] + (3, 1, 4, 1)[i & 3] for i in range(32)])
    assert not zeros.any()


def test_globals_are_seen_from_outside_and_stay(addresses: Module) -> None:
    addresses.globals["data"].view(np.int32)[2] = 90
    out, zeros = np.ones(32, np.int32), np.ones(32, np.float32)
    addresses.launch("initialised_pointer", 1, 32, out, zeros)
    assert out[2] == 180


def test_dynamic_shared_memory_follows_the_static(addresses: Module, random: np.random.Generator) -> None:
    x, out = _ints(random)[:64].copy(), np.zeros(64, np.int32)
    addresses.launch("shared_static_and_dynamic", 1, 64, out, x, 64, shared=256)
    np.testing.assert_array_equal(out, x[::-1] + 100 + np.arange(64) % 32)
    with pytest.raises(Refusal, match=r"memcheck: address 0x17c .*380 bytes of shared memory"):
        addresses.launch("shared_static_and_dynamic", 1, 64, out, x, 64, shared=252)


@pytest.mark.parametrize("mode", ["fast", "strict"])
def test_functions_joined_by_the_linker(random: np.random.Generator, mode: str) -> None:
    x, out = _ints(random)[:64].copy(), np.zeros(64, np.int32)
    load(DATA / "modules" / "linked.cubin").launch("linked", 1, 64, out, x, mode=mode)
    i = np.arange(64)
    np.testing.assert_array_equal(out, np.where(i & 1, x - i, x + i) + 7 * x)


def test_a_fault_in_a_device_function_is_placed_there() -> None:
    module = load(DATA / "modules" / "linked.cubin")
    module.globals["seven"].flags.writeable = False
    place = module.memory.buffers[0]
    module.memory.buffers[0] = type(place)(place.name, place.base, place.data[:16])
    with pytest.raises(Refusal, match=r"linked/_Z7outsidei\+0x00[0-9a-f]0 .* 0 bytes past the end of buffer"):
        module.launch("linked", 1, 64, np.zeros(64, np.int32), np.zeros(64, np.int32))


def test_what_only_a_linker_resolves_is_named() -> None:
    module = load(DATA / "relocatable" / "linkage.cubin")
    with pytest.raises(Refusal, match="lies in no section of this module; link it first"):
        module.launch("linked_calls", 1, 32, np.zeros(32, np.int32))


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ((1,), "1 values for 3 parameters"),
        ((0, 0, np.float64(1)), "parameter 2 has 4 bytes"),
        ((0, 0, 1 << 32), "parameter 2 has 4 bytes"),
        ((np.int32(0), 0, 1), "parameter 0 has 8 bytes"),
    ],
)
def test_values_that_fit_no_parameter(addresses: Module, values: tuple[object, ...], why: str) -> None:
    with pytest.raises(Refusal, match=why):
        addresses.launch("virtual_calls", 1, 32, *values)  # type: ignore[arg-type]


def test_a_kernel_that_is_not_there(addresses: Module) -> None:
    with pytest.raises(Refusal, match="no kernel 'nothing'; it holds virtual_calls"):
        addresses.launch("nothing", 1, 32)
    with pytest.raises(Refusal, match="one to three numbers"):
        addresses.launch("virtual_calls", (1, 1, 1, 1), 32)
