"""Result codes of CUDA's libraries, and how a function that can fail becomes one that returns a code.

The entry points do their work in plain functions that raise. `answering` turns each into a function that returns
`(code, values...)`, as `cuda.bindings` does. A code alone does not say which address was wrong, so the reason is also
printed on stderr.
"""

from __future__ import annotations

import enum
import functools
import sys
import threading
from collections.abc import Callable
from typing import Any

from dryfit.errors import DryfitError
from dryfit_tensorrt.memory import DeviceMemoryError

CODES = (
    (0, "Success", "SUCCESS", "no error"),
    (1, "InvalidValue", "INVALID_VALUE", "invalid argument"),
    (2, "MemoryAllocation", "OUT_OF_MEMORY", "out of memory"),
    (3, "InitializationError", "NOT_INITIALIZED", "initialization error"),
    (4, "CudartUnloading", "DEINITIALIZED", "driver shutting down"),
    (9, "InvalidConfiguration", "", "invalid configuration argument"),
    (12, "InvalidPitchValue", "", "invalid pitch argument"),
    (16, "InvalidHostPointer", "", "invalid host pointer"),
    (17, "InvalidDevicePointer", "", "invalid device pointer"),
    (21, "InvalidMemcpyDirection", "", "invalid copy direction for memcpy"),
    (35, "InsufficientDriver", "STUB_LIBRARY", "CUDA driver version is insufficient for CUDA runtime version"),
    (98, "InvalidDeviceFunction", "", "invalid device function"),
    (100, "NoDevice", "NO_DEVICE", "no CUDA-capable device is detected"),
    (101, "InvalidDevice", "INVALID_DEVICE", "invalid device ordinal"),
    (200, "InvalidKernelImage", "INVALID_IMAGE", "device kernel image is invalid"),
    (201, "DeviceUninitialized", "INVALID_CONTEXT", "invalid device context"),
    (209, "NoKernelImageForDevice", "NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"),
    (300, "InvalidSource", "INVALID_SOURCE", "device kernel image is invalid"),
    (301, "FileNotFound", "FILE_NOT_FOUND", "file not found"),
    (400, "InvalidResourceHandle", "INVALID_HANDLE", "invalid resource handle"),
    (401, "IllegalState", "ILLEGAL_STATE", "the operation cannot be performed in the present state"),
    (500, "SymbolNotFound", "NOT_FOUND", "named symbol not found"),
    (600, "NotReady", "NOT_READY", "device not ready"),
    (700, "IllegalAddress", "ILLEGAL_ADDRESS", "an illegal memory access was encountered"),
    (719, "LaunchFailure", "LAUNCH_FAILED", "unspecified launch failure"),
    (800, "NotPermitted", "NOT_PERMITTED", "operation not permitted"),
    (801, "NotSupported", "NOT_SUPPORTED", "operation not supported"),
    (999, "Unknown", "UNKNOWN", "unknown error"),
)
"""(value, end of the name in `cudaError_t`, end of the name in `CUresult`, text). Source: CUDA 12.9's API reference."""

TEXTS = {value: text for value, _, _, text in CODES}

cudaError_t = enum.IntEnum(  # type: ignore[misc]  # the members come from the table
    "cudaError_t",
    {("cudaSuccess" if value == 0 else f"cudaError{name}"): value for value, name, _, _ in CODES},
)
CUresult = enum.IntEnum(  # type: ignore[misc]
    "CUresult", {f"CUDA_{'' if value == 0 else 'ERROR_'}{name}": value for value, _, name, _ in CODES if name}
)


class CudaCallError(DryfitError):
    """An operation failed for another reason than an address.

    Attributes:
        code: the value in `cudaError_t` and `CUresult`.
    """

    def __init__(self, code: int, message: str, *, found: object = None, remedy: str) -> None:
        self.code = code
        super().__init__(message, found=found, remedy=remedy)


class KernelRequiredError(DryfitError, NotImplementedError):
    """A program asked for what only a kernel on a GPU can do."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"{name} needs a kernel on a GPU",
            allowed="allocation, copies, streams and events, in host memory",
            remedy="Compute it with numpy on the host, and copy the result to the device",
        )


def refusing(library: str, kernels: tuple[str, ...]) -> Callable[[str], Callable[..., Any]]:
    """Return the `__getattr__` of a module for functions that it does not have.

    Args:
        library: what the module is, for messages.
        kernels: how the names of functions begin that compile, run or record kernels; they raise when they are called.
    """

    def missing(name: str) -> Callable[..., Any]:
        if not name.startswith(kernels):
            raise AttributeError(f"dryfit's module for {library} does not have {name!r}", name=name)

        def refused(*arguments: Any, **named: Any) -> Any:
            raise KernelRequiredError(name)

        return refused

    return missing


def code_of(error: Exception) -> int:
    """Return the result code for what an operation raised."""
    if isinstance(error, CudaCallError):
        return error.code
    return 2 if isinstance(error, MemoryError) else 1


_last = threading.local()


def last_error(*, reset: bool) -> int:
    """Return the code of the last failure in this thread; 0 for none."""
    code: int = getattr(_last, "code", 0)
    if reset:
        _last.code = 0
    return code


def answering(
    codes: type[enum.IntEnum], values: int = 0
) -> Callable[[Callable[..., Any]], Callable[..., tuple[Any, ...]]]:
    """Make a function that raises return a tuple: the code and the values.

    Args:
        codes: the enumeration of the code.
        values: how many values follow the code; each is None after a failure.
    """

    def made(function: Callable[..., Any]) -> Callable[..., tuple[Any, ...]]:
        @functools.wraps(function)
        def answer(*arguments: Any, **named: Any) -> tuple[Any, ...]:
            try:
                found = function(*arguments, **named)
            except (CudaCallError, DeviceMemoryError, MemoryError) as error:
                _last.code = code_of(error)
                sys.stderr.write(f"dryfit: {function.__name__}: {error or 'not enough memory'}\n")
                return (codes(_last.code), *[None] * values)
            return (codes(0), *(found if values > 1 else [found] * values))

        answer.value_count = values  # type: ignore[attr-defined]  # `libraries.py` reads it
        return answer

    return made
