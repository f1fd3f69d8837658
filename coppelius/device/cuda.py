"""A card by the CUDA driver, with the package cuda-bindings.

The driver's functions give a result code first; all but success is a refusal that names the function and the code.
One process has one context of a card, the primary one, which is current while the device is open.  Each parameter
is told by the address of its value.  Without the package, a driver or a card, opening refuses in one line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coppelius.device.card import CardFacts
from coppelius.isa.refusal import Refusal

_KERNEL_MODULE = Path("/proc/driver/nvidia/version")
_NOTHING = "; nothing was measured"


def open_device(number: int = 0) -> CudaDevice:
    """The card of that number; refuses where the package, the driver or the card is missing."""
    try:
        from cuda.bindings import driver
    except ImportError:
        raise Refusal(
            f"measuring needs the package cuda-bindings: pip install 'coppelius[measure]'{_NOTHING}"
        ) from None
    try:
        (code,) = driver.cuInit(0)
    except Exception:  # the package has errors of its own for a library that is not there
        raise Refusal(f"no NVIDIA driver on this machine: libcuda cannot be loaded{_NOTHING}") from None
    if code == driver.CUresult.CUDA_ERROR_NO_DEVICE:
        raise Refusal(f"the NVIDIA driver finds no card{_NOTHING}")
    calls = Calls(driver)
    calls.checked("cuInit", code)
    count = calls("cuDeviceGetCount")
    if not 0 <= number < count:
        raise Refusal(f"no card {number}; the NVIDIA driver finds {count}{_NOTHING}")
    return CudaDevice(calls, number)


class Calls:
    """The driver's functions by name, each judged by its code."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def __call__(self, name: str, *arguments: Any) -> Any:
        """What the function gives beside its code."""
        code, *found = getattr(self.driver, name)(*arguments)
        self.checked(name, code)
        return found[0] if len(found) == 1 else found

    def checked(self, name: str, code: Any) -> None:
        """Refuses a code that is not success."""
        if code != self.driver.CUresult.CUDA_SUCCESS:
            raise Refusal(f"CUDA driver: {name}: {getattr(code, 'name', code)}")


class CudaDevice:
    """An open card (`coppelius.device.card.Device`)."""

    def __init__(self, calls: Calls, number: int) -> None:
        self._calls = calls
        self._device = calls("cuDeviceGet", number)
        self._context = calls("cuDevicePrimaryCtxRetain", self._device)
        calls("cuCtxSetCurrent", self._context)
        self._events = [calls("cuEventCreate", 0) for _ in range(2)]
        self._buffers: list[Any] = []
        self._modules: list[Any] = []
        self.facts = self._facts()

    def _facts(self) -> CardFacts:
        attributes = self._calls.driver.CUdevice_attribute

        def ask(name: str) -> int:
            asked = getattr(attributes, f"CU_DEVICE_ATTRIBUTE_{name}")
            return int(self._calls("cuDeviceGetAttribute", asked, self._device))

        name: bytes = self._calls("cuDeviceGetName", 256, self._device)
        version = self._calls("cuDriverGetVersion")
        return CardFacts(
            name.rstrip(b"\0").decode(),
            (ask("COMPUTE_CAPABILITY_MAJOR"), ask("COMPUTE_CAPABILITY_MINOR")),
            ask("MULTIPROCESSOR_COUNT"),
            ask("CLOCK_RATE") // 1000,
            ask("MEMORY_CLOCK_RATE") // 1000,
            f"{_kernel_module()}CUDA {version // 1000}.{version % 1000 // 10}",
        )

    def load(self, cubin: bytes, symbol: str, dynamic_shared: int) -> Any:
        """The kernel of that symbol, allowed so many bytes of shared memory at launch."""
        module = self._calls("cuModuleLoadData", cubin)
        self._modules.append(module)
        kernel = self._calls("cuModuleGetFunction", module, symbol.encode())
        if dynamic_shared:
            most = self._calls.driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self._calls("cuFuncSetAttribute", kernel, most, dynamic_shared)
        return kernel

    def allocate(self, size: int) -> int:
        """The address of so many bytes."""
        self._buffers.append(self._calls("cuMemAlloc", size))
        return int(self._buffers[-1])

    def write(self, address: int, data: NDArray[Any]) -> None:
        """Copies an array to the card."""
        whole = np.ascontiguousarray(data)
        self._calls("cuMemcpyHtoD", address, whole.ctypes.data, whole.nbytes)

    def read(self, address: int, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """An array's copy, after all work that was launched is done."""
        self._calls("cuCtxSynchronize")
        found = np.empty(shape, dtype)
        self._calls("cuMemcpyDtoH", found.ctypes.data, address, found.nbytes)
        return found

    def launch(
        self, kernel: Any, grid: tuple[int, int, int], block_x: int, dynamic_shared: int, pointers: Sequence[int]
    ) -> None:
        """Launches a kernel whose parameters are pointers; the driver copies them before it returns."""
        values = np.array(pointers, np.uint64)
        places = values.ctypes.data + 8 * np.arange(len(values), dtype=np.uint64)
        self._calls("cuLaunchKernel", kernel, *grid, block_x, 1, 1, dynamic_shared, 0, places.ctypes.data, 0)

    def microseconds(self, work: Callable[[], None]) -> float:
        """From before the first launch of `work` until its last is done."""
        start, end = self._events
        self._calls("cuEventRecord", start, 0)
        work()
        self._calls("cuEventRecord", end, 0)
        self._calls("cuEventSynchronize", end)
        return 1e3 * float(self._calls("cuEventElapsedTime", start, end))

    def close(self) -> None:
        """Gives everything back; after a fault the driver refuses to, and the process's end does it."""
        try:
            for buffer in self._buffers:
                self._calls("cuMemFree", buffer)
            for module in self._modules:
                self._calls("cuModuleUnload", module)
            for event in self._events:
                self._calls("cuEventDestroy", event)
            self._calls("cuDevicePrimaryCtxRelease", self._device)
        except Refusal:
            return


def _kernel_module() -> str:
    """The driver's own version, where Linux tells it: "580.65.06, "."""
    try:
        found = re.search(r"Kernel Module.*?\s(\d+\.\d+(?:\.\d+)?)\s", _KERNEL_MODULE.read_text())
    except OSError:
        return ""
    return f"{found[1]}, " if found else ""
