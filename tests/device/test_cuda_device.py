"""The CUDA driver's functions as they are called, on a stand-in for the package; and every way to be without them."""

import ctypes
import sys
from collections.abc import Callable, Iterator
from enum import IntEnum
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from coppelius.device import cuda
from coppelius.device.cuda import CudaDevice, open_device
from coppelius.isa.refusal import Refusal


class Code(IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_NO_DEVICE = 100
    CUDA_ERROR_INVALID_IMAGE = 200


ATTRIBUTES = {"COMPUTE_CAPABILITY_MAJOR": 8, "COMPUTE_CAPABILITY_MINOR": 6, "MULTIPROCESSOR_COUNT": 82,
              "CLOCK_RATE": 1695000, "MEMORY_CLOCK_RATE": 9751000}  # fmt: skip


class Driver:
    """The functions that are used, with the results' shapes of cuda-bindings; memory is the process's own."""

    CUresult = Code
    CUdevice_attribute = SimpleNamespace(**{f"CU_DEVICE_ATTRIBUTE_{name}": name for name in ATTRIBUTES})
    CUfunction_attribute = SimpleNamespace(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES="most")

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.buffers: dict[int, np.ndarray[Any, Any]] = {}
        self.fails = ""
        self.initial = Code.CUDA_SUCCESS

    def cuInit(self, flags: int) -> tuple[Code]:  # noqa: N802, ARG002
        return (self.initial,)

    def __getattr__(self, name: str) -> Callable[..., tuple[Any, ...]]:
        if not name.startswith("cu"):
            raise AttributeError(name)

        def call(*arguments: Any) -> tuple[Any, ...]:
            self.calls.append((name, *arguments))
            if name == self.fails:
                return (Code.CUDA_ERROR_INVALID_IMAGE, *([None] if name in RESULTS else []))
            found = RESULTS[name](self, *arguments) if name in RESULTS else None
            return (Code.CUDA_SUCCESS,) if name not in RESULTS else (Code.CUDA_SUCCESS, found)

        return call

    def allocated(self, size: int) -> int:
        array = np.zeros(size, np.uint8)
        self.buffers[array.ctypes.data] = array
        return array.ctypes.data


RESULTS: dict[str, Callable[..., Any]] = {
    "cuDeviceGetCount": lambda *_: 1,
    "cuDeviceGet": lambda _, number: f"device {number}",
    "cuDeviceGetName": lambda *_: b"NVIDIA GeForce RTX 3090" + bytes(20),
    "cuDeviceGetAttribute": lambda _, name, __: ATTRIBUTES[name],
    "cuDriverGetVersion": lambda *_: 13010,
    "cuDevicePrimaryCtxRetain": lambda *_: "context",
    "cuEventCreate": lambda driver, _: f"event {sum(c[0] == 'cuEventCreate' for c in driver.calls)}",
    "cuEventElapsedTime": lambda *_: 0.25,
    "cuMemAlloc": Driver.allocated,
    "cuModuleLoadData": lambda *_: "module",
    "cuModuleGetFunction": lambda _, module, name: (module, name),
}


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Driver]:
    made = Driver()
    package, bindings = ModuleType("cuda"), ModuleType("cuda.bindings")
    bindings.driver = made  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cuda", package)
    monkeypatch.setitem(sys.modules, "cuda.bindings", bindings)
    monkeypatch.setattr(cuda, "_kernel_module", lambda: "580.65.06, ")
    yield made
    assert all(code[0].startswith("cu") for code in made.calls)


def test_the_card_is_told_as_the_driver_tells_it(driver: Driver) -> None:
    facts = open_device().facts
    assert (facts.name, facts.capability, facts.sms) == ("NVIDIA GeForce RTX 3090", (8, 6), 82)
    assert (facts.megahertz, facts.memory_megahertz, facts.driver) == (1695, 9751, "580.65.06, CUDA 13.1")
    assert ("cuCtxSetCurrent", "context") in driver.calls


def test_a_kernel_is_loaded_allowed_its_shared_memory_and_launched_with_its_pointers(driver: Driver) -> None:
    device = open_device()
    kernel = device.load(b"cubin", "symbol", 65536)
    assert driver.calls[-3:] == [
        ("cuModuleLoadData", b"cubin"),
        ("cuModuleGetFunction", "module", b"symbol"),
        ("cuFuncSetAttribute", ("module", b"symbol"), "most", 65536),
    ]
    seen: list[int] = []

    def launched(_: Driver, *arguments: Any) -> None:
        """Reads the parameters as the driver does, while the launch is made."""
        places = (ctypes.c_void_p * 3).from_address(arguments[9])
        seen.extend(ctypes.c_uint64.from_address(place or 0).value for place in places)

    RESULTS["cuLaunchKernel"] = launched
    try:
        device.launch(kernel, (5, 4, 1), 256, 65536, [1 << 40, 2 << 40, (3 << 40) + 256])
    finally:
        del RESULTS["cuLaunchKernel"]
    assert seen == [1 << 40, 2 << 40, (3 << 40) + 256]
    name, *arguments = driver.calls[-1]
    assert (name, arguments[:9], arguments[10]) == (
        "cuLaunchKernel", [("module", b"symbol"), 5, 4, 1, 256, 1, 1, 65536, 0], 0,
    )  # fmt: skip


def test_copies_name_address_and_bytes_and_reading_waits(driver: Driver) -> None:
    device = open_device()
    address = device.allocate(24)
    data = np.arange(6, dtype=np.float32).reshape(2, 3).T
    device.write(address, data)
    name, to, _, size = driver.calls[-1]
    assert (name, to, size) == ("cuMemcpyHtoD", address, 24)
    assert device.read(address, (3, 2), np.float32).shape == (3, 2)
    assert [call[0] for call in driver.calls[-2:]] == ["cuCtxSynchronize", "cuMemcpyDtoH"]


def test_work_is_timed_between_two_events(driver: Driver) -> None:
    device = open_device()
    assert device.microseconds(lambda: driver.calls.append(("cu work",))) == 250.0
    assert [call[:2] for call in driver.calls[-5:]] == [
        ("cuEventRecord", "event 1"), ("cu work",), ("cuEventRecord", "event 2"), ("cuEventSynchronize", "event 2"),
        ("cuEventElapsedTime", "event 1"),
    ]  # fmt: skip


def test_closing_gives_everything_back_and_a_broken_context_is_left(driver: Driver) -> None:
    device = open_device()
    address = device.allocate(8)
    device.load(b"cubin", "symbol", 0)
    driver.calls.clear()
    device.close()
    assert driver.calls == [
        ("cuMemFree", address), ("cuModuleUnload", "module"), ("cuEventDestroy", "event 1"),
        ("cuEventDestroy", "event 2"), ("cuDevicePrimaryCtxRelease", "device 0"),
    ]  # fmt: skip
    driver.fails = "cuMemFree"
    device.close()


def test_a_code_that_is_not_success_is_refused_with_the_functions_name(driver: Driver) -> None:
    device = open_device()
    driver.fails = "cuModuleLoadData"
    with pytest.raises(Refusal, match=r"^CUDA driver: cuModuleLoadData: CUDA_ERROR_INVALID_IMAGE$"):
        device.load(b"no cubin", "symbol", 0)


def test_without_the_package_one_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda", None)
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    with pytest.raises(Refusal, match=r"needs the package cuda-bindings: pip install 'coppelius\[measure\]'"):
        open_device()


def test_without_a_driver_a_card_or_that_card_one_line_says_so(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    driver.initial = Code.CUDA_ERROR_NO_DEVICE
    with pytest.raises(Refusal, match=r"^the NVIDIA driver finds no card; nothing was measured$"):
        open_device()
    driver.initial = Code.CUDA_ERROR_INVALID_IMAGE
    with pytest.raises(Refusal, match=r"^CUDA driver: cuInit: CUDA_ERROR_INVALID_IMAGE$"):
        open_device()
    driver.initial = Code.CUDA_SUCCESS
    with pytest.raises(Refusal, match=r"^no card 1; the NVIDIA driver finds 1; nothing was measured$"):
        open_device(1)

    def no_library(_: int) -> None:
        raise RuntimeError("libcuda.so.1: cannot open shared object file")

    monkeypatch.setattr(driver, "cuInit", no_library)
    with pytest.raises(Refusal, match=r"^no NVIDIA driver on this machine: libcuda cannot be loaded"):
        open_device()


def test_the_interface_is_whole() -> None:
    from coppelius.device.card import Device

    wanted = {name for name in vars(Device) if not name.startswith("_")} - {"facts"}
    assert wanted <= set(vars(CudaDevice))


def test_the_drivers_own_version_is_read_where_linux_tells_it(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    told = tmp_path / "version"
    told.write_text("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\nGCC version:\n")
    monkeypatch.setattr(cuda, "_KERNEL_MODULE", told)
    assert cuda._kernel_module() == "580.65.06, "
    monkeypatch.setattr(cuda, "_KERNEL_MODULE", tmp_path / "none")
    assert cuda._kernel_module() == ""
